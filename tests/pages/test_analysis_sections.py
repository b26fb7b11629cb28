"""Sections on the brain, on follow-up and on disorders that patterns resemble."""

import re
import shutil

import numpy as np
import pandas as pd
import pytest

from rindices.analysis import FollowUp, prognosis, resemblance, survival_curves
from rindices.analysis.associations_and_resemblance import _FOLDER
from rindices.pages.report import make_report, write_report
from rindices.simulate import simulate_cohort
from tests.imaging.made_up import COARSE, write_image
from tests.pages.made_run import change_summary, make_run, rewrite, save_analysis
from tests.pages.page import missing

# Pictures of the brain in the page, as a browser without a network shows them.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run whose regions have places, with a voxel-wise comparison in which one subgroup was too small."""
    folder = tmp_path_factory.mktemp("brain") / "run"
    make_run(folder, names=[*simulate_cohort("basic", n_controls=40, n_patients=40, seed=0).table.columns[4:24]])
    images = folder / "voxelwise"
    images.mkdir()
    for name, outside, inside in (("t", 0, -5), ("q", 1, 0.001)):
        values = np.full((12, 14, 12), outside, np.float32)
        values[4:7, 5:8, 4:7] = inside
        write_image(images / f"pattern-1_high_{name}.nii.gz", values, COARSE)
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
    path = write_report(folder, tmp_path / "report.html")
    page = visit(path)
    for pattern in (1, 2, 3):
        drawing = page.locator(f'figure[data-name="brain_pattern_{pattern}"] svg.brain')
        assert drawing.bounding_box()["width"] >= 330
        assert drawing.locator("title").count() > 3  # views are chosen to show this pattern's strongest regions
    pictures = page.locator("section#voxelwise figure svg")
    widths = pictures.evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    assert (len(widths), min(widths) > 300) == (2, True)
    page.locator("section#voxelwise summary").click()
    assert not missing(page.locator("section#voxelwise").inner_text(), "46,656", "<b>fewer</b>")


def test_slider_moves_the_brains_by_keyboard_and_uncertainty_takes_the_place_of_change(folder, tmp_path, visit):
    page = visit(write_report(folder, tmp_path / "report.html"))
    coloured = page.locator("svg.brain use:is(.lower, .higher)")
    strengths = "uses => uses.map(use => Number(use.getAttribute('fill-opacity')))"
    before = coloured.evaluate_all(strengths)
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    assert (page.locator("output").text_content(), {*coloured.evaluate_all(strengths)}) == ("0.00", {0})
    page.keyboard.press("End")
    assert coloured.evaluate_all(strengths) == pytest.approx(before, abs=2e-3)
    assert page.locator("svg.brain use.unsure").count() > 0  # uncertain regions stay grey
    maps = [page.locator(f'figure[data-name="{name}_pattern_2"]') for name in ("brain", "uncertainty")]
    assert [one.is_visible() for one in maps] == [True, False]
    page.locator("#uncertainty").press("Space")
    assert [one.is_visible() for one in maps] == [False, True]
    own = pd.read_csv(folder / "patterns.csv").query("pattern == 2").set_index("region")["spread_sd"]
    titles = " ".join(maps[1].locator("title").all_text_contents())
    assert len({name: value for name, value in own.items() if f"({name}): {2 * value:.2g} sd" in titles}) > 3
    spreads = "[...document.querySelectorAll('.spreads .amount')].map((one) => one.outerHTML).join()"
    shades = page.evaluate(spreads)
    page.locator("#slider").press("ArrowLeft")  # uncertainty is always that at severity 1
    assert page.evaluate(spreads) == shades


def test_one_repetition_has_no_map_of_uncertainty(folder, tmp_path):
    alone = shutil.copytree(folder, tmp_path / "run")
    rewrite(alone / "patterns.csv", spread_sd=np.nan)
    maps = ["brain_pattern_1", "uncertainty_pattern", 'id="uncertainty"']
    assert missing(make_report(alone).html, *maps) == maps[1:]


def test_a_damaged_image_is_named(folder, tmp_path):
    image = shutil.copytree(folder, tmp_path / "run") / "voxelwise" / "pattern-1_high_t.nii.gz"
    image.write_bytes(image.read_bytes()[:40])
    with pytest.raises(ValueError, match="pattern-1_high_t"):
        make_report(tmp_path / "run")


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A run with follow-up of its people, and its hazard ratios."""
    folder = tmp_path_factory.mktemp("followed") / "run"
    make_run(folder, n_patterns=2)
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.uniform(size=(90, 2)), columns=["severity1", "severity2"])
    time = rng.exponential(np.exp(-2 * scores["severity1"].to_numpy()))
    follow_up = FollowUp(time, (time < 1).astype(float))
    table = prognosis(scores, follow_up, pd.DataFrame({"age": rng.normal(size=90)}), n_resamples=5)
    save_analysis(table, folder, "prognosis")
    save_analysis(survival_curves(scores, follow_up), folder, "survival_curves")
    change_summary(folder, follow_up={"time": "years", "event": "converted"})
    return folder, table["hazard_ratio"]


SAME_PEOPLE, STRATA = "follow-up data, but from the same people.", "with a stratum for each site"
SCORED = {
    "applied": True,
    "model": {"file": "m.safetensors", "sha256": "abc"},
    "variables": {"age": "number", "sex": "category", "site": "category"},
    "covariates": ["site"],
    "correction": {"site": "site"},
}
NOT_LEARNED_FROM = [
    "learned without the follow-up data. Concordances",
    "none of these people were used to train or adapt the model",
]
OTHER_EVENTS = {"time": "years", "event": "ill", "competing": "died", "entry": "came"}


@pytest.mark.parametrize(
    ("changes", "n_sites", "said", "unsaid"),
    [
        (
            {},
            1,
            [
                "time: <code>years</code>",
                "per increase of 0.1 in severity at the first visit were estimated with Cox models",
                SAME_PEOPLE,
            ],
            ["cumulative incidence", STRATA],
        ),
        ({"follow_up": OTHER_EVENTS}, 1, ["follow-up ends at the competing event (died)", "with entry times"], []),
        (SCORED, 1, NOT_LEARNED_FROM, [SAME_PEOPLE, STRATA]),
        (SCORED, 2, [*NOT_LEARNED_FROM, STRATA], [SAME_PEOPLE]),
    ],
    ids=["as it was", "other events", "scored", "scored at two sites"],
)
def test_report_has_hazard_ratios_and_curves_and_says_of_whom(followed, tmp_path, changes, n_sites, said, unsaid):
    folder, ratios = shutil.copytree(followed[0], tmp_path / "run"), followed[1]
    rewrite(folder / "variables.csv", site=lambda variables: variables.index % n_sites)
    change_summary(folder, **changes)
    report = make_report(folder)
    assert missing(report.html, f">{ratios[0]:.2f}</td>", *said, *unsaid) == unsaid
    assert "follow_up" in [name for name, *_ in report.gallery.figures]


def test_report_says_what_a_pattern_resembles(tmp_path):
    own = pd.read_csv(_FOLDER / "enigma.csv").query("disorder == 'autism' and measure == 'thickness'")
    names = [f"{side[0]}h_{region}_thickness" for side, region in zip(own["side"], own["region"], strict=True)]
    make_run(tmp_path, n_patterns=1, n_regions=68, names=names)
    patterns = pd.read_csv(tmp_path / "patterns.csv").assign(change_sd=own["d"].to_numpy())
    save_analysis(resemblance(patterns, n_spins=200), tmp_path, "resemblance")
    report = make_report(tmp_path)
    assert re.search(
        "Pattern 1, thickness: resembles autism.* more than rotated maps do .largest correlation 1.00", report.html
    )
    assert "resemblance" in [name for name, *_ in report.gallery.figures]
    rewrite(tmp_path / "analysis" / "resemblance.csv", beyond_p_corrected=0.1)
    assert "After adjusting for what all maps share, no corrected p is below 0.025." in make_report(tmp_path).html


def test_report_says_that_there_is_no_map(tmp_path):
    make_run(tmp_path, n_regions=4, names=["lh_cuneus_volume", "rh_cuneus_volume"])
    assert "No cortical maps of disorders are available for these regions" in make_report(tmp_path).html
