"""Keep what a model says about the people of `people.csv`, for ever: see README.md before you run this.

    python tests/longevity/freeze.py NAME MODEL

copies a model file to `frozen/NAME` and writes beside it what today's code says. It never replaces anything.
"""

import argparse
import contextlib
import io
import os
import shutil
from pathlib import Path
from unittest import mock

import pandas as pd

HERE = Path(__file__).parent
FROZEN = HERE / "frozen"
PEOPLE = HERE / "people.csv"
ALL_DIGITS = "%.17g"


def scores_of(model, people):
    """Return R-indices, their spread, and severities with their limits where the model has them."""
    asked = inputs_of(model, people)
    found = {"r{}": model.transform(*asked), "r{}_sd": model.spread(*asked)}
    if model.scale_ is not None:
        low, high = model.intervals(*asked)
        found |= {"severity{}": model.severities(*asked), "severity{}_low": low, "severity{}_high": high}
    columns = {name.format(k + 1): of[:, k] for name, of in found.items() for k in range(model.n_patterns)}
    return pd.concat([people["participant_id"], pd.DataFrame(columns)], axis=1)


def maps_of(model, people):
    """Return what each pattern does to each region of the controls among the people."""
    regions, covariates = inputs_of(model, people)
    controls = people["diagnosis"] == "CN"
    return model.pattern_maps(regions[controls], None if covariates is None else covariates[controls])


def inputs_of(model, people):
    """Return the regions and covariates that a model asks for."""
    covariates = [spec.name for spec in model.contract_.covariates]
    return people[list(model.contract_.features)], people[covariates] if covariates else None


def description_of(path):
    """Return what `rindices describe` prints, each line without runs of spaces."""
    from rindices.cli import app

    printed = io.StringIO()
    wide = mock.patch.dict(os.environ, COLUMNS="500")
    with wide, contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        app(["describe", str(path)])
    return [" ".join(line.split()) for line in printed.getvalue().splitlines()]


def main():
    parser = argparse.ArgumentParser(description="Keep a model and what it says about people.csv.")
    parser.add_argument("name", help="version of the format, a hyphen, what it has: 2-linear")
    parser.add_argument("model", type=Path)
    given = parser.parse_args()
    from rindices import load_model

    people, model = pd.read_csv(PEOPLE), load_model(given.model)
    folder = FROZEN / given.name
    folder.mkdir()  # an error if it exists: what is frozen is never made again
    path = Path(shutil.copy(given.model, folder / "model.safetensors"))
    scores_of(model, people).to_csv(folder / "scores.csv", index=False, float_format=ALL_DIGITS)
    maps_of(model, people).to_csv(folder / "maps.csv", index=False, float_format=ALL_DIGITS)
    said = [line for line in description_of(path) if not line.startswith("Model:")]
    (folder / "describe.txt").write_text("\n".join(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
