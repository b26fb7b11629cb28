"""One life of a study, from its table to its last report, watched; and what it left behind."""

import logging
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from rindices.cli.console import set_output
from rindices.run import workflow
from tests.interop.archives import checkpoint, save
from tests.test_cli import TINY, run, small_table
from tests.trust.watch import watching

FORMULAS = ("=cmd|' /C calc'!A0", "-1", "+49 123", "@x", "'=already", "＝x", '"=quoted', "a;=b")
REGION, SCORE = "@lAcc", "=score"  # names that would run, too
AGE, VOLUME, OUTLIER, POINTS = 77.7717, 0.31415926, 5.151515, 13.1313
SECRETS = ("SECRET", "77.77", "0.3141", "5.1515", "13.13", "calc", "49 123", "=already", "=quoted")


@dataclass
class Life:
    """A folder, what the commands said, what loggers said, and what the watch saw."""

    folder: object
    watch: object = None
    said: dict = field(default_factory=dict)
    logged: list = field(default_factory=list)
    failed: dict = field(default_factory=dict)

    def __call__(self, name, *arguments, code=0):
        result = run(*arguments)
        set_output()
        assert result.exit_code == code, f"{name}: {result.output}"
        self.said[name] = result
        return result


HEARD = "one line for certain: what is compiled already is not told again"


class _Listener(logging.Handler):
    def __init__(self, heard):
        super().__init__(logging.DEBUG)
        self.heard = heard

    def emit(self, record):
        self.heard.append(record.getMessage())


def secret_table():
    """Return 80 people whose ids, and some of whose values, can be told from everything else."""
    table = small_table()
    table["participant_id"] = [*FORMULAS, *(f"SECRET-{i}" for i in range(len(FORMULAS), len(table)))]
    patients = table.index[table["diagnosis"] == "PT"]
    table.loc[patients[0], ["age", "lAcc"]] = AGE, VOLUME
    table.loc[patients[1], "rAcc"] = OUTLIER
    rng = np.random.default_rng(0)
    table[SCORE] = rng.normal(20, 3, len(table)).round(2)
    table.loc[patients[2], SCORE] = POINTS
    table["amyloid"] = np.where(rng.uniform(size=len(table)) < 0.5, "+ve", "-ve")
    return table.rename(columns={"lAcc": REGION})


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    """Simulate, fit with a failure on the way, go on, apply, report, describe, import, compare images."""
    import_module("matplotlib.font_manager")  # on a new machine it asks programs of the system for fonts
    found, patch = Life(tmp_path_factory.mktemp("life")), pytest.MonkeyPatch()
    listener, level = _Listener(found.logged), logging.getLogger().level
    logging.getLogger().addHandler(listener)
    try:
        with watching(patch) as found.watch:
            logging.getLogger().setLevel(logging.INFO)
            logging.getLogger("jax").info(HEARD)
            _live(found, patch)
    finally:
        logging.getLogger().removeHandler(listener)
        logging.getLogger().setLevel(level)
        patch.undo()
    return found


def _live(life, patch):
    folder, out = life.folder, life.folder / "run"
    table = secret_table()
    later = table[["participant_id"]].assign(later=np.arange(len(table)) % 7 + 0.5)
    table.to_csv(folder / "cohort.csv", index=False)
    later.to_csv(folder / "later.csv", index=False)
    life("simulate", "simulate", "basic", "--out", folder / "simulated.csv", "--controls", 30, "--patients", 30)
    options = ("--patients", "PT", "--covariates", "age,sex", "--clinical", f"{SCORE},amyloid", "--bids", *TINY)
    fit = ("fit", folder / "cohort.csv", "--out", out, *options)

    def fail(*_):
        raise ValueError(f"could not convert {FORMULAS[0]} = {OUTLIER} of SECRET-17")

    with patch.context() as broken:
        broken.setattr(workflow, "_write_results", fail)
        life("failed", *fit, "--log-json", code=3)
    life.failed = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    life("fit", *fit, "--log-json", "--no-report")  # it is written below, with scores that came later
    life("again", *fit)
    model = out / "model.safetensors"
    life("apply", "apply", model, folder / "cohort.csv", "--out", folder / "new.csv", "--report", folder / "new.html")
    life("report", "report", out, "--clinical", folder / "later.csv")
    life("describe", "describe", model)
    content, _ = checkpoint(n_regions=8)
    names = ",".join(f"region{i}" for i in range(8))
    imported = ("import-official", save(folder / "theirs.pt", content), "--out", folder / "theirs.safetensors")
    life("import", *imported, "--features", names, "--covariates", "sex,age")
    if find_spec("nilearn") is not None:
        _compare_images(life, table)


def _compare_images(life, table):
    import nibabel

    rng, affine = np.random.default_rng(0), np.diag([12.0, 12, 12, 1])
    paths = []
    for number in range(len(table)):
        image = nibabel.Nifti1Image(rng.standard_normal((6, 6, 6)).astype(np.float32), affine)
        nibabel.save(image, life.folder / f"{number}.nii")
        paths.append(f"{number}.nii")
    mask = np.pad(np.ones((4, 4, 4), np.uint8), 1)
    nibabel.save(nibabel.Nifti1Image(mask, affine), life.folder / "mask.nii")
    pd.DataFrame({"participant_id": table["participant_id"], "path": paths}).to_csv(
        life.folder / "maps.csv", index=False
    )
    images = ("--maps", life.folder / "maps.csv", "--mask", life.folder / "mask.nii", "--regressions")
    life("voxelwise", "voxelwise", life.folder / "run", *images)
