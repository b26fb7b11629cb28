"""Brain images from the command line: voxel-wise comparisons, painted atlases, and their pictures in the report."""

import nibabel
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rindices.simulate import simulate_cohort
from tests.imaging.made_up import COARSE, write_image
from tests.pages.page import missing
from tests.test_cli import told

SHAPE = (12, 14, 12)
BOX = (slice(4, 7), slice(5, 8), slice(4, 7))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A run, one image per person with an effect of r1 in a box, a mask, and an atlas of three regions."""
    folder = tmp_path_factory.mktemp("brains")
    table = simulate_cohort("basic", n_controls=40, n_patients=60, seed=0).table.iloc[:, : 4 + 12]
    table.to_csv(folder / "cohort.csv", index=False)
    told(
        *("fit", folder / "cohort.csv", "--out", folder / "run", "--covariates", "age,sex", "--patterns", "2"),
        *("--repetitions", "1", "--steps", "10", "--no-report"),
    )
    scores, rng = pd.read_csv(folder / "run" / "r_indices.csv"), np.random.default_rng(0)
    paths, effects = scores["participant_id"] + ".nii", 1.5 * stats.zscore(scores["r1"])
    for path, effect in zip(paths, effects, strict=True):
        values = rng.standard_normal(SHAPE).astype(np.float32)
        values[BOX] += effect
        write_image(folder / path, values, COARSE)
    scores[["participant_id"]].assign(path=paths).to_csv(folder / "maps.csv", index=False)
    write_image(folder / "mask.nii", np.pad(np.ones([side - 2 for side in SHAPE]), 1), COARSE)
    labels = np.zeros(SHAPE, np.int16)
    labels[2:4, 5:8, 5:8], labels[8:10, 5:8, 5:8], labels[5, 5, 5] = 1, 2, 3
    write_image(folder / "atlas.nii", labels, COARSE)
    pd.DataFrame({"label": [1, 2, 3], "region": [*table.columns[4:6], "elsewhere"]}).to_csv(
        folder / "atlas.csv", index=False
    )
    return folder


def test_an_effect_is_found_where_it_is_and_shown(study):
    maps, page = study / "run" / "voxelwise", study / "run" / "report.html"
    command = ("voxelwise", study / "run", "--mask", study / "mask.nii", "--regressions", "--maps")
    assert "Pattern 1, regression (60 patients)" in told(*command, study / "maps.csv")
    q = nibabel.load(maps / "pattern-1_regression_q.nii.gz").get_fdata()
    assert (q[BOX] < 0.05).mean() > 0.9
    assert ((q < 0.05).sum() - (q[BOX] < 0.05).sum()) / q.size < 0.02
    assert missing(page.read_text(), "Voxel-wise maps", "sub-0001") == ["sub-0001"]  # the heading, but no ids
    before = {path.name: path.read_bytes() for path in maps.iterdir()}
    pd.read_csv(study / "maps.csv").head(3).to_csv(study / "few.csv", index=False)
    # A refused comparison leaves existing maps alone.
    assert not missing(told(*command, study / "few.csv", code=2), "few.csv", "fewer than")
    assert {path.name: path.read_bytes() for path in maps.iterdir()} == before


def test_patterns_are_painted_on_an_atlas_at_each_severity(study, tmp_path):
    command = ("report", study / "run", "--out", tmp_path / "r.html", "--atlas", study / "atlas.nii")
    assert "1 label of the image has no region" in told(
        *command, "--atlas-table", study / "atlas.csv", "--figures", tmp_path / "figures"
    )
    assert {path.name for path in (study / "run" / "brain").iterdir()} == {
        f"pattern-{n}_severity-{s}.nii.gz" for n in (1, 2) for s in (0.25, 0.5, 0.75, 1)
    }
    severities = pd.read_csv(study / "run" / "analysis" / "severities.csv", index_col=["region", "pattern", "severity"])
    change = severities["change_sd"][pd.read_csv(study / "atlas.csv")["region"][0], 1, 0.5]
    image = nibabel.load(study / "run" / "brain" / "pattern-1_severity-0.5.nii.gz").get_fdata()
    assert (image[2, 5, 5], image[5, 5, 5]) == (pytest.approx(change, rel=1e-4), 0)
    assert any("brain_slices_1" in path.name for path in (tmp_path / "figures").iterdir())
