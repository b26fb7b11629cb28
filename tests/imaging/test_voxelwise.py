"""Voxel-wise comparisons: tables of maps, images, statistics, and what is written."""

from pathlib import Path

import nibabel
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from nilearn.datasets import load_mni152_brain_mask
from nilearn.image import resample_to_img
from scipy import stats

from rindices.analysis import subgroup_sizes
from rindices.imaging import (
    Comparison,
    cluster_table,
    compare_maps,
    comparison_table,
    read_map_table,
    write_comparisons,
)
from rindices.imaging.image_output import paint_patterns
from rindices.imaging.images import Grid, Space, common_space, open_map, sampled
from rindices.imaging.voxelwise import Result, make_model, t_values
from rindices.settings import ImageSettings
from tests.imaging.made_up import AFFINE, SHAPE, people, write_image
from tests.refusal import refused_with


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return people(tmp_path_factory.mktemp("maps"), effect=3.0)


@pytest.fixture(scope="module")
def compared(made):
    return run(made, covariates=made.covariates, regressions=True)


def run(made, maps=None, r_indices=None, group=None, covariates=None, **options):
    """Compare the images as made, except for the arguments given."""
    return compare_maps(
        made.maps if maps is None else maps,
        made.r_indices if r_indices is None else r_indices,
        made.group if group is None else group,
        covariates,
        settings=ImageSettings(**{"mask": made.mask} | options),
    )


def volume_of(found, kind="t", outside=0.0):
    return found.result.space.volume(getattr(found.result, kind), outside)


def test_every_subgroup_is_compared_or_says_why_not(made, compared):
    sizes = subgroup_sizes(made.r_indices[["r1", "r2"]], made.group)
    found = [x for x in compared if x.level != "regression"]
    told = [(x.pattern, x.level, x.rule, x.n_patients, x.note, x.result is not None) for x in found]
    assert told == sizes[["pattern", "level", "rule", "n", "note", "used"]].to_records(index=False).tolist()
    assert "fewer than 10 patients" in sizes["note"].tolist()
    assert {x.n_controls for x in found} == {25}
    low = [x.result.t for x in found if x.level == "low"]
    assert low[0] is low[1]  # it is the same for all patterns, and computed once


@pytest.mark.parametrize("level", ["low", "high", "regression"])
def test_t_is_that_of_statsmodels(made, compared, level):
    [found] = [one for one in compared if (one.pattern, one.level) == (1, level)]
    r, patient = made.r_indices, made.group == "patient"
    members = {"low": (r["r1"] < 0.4) & (r["r2"] < 0.4), "high": (r["r1"] > 0.7) & (r["r2"] < 0.4)}
    if level == "regression":
        used, interest = patient, r["r1"].to_numpy()
    else:
        interest = (members[level] & patient).to_numpy(float)
        used = (interest > 0) | ~patient
    columns = [np.ones(used.sum()), interest[used], made.covariates["age"][used], made.covariates["sex"][used] == "M"]
    volume, p = volume_of(found), []
    for place in [(1, 1, 1), (3, 4, 3), (7, 9, 5), (4, 2, 1)]:
        fit = sm.OLS(made.values[(used, *place)].astype(float), np.column_stack(columns).astype(float)).fit()
        np.testing.assert_allclose(volume[place], fit.tvalues[1], rtol=1e-9)
        p.append(fit.pvalues[1])
    assert found.result.freedom == fit.df_resid
    p_all = 2 * stats.t.sf(np.abs(found.result.t), found.result.freedom)
    np.testing.assert_allclose(found.result.q, sm.stats.multipletests(p_all, method="fdr_bh")[1], rtol=1e-9)
    assert np.abs(p_all[:, None] - p).min(axis=0).max() < 1e-12


def test_people_without_map_or_covariate_are_counted(made):
    maps, covariates = made.maps.drop(index=[1, 2]), made.covariates.copy()
    maps.loc[0, "path"] = ""
    covariates.loc[[2, 3], "age"] = np.nan
    found = run(made, maps, covariates=covariates)[0]
    assert (found.n_controls, found.without_map, found.without_covariates) == (21, 3, 1)
    again = run(made, r_indices=made.r_indices[4:], group=made.group[4:], covariates=covariates[4:])[0]
    np.testing.assert_allclose(found.result.t, again.result.t, rtol=1e-12)


def test_later_visits_are_left_out(made):
    r = pd.concat([made.r_indices.assign(visit="1", first_visit=True)] * 2, ignore_index=True)
    half = len(made.group)
    r.loc[half:, ["visit", "first_visit", "r1"]] = ["2", False, 0.9]
    maps = pd.concat([made.maps.assign(visit=1.0), made.maps.assign(visit=2.0)], ignore_index=True)
    maps.loc[half:, "path"] += "x"  # no such files exist
    np.testing.assert_array_equal(run(made, maps, r, np.tile(made.group, 2))[2].result.t, run(made)[2].result.t)
    refused_with("several rows of R-indices", run, made, maps, r.drop(columns="first_visit"), np.tile(made.group, 2))
    refused_with("maps from several visits for 85 people", run, made, maps)


def test_covariates_that_say_all_leave_no_result(made):
    found = run(made, covariates=pd.DataFrame({"site": np.where(made.group == "patient", "A", "B")}))
    assert {x.note for x in found if x.n_patients >= 10} == {"the covariates fully explain the variable of interest"}
    many = pd.DataFrame({"code": [str(k) for k in range(len(made.group) - 1)] + ["0"]})
    assert run(made, covariates=many)[0].result is None


def test_t_is_exact_far_from_zero_and_missing_without_variance():
    values = np.random.default_rng(0).standard_normal((40, 5))
    values[:, 0] += 1e5
    values[:, 1] = 7.3
    values[3, 2] = np.nan
    values[5, 3] = np.inf
    model = make_model(np.arange(40), np.arange(40) < 15, np.empty((40, 0)))
    [found] = t_values([model], lambda person: values[person].copy(), 5)
    expected = stats.ttest_ind(values[:15, [0, 4]], values[15:, [0, 4]]).statistic
    np.testing.assert_allclose(found[[0, 4]], expected, rtol=1e-6)
    assert np.isnan(found[[1, 2, 3]]).all()


@pytest.fixture
def few(tmp_path):
    return people(tmp_path, n_patients=40)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_paths_are_relative_to_the_table_and_ids_stay_text(tmp_path, separator):
    path = tmp_path / "maps.csv"
    rows = [["participant_id", "path", "note"], ["007", "grey/a.nii", ""], ["8", "/b.nii", "x"], ["9", "n/a", ""]]
    path.write_text("\r\n".join(separator.join(row) for row in rows), encoding="utf-8-sig")
    table = read_map_table(path)
    assert table.to_dict("list") == {
        "participant_id": ["007", "8", "9"],
        "path": [str(tmp_path / "grey" / "a.nii"), "/b.nii", ""],
    }
    assert table.index.tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("participant_id,map\n1,a.nii\n", "has no column 'path'"),
        ("participantid,path\n1,a.nii\n", "has no column 'participant_id'. Did you mean 'participantid'"),
        ("participant_id,path\n1,a.nii\n2,b.nii\n1,c.nii\n", "rows 2 and 4 belong to '1'"),
        ("participant_id,path\n1,a.nii\n2,b.nii\n3,a.nii\n", "the same image in rows 2 and 4"),
        ("participant_id,path\n", "has no rows below the header"),
        ("", "cannot be read as a table"),
    ],
)
def test_bad_tables_are_refused(tmp_path, text, message):
    path = tmp_path / "maps.csv"
    path.write_text(text)
    refused_with(message, read_map_table, path)


def test_ids_that_do_not_match_are_told(few):
    maps = few.maps.assign(participant_id=few.maps["participant_id"].str.removeprefix("sub-"))
    refused_with("its ids look like '000', but those in the run look like 'sub-000'", run, few, maps)


# How the fifth person's image is spoilt, given its values and its bytes, and the message.
BROKEN = {
    "missing": (None, r"Row 6 of maps: no file was found at .*sub-004\.nii"),
    "four dimensions": (
        lambda values, _: np.stack([values, values], axis=-1),
        r"Row 6 of maps: .* has 4 dimensions \(9 × 11 × 7 × 2\)",
    ),
    "text": (lambda *_: b"not an image", "Row 6 of maps: .* cannot be read as an image"),
    "cut": (lambda _, content: content[:1000], "Row 6 of maps: .*(incomplete|cannot be read)"),
    "nan": (
        lambda values, _: np.concatenate([values[:1], values[1:4] * np.nan, values[4:]]),
        "Row 6 of maps: .* has missing values .NaN. in 43 % of the voxels",
    ),
    "constant": (lambda values, _: 0 * values, "Row 6 of maps: .* has the value 0 at every voxel"),
    "complex": (lambda values, _: values.astype(np.complex64), "Row 6 of maps: .* contains values of type complex64"),
    "shape": (
        lambda values, _: values[:, :, :5],
        r"1 of 65 maps differs(.|\n)*Row 6 of maps \(sub-004.nii\): shape 9 × 11 × 5 instead of 9 × 11 × 7",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_bad_images_are_refused(few, tmp_path, kind):
    (spoil, message), path = BROKEN[kind], tmp_path / "sub-004.nii"
    made = spoil and spoil(few.values[4], path.read_bytes())
    path.unlink()
    if isinstance(made, bytes):
        path.write_bytes(made)
    elif made is not None:
        write_image(path, made, dtype=made.dtype)
    refused_with(message, run, few, regressions=True)


def test_flipped_maps_are_refused_or_resampled(few, tmp_path):
    expected, flipped = run(few), AFFINE.copy()
    flipped[0] = [4, 0, 0, -4 * (SHAPE[0] - 1) + 18]
    write_image(tmp_path / "sub-004.nii", few.values[4][::-1], flipped)
    refused_with(r"axes RAS instead of LAS, first voxel at \(-14, .*\n.*resample=True", run, few)
    np.testing.assert_allclose(run(few, resample=True)[0].result.t, expected[0].result.t, rtol=1e-9)


def test_masks_are_checked(few, tmp_path):
    soft, box = np.linspace(0, 1, np.prod(SHAPE)).reshape(SHAPE), np.pad(np.ones((3, 3, 3)), 1)
    far = nibabel.affines.from_matvec(AFFINE[:3, :3], AFFINE[:3, 3] + 500)
    for mask, resample, message in (
        (write_image(tmp_path / "soft.nii", soft), False, "should contain exactly two values"),
        (write_image(tmp_path / "empty.nii", np.zeros(SHAPE)), False, "it contains 1"),
        (write_image(tmp_path / "small.nii", box), False, "shape 5 × 5 × 5 instead of 9 × 11 × 7"),
        (write_image(tmp_path / "far.nii", box, far), True, "covers none of the maps' voxels"),
        (tmp_path / "none.nii", False, "The mask: no file was found at"),
        (None, False, r"cover only \d % of the standard \(MNI\) brain(.|\n)*`mask`"),
    ):
        refused_with(message, run, few, mask=mask, resample=resample)


def test_the_standard_brain_is_the_mask_by_default(tmp_path):
    affine = nibabel.affines.from_matvec(4 * np.eye(3), [-90, -126, -72])
    write_image(tmp_path / "map.nii", np.ones((46, 55, 46)), affine)
    space = common_space([open_map(tmp_path / "map.nii", "map")], None, resample=False)
    found = space.volume(np.ones(len(space.voxels)), 0.0)
    expected = resample_to_img(
        load_mni152_brain_mask(resolution=1),
        nibabel.load(tmp_path / "map.nii"),
        interpolation="nearest",
        force_resample=True,
        copy_header=True,
    ).get_fdata()
    assert 1.6e6 < found.sum() * 64 < 2.1e6
    assert (found != expected).mean() < 1e-3


def test_values_between_voxels_are_interpolated_and_missing_outside():
    places, source = np.indices((6, 7, 8)).astype(float), Grid((6, 7, 8), np.diag([2.0, 2, 2, 1]))
    volume = 10 + 2 * places[0] - places[1] + 3 * places[2]  # a line is its own linear interpolation
    target = Grid((4, 4, 20), nibabel.affines.from_matvec(np.eye(3), [3, 1, 5]))
    found = sampled(volume, source, target, np.arange(4 * 4 * 20), linear=True).reshape(target.shape, order="F")
    x, y, z = np.indices(target.shape) / 2 + np.array([1.5, 0.5, 2.5])[:, None, None, None]
    inside = z <= 7
    np.testing.assert_allclose(found[inside], (10 + 2 * x - y + 3 * z)[inside])
    np.testing.assert_array_equal(np.isnan(found), z > 7.5)


def test_people_of_other_groups_are_not_read(few, tmp_path):
    maps = pd.concat([few.maps, pd.DataFrame({"participant_id": ["x"], "path": ["none.nii"]})], ignore_index=True)
    r = pd.concat([few.r_indices, pd.DataFrame({"participant_id": ["x"], "r1": 0.9, "r2": 0.0})], ignore_index=True)
    np.testing.assert_array_equal(run(few, maps, r, [*few.group, "other"])[0].result.t, run(few)[0].result.t)


def test_clusters_have_sizes_peaks_and_one_sign():
    t, q = np.zeros(SHAPE), np.ones(SHAPE)
    for place, own_t, own_q in (
        (np.s_[1:3, 1:4, 2], -4, 0.01),
        (np.s_[2, 3, 2], -6, 0.001),
        (np.s_[3, 1:3, 2], 5, 0.02),  # touches the first, but has the other sign
        (np.s_[7, 8, 5], 3, 0.04),
        (np.s_[8, 9, 5], 3.5, 0.04),  # touches the third along an edge only
        (np.s_[5, 5, 5], 3, 0.06),
    ):
        t[place], q[place] = own_t, own_q
    result = Result(t.ravel(order="F"), q.ravel(order="F"), 50, Space(Grid(SHAPE, AFFINE), np.arange(t.size)))
    table = cluster_table([Comparison(2, "high", "r2 > 0.7", 20, 30, 0, 0, "", result)])
    expected = pd.DataFrame(
        [(1, -6, 0.001, 6), (2, 5, 0.02, 2), (3, 3.5, 0.04, 1), (4, 3, 0.04, 1)],
        columns=["cluster", "peak_t", "peak_q", "n_voxels"],
    ).assign(size_mm3=lambda table: 64.0 * table["n_voxels"], pattern=2, level="high")
    pd.testing.assert_frame_equal(table[expected.columns], expected, check_dtype=False, rtol=1e-12, atol=0)
    assert table.loc[0, ["x", "y", "z"]].tolist() == (AFFINE @ [2, 3, 2, 1])[:3].tolist() == [10, -10, 0]


@pytest.fixture
def stored(compared, tmp_path):
    """Return a folder of comparisons that held an outdated image before, and one of the user's."""
    for name in ("pattern-9_high_t", "mine"):
        (tmp_path / f"{name}.nii.gz").touch()
    files = {path.name for path in write_comparisons(tmp_path, compared)}
    assert {path.name for path in tmp_path.iterdir()} == {*files, "mine.nii.gz"}
    return tmp_path


def test_images_can_be_read_again_and_bytes_repeat(compared, stored):
    found, patients = compared[2], f"pattern 1 high, {compared[2].n_patients} patients v 25 controls"
    for kind, outside, intent in (("t", 0.0, ("t test", (found.result.freedom,))), ("q", 1.0, ("none", ()))):
        image = nibabel.load(stored / f"pattern-1_high_{kind}.nii.gz")
        np.testing.assert_allclose(image.get_fdata(), volume_of(found, kind, outside), rtol=1e-6)
        np.testing.assert_allclose([image.affine, image.get_qform()], [AFFINE, AFFINE])
        kinds = image.get_data_dtype(), image.header.get_xyzt_units()[0], image.header.get_intent()[:2]
        assert kinds == (np.float32, "mm", intent)
        assert patients in bytes(image.header["descrip"]).decode()
    before = (stored / "pattern-1_high_t.nii.gz").read_bytes()
    write_comparisons(stored, compared)
    assert (stored / "pattern-1_high_t.nii.gz").read_bytes() == before


def test_tables_say_what_was_compared_and_found(compared, stored):
    table = pd.read_csv(stored / "comparisons.csv", keep_default_na=False)
    told = {"level": ["low", "middle", "high", "regression"] * 2, "n_patients": [one.n_patients for one in compared]}
    assert table[[*told]].to_dict("list") == told
    unused = table["note"] != ""
    assert {*table.loc[unused, "t_map"]} == {""}
    assert all((stored / name).is_file() for name in table.loc[~unused, ["t_map", "q_map"]].to_numpy().ravel())
    assert table.loc[2, "n_significant"] == (compared[2].result.q < 0.05).sum() > 20
    assert (table.loc[2, "n_voxels"], table.shape) == (7 * 9 * 5, comparison_table(compared).shape)
    first = pd.read_csv(stored / "clusters.csv").query("pattern == 1 and level == 'high'").iloc[0]
    place = nibabel.affines.apply_affine(np.linalg.inv(AFFINE), first[["x", "y", "z"]].astype(float))
    assert ((place >= [2, 3, 2]) & (place <= [4, 5, 4])).all()
    assert first["peak_t"] < 0


def atlas(folder, values=None, dtype=np.int16):
    labels = np.repeat([7, 3000, 0, 0], 16).reshape(4, 4, 4)
    labels[2, 0, 0] = -2
    return Path(write_image(folder / "atlas.nii", labels if values is None else values, dtype=dtype))


def names_of(**columns):
    return pd.DataFrame({"label": [7, 3000, 5], "region": ["a", "b", "c"]} | columns)


def changes(**values):
    return pd.DataFrame({"region": list(values), "pattern": 1, "change_sd": list(values.values())})


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float64])
def test_labels_are_painted(tmp_path, dtype):
    table = changes(a=-1.5, b=2.0, c=3.0, d=1.0)
    (tmp_path / "pattern-9_severity-1.nii.gz").touch()
    paths, note = paint_patterns(table, atlas(tmp_path, dtype=dtype), names_of(), tmp_path)
    assert paths == list(tmp_path.glob("pattern-*")) == [tmp_path / "pattern-1_severity-1.nii.gz"]
    image = nibabel.load(paths[0])
    np.testing.assert_array_equal(image.get_fdata().ravel(), np.repeat([-1.5, 2.0, 0, 0], 16))
    np.testing.assert_array_equal(image.affine, AFFINE)
    assert note == "2 regions have no label in the image and 1 label of the image has no region"


@pytest.mark.parametrize(
    ("values", "names", "change"),
    [
        (None, names_of(), {"x": 1.0}),
        (None, names_of(label=[7, 7, 5]), {"a": 1.0}),
        (None, names_of(label=["7", "x", "5"]), {"a": 1.0}),
        (None, names_of().drop(columns="region"), {"a": 1.0}),
        (np.full((4, 4, 4), 0.5), names_of(), {"a": 1.0}),
        (np.full((4, 4, 4), np.nan), names_of(), {"a": 1.0}),
        (np.zeros((4, 4, 4, 2)), names_of(), {"a": 1.0}),
    ],
    ids=["no region", "twice", "text", "no column", "fractions", "gaps", "two volumes"],
)
def test_atlases_that_cannot_be_painted_are_refused(tmp_path, values, names, change):
    refused_with(".", paint_patterns, changes(**change), atlas(tmp_path, values, np.float32), names, tmp_path)
    assert not list(tmp_path.glob("pattern-*"))
