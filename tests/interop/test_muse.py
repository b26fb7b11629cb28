import numpy as np
import pandas as pd
import pytest

from rindices import InputError
from rindices.interop.muse import MUSE72_NAMES, muse72, muse_regions, with_muse72

VENTRICLES = {4, 11, 49, 50, 51, 52}


@pytest.fixture(scope="module")
def volumes():
    """Volumes in mm³ of three people, by region number; a brain has 1.1 litres."""
    regions = muse_regions()
    values = np.random.default_rng(0).uniform(0.5, 1.5, (3, len(regions)))
    return pd.DataFrame(1.1e6 * values / values.sum(axis=1, keepdims=True), columns=regions.index)


def test_table_of_regions():
    regions = muse_regions()
    assert regions.index.is_unique
    assert set(regions.index[regions["tissue"] == "ventricle"]) == VENTRICLES
    sides = regions.groupby("name")["hemisphere"].agg(lambda column: tuple(sorted(column)))
    assert set(sides) == {("none",), ("left", "right")}
    # From 100 on, even numbers are right; the basal forebrain is the other way round than the rest.
    assert all(
        (side == "right") == (number % 2 == 0) for number, side in regions["hemisphere"].items() if number >= 100
    )
    assert regions.loc[[75, 76], "hemisphere"].tolist() == ["left", "right"]


def test_recipe_is_in_the_published_order():
    starts = [name.split(" ")[0] for name in MUSE72_NAMES]
    assert starts[:9] == [f"MUSE_{n}" for n in ("35", "71", "72", "73", "95", "23+30", "31+32", "36+37", "38+39")]
    assert starts[-1] == "MUSE_206+207"
    numbers = [int(n) for start in starts for n in start.removeprefix("MUSE_").split("+")]
    assert (set(numbers), len(numbers)) == (set(muse_regions().index) - VENTRICLES, len(set(numbers)))


def full_name(number):
    region = muse_regions().loc[number]
    return (
        region["name"] if region["hemisphere"] == "none" else f"{region['hemisphere'].title()} {region['name'].title()}"
    )


@pytest.mark.parametrize(
    "naming",
    [
        "MUSE_Volume_{}".format,
        "H_MUSE_Volume_{}".format,
        "h_muse_volume_{}".format,
        "DL_MUSE_Volume_{}".format,
        "MUSE.Volume.{}".format,
        "DLMUSE_{}".format,
        "MUSE {}".format,
        str,
        int,
        full_name,
        lambda number: full_name(number).replace(" ", "_").lower(),
        lambda number: full_name(number).replace(" ", ".").upper(),
        lambda number: f"{full_name(number)} volume",
        lambda number: (
            " ".join([*full_name(number).split(" ")[1:], full_name(number).split(" ")[0]])
            if muse_regions()["hemisphere"][number] != "none"
            else full_name(number)
        ),
    ],
)
def test_columns_are_found_summed_and_ordered(volumes, naming):
    table = volumes.set_axis([naming(number) for number in volumes.columns], axis=1)
    table = table.sample(frac=1, axis=1, random_state=0).assign(age=[60, 70, 80])
    found = muse72(table)
    assert tuple(found.columns) == MUSE72_NAMES
    np.testing.assert_allclose(found["MUSE_35 brain stem"], volumes[35])
    np.testing.assert_allclose(found["MUSE_47+48 hippocampus"], volumes[47] + volumes[48])
    np.testing.assert_allclose(found["MUSE_75+76 basal forebrain"], volumes[75] + volumes[76])
    np.testing.assert_allclose(found.sum(axis=1), volumes.drop(columns=VENTRICLES).sum(axis=1))


def test_names_that_muse_itself_uses(volumes):
    own = {
        100: "Right ACgG  anterior cingulate gyrus",
        101: "Left_ACgG",
        81: "frontal lobe WM right",
        82: "frontal lobe WM left",
        93: "posterior limb of internal capsule inc. cerebral peduncle right",
        71: "Cerebellar Vermal Lobules I-V",
        61: "Right Ventral DC",
        35: "Brain Stem",
        59: "Right Thalamus Proper",
        60: "left thalamus",
    }
    table = volumes.set_axis([own.get(number, f"MUSE_Volume_{number}") for number in volumes.columns], axis=1)
    expected = muse72(volumes)
    pd.testing.assert_frame_equal(muse72(table), expected)


def test_missing_regions_are_listed(volumes):
    with pytest.raises(
        InputError, match=r"lacks 2 of 139 MUSE regions: 31 \(right amygdala\), 48 \(left hippo"
    ) as caught:
        muse72(volumes.drop(columns=[31, 48]).add_prefix("MUSE_Volume_"))
    assert "MUSE columns found: MUSE_Volume_4" in str(caught.value)
    with pytest.raises(InputError, match="No column looks like a MUSE region"):
        muse72(pd.DataFrame({"RES_ICV_Sex_MUSE_Volume_47": [1.0], "hippocampus": [2.0], "age": [60.0]}))
    muse72(volumes.drop(columns=VENTRICLES))  # these are not needed


def test_raw_and_harmonised_together_are_refused(volumes):
    both = pd.concat([volumes.add_prefix("MUSE_Volume_"), volumes.add_prefix("H_MUSE_Volume_")], axis=1)
    with pytest.raises(InputError, match="2 times: MUSE_Volume_35, H_MUSE_Volume_35"):
        muse72(both)
    pd.testing.assert_frame_equal(with_muse72(both, exclude="H_MUSE_*"), muse72(volumes))


def test_units_are_told_apart(volumes):
    expected = muse72(volumes)
    pd.testing.assert_frame_equal(muse72(volumes / 1000), expected)
    for factor in (0.1, 1e-6, 10.0, -1.0):
        with pytest.raises(InputError, match="about 1,100,000 mm³ or 1,100 mL"):
            muse72(volumes * factor)
    mixed = volumes.copy()
    mixed.loc[2] /= 1000
    with pytest.raises(InputError, match="volumes are in mm³, but those of 1 person are in a different unit: row 4"):
        muse72(mixed)
    mixed.loc[1] /= 1000
    with pytest.raises(InputError, match="volumes are in mL, but those of 1 person are in a different unit: row 2"):
        muse72(mixed)


def test_gaps_stay_gaps_and_text_is_refused(volumes):
    table = volumes.astype(object)
    table.loc[1, 47] = "NA"
    found = muse72(table)
    assert found.isna().sum().sum() == 1
    assert np.isnan(found.loc[1, "MUSE_47+48 hippocampus"])
    table.loc[1, 47] = "about 3000"
    with pytest.raises(InputError, match="47 should contain volumes, but row 3 has the text 'about 3000'"):
        muse72(table)


def test_other_columns_stay(volumes):
    table = volumes.add_prefix("MUSE_Volume_").assign(participant_id=["a", "b", "c"], age=60.0, MUSE_Volume_702=1.2e6)
    found = with_muse72(table)
    assert list(found.columns) == ["participant_id", "age", *MUSE72_NAMES]
    pd.testing.assert_frame_equal(found[list(MUSE72_NAMES)], muse72(volumes))
    pd.testing.assert_frame_equal(with_muse72(found), found)


def test_another_segmentation_may_lack_a_fifth_of_the_inputs(volumes):
    named = volumes.add_prefix("MUSE_Volume_")
    lacking = [int(name.partition("+")[2].partition(" ")[0]) for name in MUSE72_NAMES[5:20]]  # one side of 15 pairs
    some = named.drop(columns=[f"MUSE_Volume_{number}" for number in lacking[:14]])
    found = with_muse72(some)
    assert [name for name in found if name in MUSE72_NAMES] == [*MUSE72_NAMES[:5], *MUSE72_NAMES[19:]]
    pd.testing.assert_frame_equal(found[[*MUSE72_NAMES[19:]]], muse72(named)[[*MUSE72_NAMES[19:]]])
    with pytest.raises(InputError, match="lacks 14 of 139 MUSE regions"):  # in training
        with_muse72(some, complete=True)
    too_few = named.drop(columns=[f"MUSE_Volume_{number}" for number in lacking])
    with pytest.raises(InputError, match=r"lacks 15 of 139 .* More than a fifth of the 72 inputs are missing \(15\)"):
        with_muse72(too_few)
