"""Tables of volumes, one or more in a folder: NiChart DLMUSE and SynthSeg, whose quality file is read along."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rindices.problems import listed
from rindices.regions import known_columns
from rindices.settings import GatherSettings
from rindices.tables.foreign.measured import Found, Measured, each

_MUSE_REGIONS = 55  # of 145 that a table of MUSE has at least; some are called as in aseg
_HEAD, _QUALITY = "total intracranial", "general white matter"  # columns by which SynthSeg's two kinds are told
_LARGEST = 1_000_000  # characters of the first line: others are no tables


class Rows(NamedTuple):
    """A table: its file, its columns, and its rows."""

    file: Path
    columns: list[str]
    rows: list[list[str]]


def read_dlmuse(folder: Path, settings: GatherSettings) -> Found | None:
    """Return everybody in the tables of NiChart DLMUSE below a folder; None if there are none."""
    tables = [table for table in _tables(folder, settings) if _is_muse(table.columns)]
    if not tables:
        return None
    known = known_columns(tables[0].columns)
    sums = [name for name in tables[0].columns[1:] if name in known and known[name].kind == "total"]
    people = [
        person
        for table in tables
        for person in _people(table, [name for name in table.columns[1:] if name not in sums], "DLMUSE")
    ]
    notes = [f"{len(sums)} sums of regions were not copied, such as {listed(sums, limit=2)}."] if sums else []
    return Found(tuple(people), "mm3", tuple(notes))


def read_synthseg(folder: Path, settings: GatherSettings) -> Found | None:
    """Return everybody in SynthSeg's tables below a folder; None if there are none."""
    tables = list(_tables(folder, settings))
    volumes = [table for table in tables if _HEAD in table.columns]
    if not volumes:
        return None
    quality = {
        row[0]: {f"qc {name}": float(cell) for name, cell in zip(table.columns[1:], row[1:], strict=True)}
        for table in tables
        if _QUALITY in table.columns
        for row in table.rows
        if len(row) == len(table.columns)
    }
    people = []
    for table in volumes:
        known = known_columns(table.columns)
        sums = [name for name in table.columns if name in known and known[name].kind == "total"]
        for person in _people(table, [name for name in table.columns[1:] if name not in sums], "SynthSeg"):
            values = {**person.values, **quality.get(person.person, {})}
            people.append(Measured(person.person, values, person.program, person.where, person.problem))
    return Found(tuple(people), "mm3")


def _is_muse(columns: list[str]) -> bool:
    known = known_columns(columns)
    return sum(one.kind == "region" and one.source == "atlas_muse" for one in known.values()) >= _MUSE_REGIONS


def _tables(folder: Path, settings: GatherSettings) -> Iterator[Rows]:
    files = sorted(path for path in folder.rglob("*.csv") if path.is_file())
    yield from filter(None, each(_read, files, settings.jobs))


def _read(path: Path) -> Rows | None:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        first = file.readline(_LARGEST)
        columns = [name.strip() for name in next(csv.reader([first]), [])]
        return Rows(path, columns, [row for row in csv.reader(file) if row]) if len(columns) > 1 else None


def _people(table: Rows, wanted: list[str], program: str) -> Iterator[Measured]:
    places = {name: table.columns.index(name) for name in wanted}
    for row in table.rows:
        if len(row) != len(table.columns):
            problem = f"{table.file.name} has {len(row)} of {len(table.columns)} cells in this row"
            yield Measured(row[0], {}, program, table.file, problem)
            continue
        try:
            values = {name: float(row[place]) for name, place in places.items() if row[place].strip()}
        except ValueError as error:
            yield Measured(row[0], {}, program, table.file, f"{table.file.name}: {error}")
        else:
            yield Measured(row[0], values, program, table.file)
