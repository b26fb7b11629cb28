"""Results of an experiment: a CSV that grows group by group and is written atomically, and a JSON of its settings."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import jax
import pandas as pd
from cases import KINDS, SEEDS, SIZE, SPREAD

import rindices
from rindices.core import devices
from rindices.files import atomic_file, write_csv
from rindices.model import plain
from rindices.presets import Preset, blind, paper

RESULTS = Path(__file__).parents[2] / "results"


class Results:
    """A tidy CSV of finished groups.

    Parameters
    ----------
    path : Path
        The CSV; if it exists, it is read, and its groups are not computed again.
    keys : sequence of str
        Columns that identify groups.
    comparable : bool
        False for small runs, which only show that a script works.
    """

    def __init__(self, path: Path, keys: Sequence[str], *, comparable: bool = True) -> None:
        self.path, self.keys, self.comparable = path, list(keys), comparable
        self.table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=[*self.keys, "comparable"])
        if len(self.table) and bool(self.table["comparable"].iloc[0]) != comparable:
            raise SystemExit(f"{path} holds results of the other size (--small): give another file with --out.")

    def has(self, **group: Any) -> bool:
        """Return whether a group exists."""
        if self.table.empty:
            return False
        same = pd.Series(True, index=self.table.index)
        for name, value in group.items():
            same &= self.table[name] == value
        return bool(same.any())

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add a group and write the table."""
        new = pd.DataFrame([*rows]).assign(comparable=self.comparable)
        self.table = new if self.table.empty else pd.concat([self.table, new], ignore_index=True)
        write_csv(self.table, self.path)

    def describe(self, preset: Preset | None = None, **settings: Any) -> None:
        """Write the settings of the table to a JSON file beside it."""
        about = {
            "version": rindices.__version__,
            "date": datetime.now(UTC).date().isoformat(),
            "device": device(),
            "comparable": self.comparable,
            "preset": preset,
        }
        with atomic_file(self.path.with_suffix(".json")) as beside:
            beside.write_text(json.dumps(about | settings, indent=1, default=plain) + "\n", encoding="utf-8")


def device() -> str:
    """Describe the device, processor cores and JAX version of this process."""
    found = devices.describe()
    return f"{found.number} x {found.kind}, {devices.n_cores()} cores ({platform.machine()}), JAX {jax.__version__}"


class Scope(NamedTuple):
    """The size of an experiment: the paper's, or just enough to see that it works."""

    small: bool
    kinds: tuple[str, ...]
    seeds: tuple[int, ...]
    size: tuple[int, int]
    n_models: int
    preset: Preset
    spread: float  # of healthy people, relative to the default
    early_looks: int  # step of the first look; choices are made from `preset.schedule.min_steps` on

    def looking(self) -> Preset:
        """Return the preset with looks that start early."""
        every = max(self.preset.schedule.checkpoint_every, (self.preset.schedule.max_steps - self.early_looks) // 6)
        schedule = replace(self.preset.schedule, min_steps=self.early_looks, checkpoint_every=every)
        return replace(self.preset, schedule=schedule)


def scope(small: bool, matched: bool = False) -> Scope:
    """Return the size of a whole or a small experiment; `matched`: at the paper's difficulty, with its settings."""
    preset, n_models, spread = (paper(), 3, SPREAD) if matched else (blind(), 10, 1.0)
    if matched:  # the rule stops every model at its first look
        preset = replace(preset, schedule=replace(preset.schedule, max_steps=preset.schedule.min_steps))
    if not small:
        return Scope(False, KINDS, SEEDS, SIZE, n_models, preset, spread, 2_000)
    preset = replace(preset, schedule=replace(preset.schedule, min_steps=20, max_steps=40, checkpoint_every=20))
    return Scope(True, ("basic", "mild"), SEEDS[:1], (50, 60), 3, preset, spread, 20)


def parser(description: str | None, name: str, *, matched: bool = False) -> argparse.ArgumentParser:
    """Return an argument parser with the options that all experiments share, or all with a `matched` version."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, default=RESULTS / f"{name}.csv", help="CSV to write or to go on with")
    if matched:
        made.add_argument("--matched", action="store_true", help="at the paper's difficulty and with its settings")
    made.add_argument("--small", action="store_true", help="a minute on two cores; results are not comparable")
    return made
