import pytest

from rindices.regions import pair_sides, split_side


@pytest.mark.parametrize(
    ("left", "right", "base"),
    [
        ("lHip", "rHip", "Hip"),
        ("lh_G_cuneus_volume", "rh_G_cuneus_volume", "G_cuneus_volume"),
        ("lhCortexVol", "rhCortexVol", "CortexVol"),
        ("Left-Amygdala", "Right-Amygdala", "Amygdala"),
        ("Left ACgG anterior cingulate gyrus", "Right ACgG anterior cingulate gyrus", "ACgG anterior cingulate gyrus"),
        ("Thalamus_L", "Thalamus_R", "Thalamus"),
        ("L_Thalamus", "R_Thalamus", "Thalamus"),
        ("Thalamus (left)", "Thalamus (right)", "Thalamus"),
        ("Hippocampus_L_volume", "Hippocampus_R_volume", "Hippocampus_volume"),
        ("ctx-lh-insula", "ctx-rh-insula", "ctx-insula"),
        ("ctx_lh_G_cuneus", "ctx_rh_G_cuneus", "ctx_G_cuneus"),
        ("LEFT.PUTAMEN", "RIGHT.PUTAMEN", "PUTAMEN"),
        ("leftPutamen", "rightPutamen", "Putamen"),
    ],
)
def test_sides_of_names(left, right, base):
    assert split_side(left) == ("left", base)
    assert split_side(right) == ("right", base)
    assert pair_sides([right, "Brain stem", left]) == {left: ("left", base), right: ("right", base)}


@pytest.mark.parametrize(
    "name", ["Brain stem", "lingual", "rostral", "lateral", "Lingual", "L", "l_", "R1", "roi_r_3", ""]
)
def test_names_without_a_side(name):
    assert split_side(name) == ("", name)


def test_pairs_need_both_sides_and_one_meaning():
    assert pair_sides(["lHip", "lAmy"]) == {}
    assert pair_sides(["lHip", "rHip", "Hip"]) == {}
    assert pair_sides(["lHip", "L_Hip", "rHip"]) == {}
    assert pair_sides(["lHip", "rHip", "rHip"]) == {}
