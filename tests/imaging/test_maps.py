import nibabel
import numpy as np
import pandas as pd
import pytest
from nilearn.datasets import load_mni152_brain_mask
from nilearn.image import resample_to_img

from rindices.imaging import compare_maps, read_map_table
from rindices.imaging.images import Grid, common_space, open_map, sampled
from rindices.problems import InputError
from rindices.settings import ImageSettings
from tests.imaging.made_up import AFFINE, SHAPE, people, write_image


@pytest.fixture
def made(tmp_path):
    return people(tmp_path, n_patients=40)


def run(made, maps=None, **options):
    return compare_maps(
        made.maps if maps is None else maps,
        made.r_indices,
        made.group,
        settings=ImageSettings(**{"mask": made.mask} | options),
    )


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_paths_are_relative_to_the_table_and_ids_stay_text(tmp_path, separator):
    path = tmp_path / "maps.csv"
    rows = [["participant_id", "Map", "note"], ["007", "grey/a.nii", ""], ["8", "/b.nii", "x"], ["9", "n/a", ""]]
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
        ("participant_id,pfad\n1,a.nii\n", "has no column 'path'"),
        ("participantid,path\n1,a.nii\n", "has no column 'participant_id'. Did you mean 'participantid'"),
        ("participant_id,path,map\n1,a.nii,b.nii\n", "several columns for 'path': 'path', 'map'"),
        ("participant_id,path\n1,a.nii\n2,b.nii\n1,c.nii\n", "rows 2 and 4 belong to '1'"),
        ("participant_id,path\n1,a.nii\n2,b.nii\n3,a.nii\n", "the same image in rows 2 and 4"),
        ("participant_id,path\n", "has no rows below the header"),
        ("", "cannot be read as a table"),
    ],
)
def test_bad_tables_are_refused(tmp_path, text, message):
    path = tmp_path / "maps.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_map_table(path)


def test_ids_that_do_not_match_are_told(made):
    maps = made.maps.assign(participant_id=made.maps["participant_id"].str.removeprefix("sub-"))
    with pytest.raises(InputError, match="its ids look like '000', but those in the run look like 'sub-000'"):
        run(made, maps)


def broken(made, tmp_path, kind):
    """Spoil the map of the fifth person."""
    path, values = tmp_path / "sub-004.nii", made.values[4].copy()
    if kind == "missing":
        path.unlink()
    elif kind == "four dimensions":
        write_image(path, np.stack([values, values], axis=-1))
    elif kind == "text":
        path.write_text("not an image")
    elif kind == "cut":
        path.write_bytes(path.read_bytes()[:1000])
    elif kind == "nan":
        values[1:4] = np.nan
        write_image(path, values)
    elif kind == "constant":
        write_image(path, 0 * values)
    elif kind == "complex":
        write_image(path, values, dtype=np.complex64)
    elif kind == "shape":
        write_image(path, values[:, :, :5])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", r"Row 6 of maps: no file was found at .*sub-004\.nii"),
        ("four dimensions", r"Row 6 of maps: .* has 4 dimensions \(9 × 11 × 7 × 2\)"),
        ("text", "Row 6 of maps: .* cannot be read as an image"),
        ("cut", "Row 6 of maps: .*(incomplete|cannot be read)"),
        ("nan", "Row 6 of maps: .* has missing values .NaN. in 43 % of the voxels"),
        ("constant", "Row 6 of maps: .* has the value 0 at every voxel"),
        ("complex", "Row 6 of maps: .* contains complex64"),
        ("shape", r"1 of 65 maps differs(.|\n)*Row 6 of maps \(sub-004.nii\): shape 9 × 11 × 5 instead of 9 × 11 × 7"),
    ],
)
def test_bad_images_are_refused(made, tmp_path, kind, message):
    broken(made, tmp_path, kind)
    with pytest.raises(InputError, match=message):
        run(made, regressions=True)


def test_few_voxels_without_number_are_left_out(made, tmp_path):
    expected, values = run(made, regressions=True), made.values[-1].copy()
    values[4, 5, 3] = np.nan
    write_image(tmp_path / f"sub-{len(made.group) - 1:03}.nii", values)
    found = run(made, regressions=True)
    assert any(
        not np.array_equal(one.result.t, two.result.t) for one, two in zip(found, expected, strict=True) if one.result
    )
    volume = found[3].result.space.volume(found[3].result.t, 0.0)
    before = expected[3].result.space.volume(expected[3].result.t, 0.0)
    assert volume[4, 5, 3] == 0
    volume[4, 5, 3] = before[4, 5, 3]
    np.testing.assert_allclose(volume, before)


def test_flipped_maps_are_refused_or_resampled(made, tmp_path):
    expected, flipped = run(made), AFFINE.copy()
    flipped[0] = [4, 0, 0, -4 * (SHAPE[0] - 1) + 18]
    write_image(tmp_path / "sub-004.nii", made.values[4][::-1], flipped)
    with pytest.raises(InputError, match=r"axes RAS instead of LAS, first voxel at \(-14, .*\n.*resample=True"):
        run(made)
    np.testing.assert_allclose(run(made, resample=True)[0].result.t, expected[0].result.t, rtol=1e-9)


def test_masks_are_checked(made, tmp_path):
    for name, values, message in [
        ("soft", np.linspace(0, 1, np.prod(SHAPE)).reshape(SHAPE), "should contain two values"),
        ("empty", np.zeros(SHAPE), "it contains 1"),
        ("small", np.pad(np.ones((3, 3, 3)), 1), "shape 5 × 5 × 5 instead of 9 × 11 × 7"),
    ]:
        with pytest.raises(InputError, match=message):
            run(made, mask=write_image(tmp_path / f"{name}.nii", values))
    far = AFFINE.copy()
    far[:3, 3] += 500
    with pytest.raises(InputError, match="contains none of the maps' voxels"):
        run(made, mask=write_image(tmp_path / "far.nii", np.pad(np.ones((3, 3, 3)), 1), far), resample=True)
    with pytest.raises(InputError, match="The mask: no file was found at"):
        run(made, mask=tmp_path / "none.nii")
    with pytest.raises(InputError, match=r"cover only \d % of the standard \(MNI\) brain(.|\n)*`mask`"):
        run(made, mask=None)


def test_a_mask_of_ones_takes_every_voxel(made, tmp_path):
    whole = run(made, mask=write_image(tmp_path / "ones.nii", np.ones(SHAPE)))[0].result
    part = run(made)[0].result
    assert len(whole.t) == np.prod(SHAPE)
    np.testing.assert_allclose(whole.t[np.isin(whole.space.voxels, part.space.voxels)], part.t)


def test_the_standard_brain_is_the_mask_by_default(tmp_path):
    affine = np.diag([4.0, 4, 4, 1])
    affine[:3, 3] = -90, -126, -72
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
    shifted = np.diag([1.0, 1, 1, 1])
    shifted[:3, 3] = 3, 1, 5
    target = Grid((4, 4, 20), shifted)
    found = sampled(volume, source, target, np.arange(4 * 4 * 20), linear=True).reshape(target.shape, order="F")
    x, y, z = np.indices(target.shape) / 2 + np.array([1.5, 0.5, 2.5])[:, None, None, None]
    inside = z <= 7
    np.testing.assert_allclose(found[inside], (10 + 2 * x - y + 3 * z)[inside])
    np.testing.assert_array_equal(np.isnan(found), z > 7.5)


def test_people_of_other_groups_are_not_read(made, tmp_path):
    maps = pd.concat([made.maps, pd.DataFrame({"participant_id": ["x"], "path": ["none.nii"]})], ignore_index=True)
    r = pd.concat([made.r_indices, pd.DataFrame({"participant_id": ["x"], "r1": 0.9, "r2": 0.0})], ignore_index=True)
    found = compare_maps(maps, r, [*made.group, "other"], settings=ImageSettings(mask=made.mask))
    np.testing.assert_array_equal(found[0].result.t, run(made)[0].result.t)
