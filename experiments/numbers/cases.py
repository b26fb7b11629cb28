"""What the scripts of this folder share: common options, cohorts and jobs on all cores, and tables of results."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import jax
import pandas as pd
from joblib import Parallel, delayed
from people import Given, Recipe, make

from rindices import SurrealGAN
from rindices.core import devices
from rindices.judging.study import Study, training_set
from rindices.presets import Preset, blind

RESULTS = Path(__file__).parents[2] / "results"
_BEGAN = time.perf_counter()
_Result = TypeVar("_Result")


def say(text: str) -> None:
    """Print a message with the time elapsed."""
    print(f"{time.perf_counter() - _BEGAN:.0f} s: {text}", flush=True)


def parser(about: str | None) -> argparse.ArgumentParser:
    """Return an argument parser with the options that all scripts share."""
    devices.prepare()
    found = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--controls", type=Path, help="table of real healthy people")
    out = Path("trial") if "--small" in sys.argv else RESULTS  # a trial must not replace tables that were measured
    found.add_argument("--out", type=Path, default=out, help="folder for the tables (default: %(default)s)")
    found.add_argument("--small", action="store_true", help="few cohorts and few steps, to try the script")
    return found


def made(recipes: Sequence[Recipe], controls: Path | None, preset: Preset | None = None) -> list[tuple[Given, Study]]:
    """Simulate cohorts on all cores, and prepare each for training."""
    own = None if controls is None else pd.read_csv(controls)
    found = on_all_cores(_made, [(recipe, own, preset or blind()) for recipe in recipes])
    say(f"{len(found)} cohorts made")
    return found


def on_all_cores(function: Callable[..., _Result], arguments: Sequence[tuple[object, ...]]) -> list[_Result]:
    """Call a function with each tuple of arguments, in processes that leave the accelerator to this one."""
    jax.devices()  # initialised in this process first: the next line then affects only the others
    os.environ["JAX_PLATFORMS"] = "cpu"
    with Parallel(n_jobs=-1) as cores:
        return cores(delayed(_quiet)(function, *of) for of in arguments)


def row_by_row(
    function: Callable[..., list[dict[str, object]]], arguments: Sequence[tuple[object, ...]], path: Path
) -> pd.DataFrame:
    """Call a function on all cores and write all rows so far after each call, so that it can be stopped at any time."""
    jax.devices()
    os.environ["JAX_PLATFORMS"] = "cpu"
    rows: list[dict[str, object]] = []
    for found in Parallel(n_jobs=-1, return_as="generator")(delayed(_quiet)(function, *of) for of in arguments):
        rows += found
        write(rows, path)
    return pd.DataFrame(rows)


def _quiet(function: Callable[..., _Result], *arguments: object) -> _Result:
    warnings.simplefilter("ignore")
    return function(*arguments)


def _made(recipe: Recipe, own: pd.DataFrame | None, preset: Preset) -> tuple[Given, Study]:
    given = make(recipe, own)
    model = SurrealGAN(preset=preset, random_state=recipe.seed)
    study = training_set(model, preset, given.regions, given.patient, given.covariates).study
    study.people()  # computes the whitening here
    return given, study


def write(rows: Iterable[dict[str, object]], path: Path) -> pd.DataFrame:
    """Write a table of results."""
    table = pd.DataFrame(list(rows))
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False, float_format="%.6g")
    return table
