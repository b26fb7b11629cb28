import nibabel
import numpy as np
import pandas as pd
import pytest
from nilearn.image import load_img

from rindices.imaging import Comparison, cluster_table, compare_maps, comparison_table, write_comparisons
from rindices.imaging.image_output import paint_patterns
from rindices.imaging.images import Grid, Space
from rindices.imaging.voxelwise import Result
from rindices.problems import InputError
from rindices.settings import ImageSettings
from tests.imaging.made_up import AFFINE, SHAPE, people, write_image


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    made = people(tmp_path_factory.mktemp("maps"), effect=3.0)
    return compare_maps(
        made.maps, made.r_indices, made.group, made.covariates, settings=ImageSettings(mask=made.mask, regressions=True)
    )


def drawn(t, q, affine=AFFINE):
    space = Space(Grid(t.shape, affine), np.arange(t.size))
    result = Result(t.ravel(order="F"), q.ravel(order="F"), 50, space)
    return Comparison(2, "high", "r2 > 0.7", 20, 30, 0, 0, "", result)


def test_clusters_have_sizes_peaks_and_one_sign():
    t, q = np.zeros(SHAPE), np.ones(SHAPE)
    t[1:3, 1:4, 2], q[1:3, 1:4, 2] = -4, 0.01
    t[2, 3, 2], q[2, 3, 2] = -6, 0.001
    t[3, 1:3, 2], q[3, 1:3, 2] = 5, 0.02  # touches the first, but has the other sign
    t[7, 8, 5], q[7, 8, 5] = 3, 0.04
    t[8, 9, 5], q[8, 9, 5] = 3.5, 0.04  # touches the third with an edge only
    t[5, 5, 5], q[5, 5, 5] = 3, 0.06
    table = cluster_table([drawn(t, q)])
    assert (table["cluster"].tolist(), table["n_voxels"].tolist()) == ([1, 2, 3, 4], [6, 2, 1, 1])
    assert table["size_mm3"].tolist() == pytest.approx([6 * 64, 128, 64, 64])
    assert (table["peak_t"].tolist(), table["peak_q"].tolist()) == ([-6, 5, 3.5, 3], [0.001, 0.02, 0.04, 0.04])
    assert table.loc[0, ["x", "y", "z"]].tolist() == (AFFINE @ [2, 3, 2, 1])[:3].tolist() == [10, -10, 0]
    assert (set(table["pattern"]), set(table["level"])) == ({2}, {"high"})


def test_images_can_be_read_again(compared, tmp_path):
    files = write_comparisons(tmp_path / "voxelwise", compared)
    assert sorted(path.name for path in (tmp_path / "voxelwise").iterdir()) == sorted(path.name for path in files)
    found = compared[2]
    images = {kind: nibabel.load(tmp_path / "voxelwise" / f"pattern-1_high_{kind}.nii.gz") for kind in "tq"}
    for kind, outside in (("t", 0.0), ("q", 1.0)):
        image, expected = images[kind], found.result.space.volume(getattr(found.result, kind), outside)
        np.testing.assert_allclose(image.get_fdata(), expected, rtol=1e-6)
        np.testing.assert_array_equal(image.affine, AFFINE)
        np.testing.assert_allclose(image.get_qform(), AFFINE)
        assert (image.get_data_dtype(), image.header.get_xyzt_units()[0]) == (np.float32, "mm")
        assert f"pattern 1 high, {found.n_patients} patients v 25 controls" in bytes(image.header["descrip"]).decode()
        assert load_img(image).shape == SHAPE
    assert images["t"].header.get_intent()[:2] == ("t test", (found.result.freedom,))
    assert (images["q"].get_fdata()[0, 0, 0], images["t"].get_fdata()[0, 0, 0]) == (1, 0)


def test_tables_say_what_was_compared_and_found(compared, tmp_path):
    write_comparisons(tmp_path, compared)
    table = pd.read_csv(tmp_path / "comparisons.csv", keep_default_na=False)
    assert table["level"].tolist() == ["low", "middle", "high", "regression"] * 2
    assert table["n_patients"].tolist() == [found.n_patients for found in compared]
    unused = table["note"] != ""
    assert unused.any()
    assert (table.loc[unused, "t_map"] == "").all()
    assert all((tmp_path / name).is_file() for name in table.loc[~unused, ["t_map", "q_map"]].to_numpy().ravel())
    assert table.loc[2, "n_significant"] == (compared[2].result.q < 0.05).sum() > 20
    assert table.loc[2, "n_voxels"] == 7 * 9 * 5
    clusters = pd.read_csv(tmp_path / "clusters.csv")
    first = clusters[(clusters["pattern"] == 1) & (clusters["level"] == "high")].iloc[0]
    place = np.linalg.inv(AFFINE) @ [first["x"], first["y"], first["z"], 1]
    assert ((place[:3] >= [2, 3, 2]) & (place[:3] <= [4, 5, 4])).all()
    assert first["peak_t"] < 0
    assert comparison_table(compared).shape == table.shape


def test_images_of_an_earlier_time_are_removed_and_bytes_repeat(compared, tmp_path):
    (tmp_path / "pattern-9_high_t.nii.gz").write_bytes(b"")
    (tmp_path / "mine.nii.gz").write_bytes(b"")
    write_comparisons(tmp_path, compared)
    before = (tmp_path / "pattern-1_high_t.nii.gz").read_bytes()
    write_comparisons(tmp_path, compared)
    assert (tmp_path / "pattern-1_high_t.nii.gz").read_bytes() == before
    assert not (tmp_path / "pattern-9_high_t.nii.gz").exists()
    assert (tmp_path / "mine.nii.gz").exists()


def atlas(folder, values=None, dtype=np.int16):
    labels = np.zeros((4, 4, 4))
    labels[0], labels[1], labels[2, 0, 0] = 7, 3000, -2
    path = folder / "atlas.nii"
    write_image(path, labels if values is None else values, dtype=dtype)
    return path


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
    image, expected = nibabel.load(paths[0]), np.zeros((4, 4, 4))
    expected[0], expected[1] = -1.5, 2.0
    np.testing.assert_array_equal(image.get_fdata(), expected)
    np.testing.assert_array_equal(image.affine, AFFINE)
    assert note == "2 regions without a label in the image, 1 label of the image without a region"


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
    with pytest.raises(InputError):
        paint_patterns(changes(**change), atlas(tmp_path, values, np.float32), names, tmp_path)
    assert not list(tmp_path.glob("pattern-*"))
