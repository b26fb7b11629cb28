"""Models and run folders of the one format, with the results of today's code: read README.md before running this.

    python -m tests.longevity.freeze

remakes all of `frozen/` and `runs/` (some minutes on two cores), or only those whose names are given.
"""

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
FROZEN, RUNS = HERE / "frozen", HERE / "runs"
COHORT, PEOPLE = HERE / "cohort.csv", HERE / "people.csv"
MODELS = {
    "linear": "--covariates age,sex --patterns 3 --steps 3000",
    "every-correction": "--covariates age,sex,icv --smooth age --interactions age:sex --proportion icv --site site "
    "--patterns 3 --steps 1000",
    "correlated": "--patterns 2 --latent correlated --method blind --steps 1000",
    "no-networks": "--covariates age,sex --patterns 3 --method linear",
    "imported": "",
}
FITTED = "--control CN --repetitions 4 --unit mL --no-report"
FINISHED = (
    "fit cohort.csv --out finished --control CN --patients PT --covariates age,sex --smooth age --site site "
    "--exclude icv --patterns 2-3 --repetitions 3 --steps 300 --unit mL"
)
INTERRUPTED = (
    "fit cohort.csv --out interrupted --control CN --patients PT --covariates age,sex --patterns 2 "
    "--repetitions 3 --steps 3000"
)
# `rindices`, and a version that stops once two of its trainings are in the journal, waiting to be killed.
PROGRAM = "from rindices.cli import main; main()"
STOPPING = f"from tests.survival.command import hold; hold('.safetensors', 2); {PROGRAM}"
NOT_KEPT = ("report.html", "r_indices.png", "lock", "holder.txt", "trained", "*.unfinished")


def model_of(name):
    """Return the frozen model of this name."""
    from rindices import load_model

    return load_model(FROZEN / name / "model.safetensors")


def scores_of(model, people):
    """Return R-indices, their spread, and severities with their limits where the model knows them."""
    asked = inputs_of(model, people)
    scores = {"r{}": model.transform(*asked), "r{}_sd": model.spread(*asked), "severity{}": model.severities(*asked)}
    if model.scale_.quantiles is not None:
        scores["severity{}_low"], scores["severity{}_high"] = model.intervals(*asked)
    columns = {name.format(k + 1): of[:, k] for name, of in scores.items() for k in range(model.n_patterns)}
    return pd.concat([people["participant_id"], pd.DataFrame(columns)], axis=1)


def maps_of(model, people):
    """Return the change of each region by each pattern in the controls among the people."""
    regions, covariates = inputs_of(model, people)
    controls = people["diagnosis"] == "CN"
    return model.pattern_maps(regions[controls], None if covariates is None else covariates[controls])


def inputs_of(model, people):
    """Return the regions and covariates that a model asks for."""
    covariates = [spec.name for spec in model.contract_.covariates]
    return people[list(model.contract_.features)], people[covariates] if covariates else None


def description_of(path):
    """Return the lines that `rindices describe` prints, with runs of spaces collapsed."""
    from rindices.cli import app

    printed, wide = io.StringIO(), mock.patch.dict(os.environ, COLUMNS="500")
    with wide, contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        app(["describe", str(path)])
    return [" ".join(line.split()) for line in printed.getvalue().splitlines()]


def rindices(folder, *words):
    """Run the command in a folder, as a separate process."""
    subprocess.run([sys.executable, "-c", PROGRAM, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def imported(folder):
    """Import a checkpoint in the layout of the authors' package, with random weights; return the model file."""
    from tests.interop.archives import checkpoint, save

    table = pd.read_csv(COHORT)
    controls, regions = table[table["diagnosis"] == "CN"], list(table)[-24:]
    content, _ = checkpoint(n_regions=len(regions), n_patterns=3)
    volumes, covariates = controls[regions].to_numpy(), controls[["age", "icv"]].to_numpy(float)
    content["normalization_variables"] = {"cn_mean": volumes.mean(axis=0), "cn_std": volumes.std(axis=0)}
    content["correction_variables"] = {
        "min_cov": covariates.min(axis=0),
        "max_cov": covariates.max(axis=0),
        "beta": np.stack([-0.1 * volumes.mean(axis=0), 0.2 * volumes.mean(axis=0)]),
    }
    save(folder / "checkpoint.pt", content)
    named = ("--features", ",".join(regions), "--covariates", "age,icv")
    rindices(folder, "import-official", "checkpoint.pt", "--out", "model.safetensors", *named)
    return folder / "model.safetensors"


def freeze_model(name, folder):
    """Remake a model, and keep its results for the people of `people.csv` with today's code."""
    if name == "imported":
        path = imported(folder)
    else:
        rindices(folder, "fit", "cohort.csv", "--out", "run", *FITTED.split(), *MODELS[name].split())
        path = folder / "run" / "model.safetensors"
    (FROZEN / name).mkdir(parents=True, exist_ok=True)
    kept, people = Path(shutil.copy(path, FROZEN / name / "model.safetensors")), pd.read_csv(PEOPLE)
    for file, table_of in (("scores.csv", scores_of), ("maps.csv", maps_of)):
        table_of(model_of(name), people).to_csv(FROZEN / name / file, index=False, float_format="%.17g")
    said = [line for line in description_of(kept) if not line.startswith("Model:")]
    (FROZEN / name / "describe.txt").write_text("\n".join(said) + "\n", encoding="utf-8")


def freeze_run(name, folder):
    """Remake a run folder: a finished one, or one killed after two of its three trainings."""
    from tests.survival.conftest import held, kill

    if name == "finished":
        rindices(folder, *FINISHED.split())
    else:
        line = [sys.executable, "-c", STOPPING, *INTERRUPTED.split()]
        kill(held(subprocess.Popen(line, cwd=folder, stdout=subprocess.DEVNULL)))
    shutil.rmtree(RUNS / name, ignore_errors=True)
    shutil.copytree(folder / name, RUNS / name, ignore=shutil.ignore_patterns(*NOT_KEPT))


def main():
    parser = argparse.ArgumentParser(description="Make frozen models and runs again.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join([*MODELS, 'finished', 'interrupted'])} (default: all)")
    for name in parser.parse_args().names or [*MODELS, "finished", "interrupted"]:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(COHORT, folder)
            (freeze_model if name in MODELS else freeze_run)(name, Path(folder))


if __name__ == "__main__":
    main()
