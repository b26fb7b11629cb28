"""Volumes that programs write: tables of NiChart DLMUSE and SynthSeg with its quality file, and CAT12's catROI_*.xml.

CAT12 has a file for each scan: grey matter in the regions of Neuromorphometrics, in mL.
"""

import csv
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rindices.problems import listed
from rindices.regions import known_columns, known_regions
from rindices.settings import GatherSettings
from rindices.tables.foreign import Found, Measured, each

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
    return _found([table for table in _tables(folder, settings) if _is_muse(table.columns)], "DLMUSE", {})


def read_synthseg(folder: Path, settings: GatherSettings) -> Found | None:
    """Return everybody in SynthSeg's tables below a folder; None if there are none."""
    tables = list(_tables(folder, settings))
    quality = {
        row[0]: {f"qc {name}": float(cell) for name, cell in zip(table.columns[1:], row[1:], strict=True)}
        for table in tables
        if _QUALITY in table.columns
        for row in table.rows
        if len(row) == len(table.columns)
    }
    return _found([table for table in tables if _HEAD in table.columns], "SynthSeg", quality)


def _found(tables: list[Rows], program: str, quality: dict[str, dict[str, float]]) -> Found | None:
    """Return the people of tables, without sums of other columns."""
    known = known_columns(name for table in tables for name in table.columns)
    sums = [name for name, one in known.items() if one.kind == "total"]
    people = [person for table in tables for person in _people(table, sums, program, quality)]
    notes = [f"{len(sums)} sums of regions were not copied, such as {listed(sums, limit=2)}."] if sums else []
    return Found(tuple(people), "mm3", tuple(notes)) if tables else None


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


def _people(table: Rows, sums: list[str], program: str, quality: dict[str, dict[str, float]]) -> Iterator[Measured]:
    for person, *cells in table.rows:
        values, problem = dict(quality.get(person, {})), ""
        if len(cells) + 1 != len(table.columns):
            problem = f"{table.file.name} has {len(cells) + 1} of {len(table.columns)} cells in this row"
        try:
            named = zip(table.columns[1:], cells, strict=False)
            values = {name: float(cell) for name, cell in named if name not in sums and cell.strip()} | values
        except ValueError as error:
            problem = f"{table.file.name}: {error}"
        yield Measured(person, values, program, table.file, problem)


_ATLAS, _GREY_MATTER = "neuromorphometrics", "Vgm"
_FLUID = ("ventricle", "cerebrospinal fluid")


def read_cat12(folder: Path, settings: GatherSettings) -> Found | None:
    """Return everybody in the files of CAT12 below a folder; None if there are none."""
    files = sorted(folder.rglob("catROI_*.xml"))
    return Found(tuple(each(_person, files, settings.jobs)), "mL") if files else None


def _person(path: Path) -> Measured:
    person = path.stem.removeprefix("catROI_")
    try:
        atlas = ET.parse(path).getroot().find(_ATLAS)
    except ET.ParseError as error:
        return Measured(person, {}, "CAT12", path, f"{path.name} cannot be read: {error}")
    names = [str(item.text) for item in atlas.iterfind("names/item")] if atlas is not None else []
    numbers = (atlas.findtext(f"data/{_GREY_MATTER}") or "") if atlas is not None else ""
    volumes = [float(number) for number in numbers.strip("[] \n").split(";") if number.strip()]
    if not names or len(names) != len(volumes):
        return Measured(person, {}, "CAT12", path, f"{path.name} has no {_GREY_MATTER} of {_ATLAS}")
    fluid = {name for name, one in known_regions(names).items() if one.title.endswith(_FLUID)}
    values = {name: volume for name, volume in zip(names, volumes, strict=True) if name not in fluid}
    revision = (atlas.findtext("version") or "") if atlas is not None else ""
    return Measured(person, values, f"CAT12 {f'r{revision}' if revision else ''}".strip(), path)
