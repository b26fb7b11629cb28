"""One life of a study, from its table to its last report, watched; and what it left behind."""

import logging
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.interop.archives import checkpoint, save
from tests.test_cli import TINY, run, small_table
from tests.trust.watch import Watch, watching

FORMULAS = ("=cmd|' /C calc'!A0", "-1", "+49 123", "@x", "'=already", "＝x", '"=quoted', "a;=b")
REGION, SCORE = "@lAccumbens", "=recallPoints"  # names that would run, too
PLANTED = ("SECRET-", "/C calc'", REGION[1:], SCORE[1:])  # in no source of a library, which may be compiled on import
AGE, VOLUME, OUTLIER, POINTS = 77.7717, 0.31415926, 5.151515, 13.1313
SECRETS = ("SECRET", "77.77", "0.3141", "5.1515", "13.13", "calc", "49 123", "=already", "=quoted")
HEARD = "one line for certain: what is compiled already is not told again"


@dataclass
class Life:
    """A folder, what the watch saw, what the commands and loggers said, and the files of the run that failed."""

    folder: Path
    watch: Watch
    said: dict = field(default_factory=dict)
    logged: list = field(default_factory=list)
    failed: dict = field(default_factory=dict)

    def __call__(self, name, *arguments, code=0):
        self.said[name] = run(*arguments)
        assert self.said[name].exit_code == code, f"{name}: {self.said[name].output}"


def secret_table():
    """Return 80 people whose ids, and some of whose values, can be told from everything else."""
    table, rng = small_table(), np.random.default_rng(0)
    table["participant_id"] = [*FORMULAS, *(f"SECRET-{i}" for i in range(len(FORMULAS), len(table)))]
    table[SCORE] = rng.normal(20, 3, len(table)).round(2)
    table["amyloid"] = np.where(rng.uniform(size=len(table)) < 0.5, "+ve", "-ve")
    first, second, third = table.index[table["diagnosis"] == "PT"][:3]
    table.loc[first, ["age", "lAcc"]] = AGE, VOLUME
    table.loc[second, "rAcc"], table.loc[third, SCORE] = OUTLIER, POINTS
    return table.rename(columns={"lAcc": REGION})


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    """Simulate, fit with a failure on the way, go on, apply, report, describe, import, compare images."""
    import_module("matplotlib.font_manager")  # on a new machine it asks programs of the system for fonts
    root, listener, level = logging.getLogger(), logging.Handler(logging.DEBUG), logging.getLogger().level
    root.addHandler(listener)
    try:
        with pytest.MonkeyPatch.context() as patch, watching(patch) as watch:
            found = Life(tmp_path_factory.mktemp("life"), watch)
            listener.emit = lambda record: found.logged.append(record.getMessage())
            root.setLevel(logging.INFO)
            logging.getLogger("jax").info(HEARD)
            _live(found)
    finally:
        root.removeHandler(listener)
        root.setLevel(level)
    return found


def _live(life):
    folder, out, table = life.folder, life.folder / "run", secret_table()
    table.to_csv(folder / "cohort.csv", index=False)
    table[["participant_id"]].assign(later=np.arange(len(table)) % 7 + 0.5).to_csv(folder / "later.csv", index=False)
    life("simulate", "simulate", "basic", "--out", folder / "simulated.csv", "--controls", 30, "--patients", 30)
    fit = (
        *("fit", folder / "cohort.csv", "--out", out, "--patients", "PT", "--covariates", "age,sex"),
        *("--clinical", f"{SCORE},amyloid", "--bids", *TINY),
    )
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(Path, "replace", _failing(Path.replace))
        life("failed", *fit, "--log-json", code=3)
    life.failed = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    life("fit", *fit, "--log-json", "--no-report")  # it is written below, with scores that came later
    life("again", *fit)
    model = out / "model.safetensors"
    life("apply", "apply", model, folder / "cohort.csv", "--out", folder / "new.csv", "--report", folder / "new.html")
    life("report", "report", out, "--clinical", folder / "later.csv")
    life("describe", "describe", model)
    theirs = save(folder / "theirs.pt", checkpoint(n_regions=8)[0])
    names = ",".join(f"region{i}" for i in range(8))
    life(
        *("import", "import-official", theirs, "--out", folder / "theirs.safetensors", "--features", names),
        "--covariates",
        "sex,age",
    )
    if find_spec("nilearn") is not None:
        _compare_images(life, table)


def _failing(replace):
    """Return a way to rename files that fails where R-indices are written, with a message that tells of people."""

    def fail(path, target):
        if Path(target).name == "r_indices.csv":
            raise ValueError(f"could not convert {FORMULAS[0]} = {OUTLIER} of SECRET-17")
        return replace(path, target)

    return fail


def _compare_images(life, table):
    from tests.imaging.made_up import write_image

    rng, paths = np.random.default_rng(0), [f"{number}.nii" for number in range(len(table))]
    for path in paths:
        write_image(life.folder / path, rng.standard_normal((6, 6, 6)))
    write_image(life.folder / "mask.nii", np.pad(np.ones((4, 4, 4)), 1), dtype=np.uint8)
    table[["participant_id"]].assign(path=paths).to_csv(life.folder / "maps.csv", index=False)
    life(
        *("voxelwise", "voxelwise", life.folder / "run", "--maps", life.folder / "maps.csv"),
        *("--mask", life.folder / "mask.nii", "--regressions"),
    )
