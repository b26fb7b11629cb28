import numpy as np
import pytest

nibabel = pytest.importorskip("nibabel", reason="nilearn is not installed")
pytest.importorskip("nilearn", reason="nilearn is not installed")

from rindices.plots.brain import colour_limit, glass, stat_mosaic  # noqa: E402


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def image(function):
    """Return an image on a coarse grid over the head."""
    affine = nibabel.affines.from_matvec(4 * np.eye(3), [-92, -128, -82])
    places = nibabel.affines.apply_affine(affine, np.stack(np.indices((46, 55, 46)), axis=-1))
    return nibabel.Nifti1Image(function(places).astype(np.float32), affine)


def blob(places, where, height):
    return height * np.exp(-((places - np.asarray(where)) ** 2).sum(axis=-1) / 200)


@pytest.mark.parametrize(
    ("values", "limit"),
    [([0.0312, -0.04], 0.04), ([-2.01], 2.1), ([np.nan, 123.0], 130.0), ([0.0], 1.0), ([], 1.0), ([1e-9], 1e-9)],
)
def test_colours_end_at_a_round_number(values, limit):
    assert colour_limit(values) == pytest.approx(limit)


def shown(axes):
    """Return the values shown by the last image of a panel."""
    return np.ma.filled(np.ma.masked_invalid(axes.images[-1].get_array()), 0) if axes.images else np.zeros(1)


def test_glass_shows_each_side_its_own():
    left = image(lambda places: blob(places, (-40, 0, 0), -5.0) + blob(places, (40, 0, 0), 2.0))
    drawn = [axes for axes in glass(left, "t").axes if axes.images]
    extremes = [(shown(axes).min(), shown(axes).max()) for axes in drawn]
    # The second panel is the view from behind.
    assert np.array(extremes[:3]) == pytest.approx(np.array([(-5, 0), (-5, 2), (0, 2)]), abs=0.3)
    assert {axes.images[-1].get_clim() for axes in drawn} == {(-5.0, 5.0)}


def test_mosaic_shows_the_slices_that_it_names():
    source = image(lambda places: np.where(np.abs(places).max(axis=-1) < 60, places[..., 2] + 0.5, np.nan))
    figure = stat_mosaic(source, "millimetres", limit=60)
    named = [(text.get_text(), axes) for axes in figure.axes for text in axes.texts]
    found = {int(text[3:].replace("−", "-")): shown(axes) for text, axes in named if text.startswith("z =")}
    assert len(found) == 14
    near = {height: values[values != 0] for height, values in found.items() if abs(height) < 55}
    assert [height for height, inside in near.items() if np.abs(inside - 0.5 - height).max() > 4] == []
    assert sum("(left)" in text for text in texts(figure)) == 4
    assert texts(figure).count("L") == texts(figure).count("R") == 14


def test_nothing_but_zeros_is_said():
    source = image(lambda places: 0.0 * places[..., 0])
    for figure in (stat_mosaic(source, "t"), glass(source, "t")):
        assert "Nothing to show: all values are zero." in texts(figure)


def test_images_stored_from_right_to_left_look_the_same():
    source, flip = image(lambda places: blob(places, (-40, 10, 20), -5.0)), np.diag([-1.0, 1, 1, 1])
    flip[0, 3] = source.shape[0] - 1
    stored = nibabel.Nifti1Image(np.ascontiguousarray(source.get_fdata(dtype=np.float32)[::-1]), source.affine @ flip)
    pairs = zip(glass(source, "t").axes, glass(stored, "t").axes, strict=True)
    assert all(np.allclose(shown(one), shown(other)) for one, other in pairs if one.get_label() != "scale")
