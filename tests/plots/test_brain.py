import json
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

nibabel = pytest.importorskip("nibabel", reason="nilearn is not installed")
pytest.importorskip("nilearn", reason="nilearn is not installed")

from matplotlib.collections import PathCollection  # noqa: E402
from matplotlib.colors import to_rgba  # noqa: E402

from rindices.interop.muse import MUSE72_NAMES, muse_regions  # noqa: E402
from rindices.plots.brain import COLOURS, colour_limit, glass, pattern_glass, place_regions, stat_mosaic  # noqa: E402

ASEG = (
    "{}-Thalamus-Proper",
    "{}-Thalamus",
    "{}-Caudate",
    "{}-Putamen",
    "{}-Pallidum",
    "{}-Hippocampus",
    "{}-Amygdala",
    "{}-Accumbens-area",
    "{}-VentralDC",
    "{}-Cerebellum-Cortex",
    "{}-Cerebellum-White-Matter",
    "{}-Cerebral-White-Matter",
    "{}-Lateral-Ventricle",
    "{}-Inf-Lat-Vent",
)
ASEG_MIDDLE = (
    "Brain-Stem",
    "3rd-Ventricle",
    "4th-Ventricle",
    "CC_Anterior",
    "CC_Mid_Anterior",
    "CC_Central",
    "CC_Mid_Posterior",
    "CC_Posterior",
)


def embedded():
    text = files("rindices.simulate").joinpath("reference_population.json").read_text(encoding="utf-8")
    return json.loads(text)["regions"]


def muse(form):
    rows = [row for row in muse_regions().reset_index().to_dict("records") if row["short"] or "{short}" not in form]
    sides = {"left": "Left ", "right": "Right ", "none": ""}
    return [form.format(side=sides[row["hemisphere"]], **row) for row in rows]


def centre(name):
    [point] = place_regions([name]).centres[["x", "y", "z"]].to_numpy()
    return tuple(point)


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def marks(axes):
    """Return place, colour and area of each mark."""
    clouds = [cloud for cloud in axes.collections if isinstance(cloud, PathCollection)]
    return [
        (*point, tuple(colour), cloud.get_sizes()[0])
        for cloud in clouds
        for point, colour in zip(cloud.get_offsets(), cloud.to_rgba(cloud.get_array()), strict=True)
    ]


def panels(figure):
    """Return the panels with marks, row by row."""
    return [axes for axes in figure.axes if marks(axes)]


def patterns(names, n_patterns=2):
    rng = np.random.default_rng(0)
    rows = [{"region": name, "pattern": pattern} for pattern in range(1, n_patterns + 1) for name in names]
    return pd.DataFrame(rows).assign(change_sd=rng.normal(size=len(rows)))


def grid(shape=(46, 55, 46), size=4.0):
    """Return the affine of a coarse grid over the head."""
    affine = np.diag([size, size, size, 1.0])
    affine[:3, 3] = -size * np.array(shape) / 2 + [0, -18, 10]
    return affine


def image(function, shape=(46, 55, 46), size=4.0):
    affine = grid(shape, size)
    places = nibabel.affines.apply_affine(affine, np.stack(np.indices(shape), axis=-1))
    return nibabel.Nifti1Image(function(places).astype(np.float32), affine)


def blob(places, where, height):
    return height * np.exp(-((places - np.asarray(where)) ** 2).sum(axis=-1) / 200)


@pytest.mark.parametrize(
    "names",
    [
        embedded(),
        MUSE72_NAMES,
        muse("MUSE_Volume_{number}"),
        muse("H_MUSE_Volume_{number}"),
        muse("{side}{name}"),
        muse("{side}{short}"),
        muse("{side}{short} {name}"),
        [name.format(side) for side in ("Left", "Right") for name in ASEG],
        ASEG_MIDDLE,
    ],
    ids=["embedded", "muse72", "numbers", "harmonised", "names", "short", "both", "aseg", "aseg middle"],
)
def test_known_regions_are_placed(names):
    placed = place_regions(names)
    assert placed.missing == []
    assert set(placed.centres["region"]) == set(names)


def test_a_region_has_one_place_under_all_its_names():
    same = (
        "rHip",
        "MUSE_Volume_47",
        "DL_MUSE_Volume_47",
        "Right Hippocampus",
        "right hippocampus",
        "Right-Hippocampus",
    )
    assert {centre(name) for name in same} == {(27.0, -21.0, -15.0)}
    assert centre("lh_G_cuneus_volume") == centre("ctx-lh-cuneus") == centre("lCun") == centre("Left Cun cuneus")
    both = place_regions(["MUSE_47+48 hippocampus"]).centres
    assert sorted(both["x"]) == [-27.0, 27.0]
    assert centre("MUSE_95 corpus callosum")[0] == centre("Brain-Stem")[0] == 0.0


def test_what_is_not_known_is_told_and_nothing_is_guessed():
    odd = ["lh_S_central_volume", "PO", "ACC", "lACC", "MUSE_Volume_601", "MUSE_47+999", "", "Left", "47", "PT_volume"]
    placed = place_regions(["lHip", *odd, "lHip"])
    assert placed.missing == odd
    assert placed.centres["region"].tolist() == ["lHip"]


def test_centres_lie_in_the_brain_and_grey_ones_at_grey_matter():
    from nilearn.datasets import load_mni152_brain_mask, load_mni152_gm_template
    from scipy.ndimage import maximum_filter

    mask, grey = load_mni152_brain_mask(resolution=2), load_mni152_gm_template(resolution=2)
    near = maximum_filter(grey.get_fdata(dtype=np.float32), size=5)
    known = place_regions(muse("MUSE_Volume_{number}")).centres
    tissue = muse_regions()["tissue"].to_numpy()
    voxels = np.round(nibabel.affines.apply_affine(np.linalg.inv(mask.affine), known[["x", "y", "z"]])).astype(int)
    assert mask.get_fdata()[tuple(voxels.T)].all()
    assert (near[tuple(voxels.T)][tissue == "grey"] > 0.5).all()


def test_marks_have_places_colours_and_sizes_of_their_changes():
    table = pd.DataFrame(
        {"region": ["lHip", "rHip", "Left-Amygdala", "nowhere"], "change_sd": [-2.0, 1.0, 0.0, 9.0], "pattern": 1}
    )
    table = pd.concat([table, table.assign(pattern=2, change_sd=[-0.5, 4.0, 0.0, 9.0])])
    figure = pattern_glass(table, 1)
    drawn = panels(figure)
    assert len(drawn) == 12
    for column, severity in enumerate((0.25, 0.5, 0.75, 1.0)):
        left, right, above = (drawn[row * 4 + column] for row in range(3))
        # The strongest change of any pattern that is drawn, 4, is where the colours end.
        hip = {side: to_rgba(COLOURS(0.5 + value * severity / 8)) for side, value in (("l", -2.0), ("r", 1.0))}
        assert {(x, y): colour for x, y, colour, _ in marks(left)}[-21, -15] == pytest.approx(hip["l"], abs=0.02)
        assert [(x, y) for x, y, *_ in marks(right)] == [(-21, -15)]
        assert marks(right)[0][2] == pytest.approx(hip["r"], abs=0.02)
        assert {(x, y) for x, y, *_ in marks(above)} == {(-27, -21), (27, -21), (-23, -4)}
        areas = {x: area for x, _, _, area in marks(above)}
        assert areas[-27] >= areas[27] >= areas[-23]
        assert severity < 1 or areas[-27] > areas[27] > areas[-23]
    # Anterior is left in the view of the left side, and right in that of the right side.
    assert drawn[0].get_xlim()[0] > drawn[0].get_xlim()[1]
    assert drawn[4].get_xlim()[0] < drawn[4].get_xlim()[1]


def test_severities_of_the_table_are_not_scaled():
    table = patterns(["lHip", "lAmy"], 1)
    told = pd.concat([table.assign(severity=step, change_sd=-(step**2)) for step in (0.0, 0.5, 1.0)])
    figure = pattern_glass(told, 1)
    assert not any("scaled" in text for text in texts(figure))
    assert [text for text in texts(figure) if text.startswith("severity")] == ["severity 0.5", "severity 1"]
    half = marks(panels(figure)[0])[0][2]
    assert half == pytest.approx(to_rgba(COLOURS(0.5 - 0.25 / 2)), abs=0.02)


@pytest.mark.parametrize(
    ("values", "limit"),
    [([0.0312, -0.04], 0.04), ([-2.01], 2.1), ([np.nan, 123.0], 130.0), ([0.0], 1.0), ([], 1.0), ([1e-9], 1e-9)],
)
def test_colours_end_at_a_round_number(values, limit):
    assert colour_limit(values) == pytest.approx(limit)


def shown(axes):
    """Return the values that the last image of a panel shows."""
    return np.ma.filled(np.ma.masked_invalid(axes.images[-1].get_array()), 0) if axes.images else np.zeros(1)


def test_glass_shows_each_side_its_own():
    left = image(lambda places: blob(places, (-40, 0, 0), -5.0) + blob(places, (40, 0, 0), 2.0))
    figure = glass(left, "t", threshold=1.0)
    drawn = [axes for axes in figure.axes if axes.images]
    extremes = [(shown(axes).min(), shown(axes).max()) for axes in drawn]
    assert extremes[0] == pytest.approx((-5, 0), abs=0.3)
    assert extremes[1] == pytest.approx((0, 2), abs=0.3)
    assert extremes[2] == pytest.approx((-5, 2), abs=0.3)
    assert all(((values == 0) | (np.abs(values) >= 1)).all() for values in map(shown, drawn))
    assert {axes.images[-1].get_clim() for axes in drawn} == {(-5.0, 5.0)}
    assert "Shown: values of 1 or more in either direction." in texts(figure)


def test_mosaic_shows_the_slices_that_it_names():
    source = image(lambda places: np.where(np.abs(places).max(axis=-1) < 60, places[..., 2] + 0.5, np.nan))
    figure = stat_mosaic(source, 0, "millimetres", limit=60)
    found = {}
    for axes in figure.axes:
        for text in axes.texts:
            if text.get_text().startswith("z ="):
                found[int(text.get_text()[3:].replace("−", "-"))] = shown(axes)
    assert len(found) == 14
    for height, values in found.items():
        inside = values[values != 0]
        if abs(height) < 55:
            assert inside.size
            assert np.abs(inside - 0.5 - height).max() <= 4
    assert sum("(left)" in text for text in texts(figure)) == 4
    assert texts(figure).count("L") == texts(figure).count("R") == 14


def test_nothing_above_the_threshold():
    source = image(lambda places: blob(places, (0, 0, 0), 2.0))
    for figure in (stat_mosaic(source, 3.5, "t"), glass(source, "t", threshold=3.5)):
        assert "Nothing to show: no value reaches 3.5 in either direction." in texts(figure)


def test_images_stored_from_right_to_left_look_the_same():
    source = image(lambda places: blob(places, (-40, 10, 20), -5.0))
    flip = np.diag([-1.0, 1, 1, 1])
    flip[0, 3] = source.shape[0] - 1
    stored = nibabel.Nifti1Image(np.ascontiguousarray(source.get_fdata(dtype=np.float32)[::-1]), source.affine @ flip)
    pairs = zip(glass(source, "t").axes, glass(stored, "t").axes, strict=True)
    assert all(np.allclose(shown(one), shown(other)) for one, other in pairs if one.get_label() != "scale")
