"""Pictures of the brain in the page, as a browser without a network shows them."""

import shutil

import nibabel
import numpy as np
import pandas as pd
import pytest

from rindices.pages.report import write_report
from rindices.simulate import simulate_cohort
from tests.pages.made_run import make_run
from tests.pages.page import missing


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run whose regions have places, with a voxel-wise comparison of which one subgroup was too small."""
    folder = tmp_path_factory.mktemp("brain") / "run"
    make_run(folder)
    patterns = pd.read_csv(folder / "patterns.csv")
    known = simulate_cohort("basic", n_controls=40, n_patients=40, seed=0).table.columns[4:]
    names = dict(zip(patterns["region"].unique(), known, strict=False))
    patterns.assign(region=patterns["region"].map(names)).to_csv(folder / "patterns.csv", index=False)
    images = folder / "voxelwise"
    images.mkdir()
    affine = np.array([[12.0, 0, 0, -66], [0, 12, 0, -100], [0, 0, 12, -60], [0, 0, 0, 1]])
    t, q = np.zeros((12, 14, 12), np.float32), np.ones((12, 14, 12), np.float32)
    t[4:7, 5:8, 4:7], q[4:7, 5:8, 4:7] = -5, 0.001
    for name, values in (("t", t), ("q", q)):
        nibabel.save(nibabel.Nifti1Image(values, affine), images / f"pattern-1_high_{name}.nii.gz")
    rows = [
        [1, "high", "r1 > 0.7", 20, 27, "pattern-1_high_t.nii.gz", "pattern-1_high_q.nii.gz", ""],
        [1, "low", "all < 0.4", 3, 0, "", "", "<b>fewer</b> than 10 patients"],
    ]
    columns = ["pattern", "level", "rule", "n_patients", "n_significant", "t_map", "q_map", "note"]
    pd.DataFrame(rows, columns=columns).to_csv(images / "comparisons.csv", index=False)
    columns = ["pattern", "level", "cluster", "x", "y", "z", "peak_t", "peak_q", "n_voxels", "size_mm3"]
    pd.DataFrame([[1, "high", 1, -10, -20, 8, -5, 0.001, 27, 46656]], columns=columns).to_csv(
        images / "clusters.csv", index=False
    )
    return folder


def test_pictures_are_seen_without_a_network(folder, tmp_path, visit):
    path = write_report(folder, tmp_path / "report.html", figures=tmp_path / "figures")
    assert path.stat().st_size < 5e6
    page = visit(path)
    for pattern in (1, 2, 3):
        drawing = page.locator(f'figure[data-name="brain_pattern_{pattern}"] svg.brain')
        assert drawing.bounding_box()["width"] >= 330
        assert drawing.locator("title").count() > 3  # in views that show the strongest regions of this pattern
    pictures = page.locator("section#voxelwise figure svg")
    assert pictures.count() == 2
    assert min(pictures.evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")) > 300
    page.locator("section#voxelwise summary").click()
    text = page.locator("section#voxelwise").inner_text()
    assert missing(text, "46,656", "<b>fewer</b>") == []
    assert any("voxelwise_1_high" in figure.name for figure in (tmp_path / "figures").iterdir())


def test_slider_moves_the_brains_by_keyboard(folder, tmp_path, visit):
    page = visit(write_report(folder, tmp_path / "report.html"))
    coloured = page.locator("svg.brain use:is(.lower, .higher)")
    strengths = "uses => uses.map(use => Number(use.getAttribute('fill-opacity')))"
    before = coloured.evaluate_all(strengths)
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    assert (page.locator("output").text_content(), {*coloured.evaluate_all(strengths)}) == ("0.00", {0})
    page.keyboard.press("End")
    assert coloured.evaluate_all(strengths) == pytest.approx(before, abs=2e-3)
    assert page.locator("svg.brain use.unsure").count() > 0  # they stay grey


def test_uncertainty_takes_the_place_of_change(folder, tmp_path, visit):
    page = visit(write_report(folder, tmp_path / "report.html"))
    maps = [page.locator(f'figure[data-name="{name}_pattern_2"]') for name in ("brain", "uncertainty")]
    assert [one.is_visible() for one in maps] == [True, False]
    page.locator("#uncertainty").press("Space")
    assert [one.is_visible() for one in maps] == [False, True]
    own = pd.read_csv(folder / "patterns.csv").query("pattern == 2").set_index("region")["spread_sd"]
    titles = " ".join(maps[1].locator("title").all_text_contents())
    assert len({name: value for name, value in own.items() if f"({name}): {2 * value:.2g} sd" in titles}) > 3
    shades = page.evaluate("[...document.querySelectorAll('.spreads .amount')].map((one) => one.outerHTML).join()")
    page.locator("#slider").press("ArrowLeft")  # uncertainty is that at severity 1
    assert shades == page.evaluate(
        "[...document.querySelectorAll('.spreads .amount')].map((one) => one.outerHTML).join()"
    )


def test_one_repetition_has_no_map_of_uncertainty(folder, tmp_path):
    alone = tmp_path / "run"
    shutil.copytree(folder, alone)
    pd.read_csv(alone / "patterns.csv").assign(spread_sd=np.nan).to_csv(alone / "patterns.csv", index=False)
    text = write_report(alone, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "brain_pattern_1" in text
    assert not [part for part in ("uncertainty_pattern", 'id="uncertainty"') if part in text]


def test_a_damaged_image_is_named(folder, tmp_path):
    image = folder / "voxelwise" / "pattern-1_high_t.nii.gz"
    before = image.read_bytes()
    image.write_bytes(before[:40])
    with pytest.raises(ValueError, match="pattern-1_high_t"):
        write_report(folder, tmp_path / "report.html")
    image.write_bytes(before)
