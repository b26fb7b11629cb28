"""From the output folder of a segmentation program to one table, with a data dictionary beside it."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from rindices.files import write_csv, write_text
from rindices.problems import InputError, Message, Remedy, counted, listed
from rindices.regions import known_columns
from rindices.settings import GatherSettings
from rindices.tables.freesurfer_and_other_programs import (
    Found,
    Measured,
    read_cat12,
    read_dlmuse,
    read_freesurfer,
    read_synthseg,
)

PROGRAM, SESSION = "program", "session"
_READERS = (read_freesurfer, read_cat12, read_dlmuse, read_synthseg)
_LOOKED_FOR = (
    "FreeSurfer or FastSurfer subjects (SUBJECT/stats/aseg.stats), CAT12 files (catROI_*.xml), or tables (.csv) from "
    "NiChart DLMUSE or SynthSeg"
)
_MOST_NAMED = 10
_OLD_NAMES = {"Left-Thalamus-Proper": "Left-Thalamus", "Right-Thalamus-Proper": "Right-Thalamus"}  # before FreeSurfer 7


class Gathered(NamedTuple):
    """Result of gathering a folder.

    Attributes
    ----------
    n_people, n_regions
        Number of rows and of regions of the table.
    programs
        People by program and version.
    left_out
        People who were excluded, and why.
    notes
        Notes on missing values and on what was not copied.
    """

    n_people: int
    n_regions: int
    programs: dict[str, int]
    left_out: dict[str, str]
    notes: tuple[str, ...]


def gather_folder(folder: Path, out: Path, settings: GatherSettings) -> Gathered:
    """Write one table of everyone in a folder, and a ``.json`` file with the unit of each column next to it.

    Parameters
    ----------
    folder
        A ``SUBJECTS_DIR`` of FreeSurfer or FastSurfer, or a folder with the tables of NiChart DLMUSE or SynthSeg, or
        with CAT12's ``catROI`` files.
    out
        The table to write.
    settings
        What to gather.

    Raises
    ------
    InputError
        If nothing is found, or if scans occur twice, are incomplete or belong to the longitudinal stream; ``leave_out``
        excludes these.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder.\nProvide the output folder of a program such as FreeSurfer.")
    program = next(filter(None, (read(folder, settings) for read in _READERS)), None)
    if program is None:
        raise InputError(f"{folder} contains no recognised files.\nExpected {_LOOKED_FOR}.")
    people, repeated = _without_repeats(program.people)
    if settings.leave_out:
        usable = [one.values for one in people if not one.problem]
        usual = {name for name, n in Counter(chain.from_iterable(usable)).items() if 2 * n > len(usable)}
        people = [
            replace(one, problem=_missing_text(one))
            if one.missing and not one.problem and usual - one.values.keys()
            else one
            for one in people
        ]
    troubled = [f"{one.where.relative_to(folder)}: {one.problem}" for one in people if one.problem]
    if troubled and not settings.leave_out:
        named = listed(troubled, _MOST_NAMED, joiner="\n  ")
        raise InputError(
            f"{counted(len(troubled), 'entry', 'entries')} in {folder} cannot be used:\n  {named}\n"
            "Correct the files, or exclude these entries with ",
            Remedy("leave_out", True),
            Message(", or gather the visits from the longitudinal stream instead with ", Remedy("longitudinal", True))
            if any("longitudinal" in one.problem for one in people)
            else "",
            ".",
        )
    kept = [one for one in people if not one.problem and one.values]
    if not kept:
        raise InputError(f"None of the people in {folder} can be used: {listed(troubled) or 'all files are empty'}.")
    table, notes = _table(kept)
    _write_dictionary(out.with_suffix(".json"), table, program)
    write_csv(table, out, digits=10)
    return Gathered(
        len(table),
        len(_regions_of(table)),
        dict(Counter(one.program for one in kept)),
        {str(one.where.relative_to(folder)): one.problem for one in people if one.problem},
        (*program.notes, *repeated, *notes),
    )


def _missing_text(one: Measured) -> str:
    return f"{listed(one.missing)} {'is' if len(one.missing) == 1 else 'are'} missing"


def _without_repeats(people: Sequence[Measured]) -> tuple[list[Measured], list[str]]:
    """Keep one copy of repeated people with the same numbers; mark those whose numbers differ.

    The same numbers under different ids are marked, too.
    """
    by_id, by_numbers = defaultdict(list), defaultdict(list)
    for one in people:
        by_id[one.person, one.session].append(one)
        if not one.problem and one.values:
            by_numbers[tuple(one.values.items())].append(one)
    kept, copies = [], []
    for same in by_id.values():
        usable = [one for one in same if not one.problem] or same[:1]
        if all(one.values == usable[0].values for one in usable):
            copies += [one.person for one in usable[1:]]
            kept += [usable[0], *(one for one in same if one.problem and one is not usable[0])]
        else:
            kept += [
                replace(one, problem=f"{one.person} occurs {len(same)} times, with different values") for one in same
            ]
    twins = {
        id(one): same[0].person for same in by_numbers.values() for one in same[1:] if one.person != same[0].person
    }
    kept = [replace(one, problem=f"the same values as {twins[id(one)]}") if id(one) in twins else one for one in kept]
    many = counted(len({*copies}), "person appears", "people appear")
    return kept, [f"{many} in more than one file, with identical values; each is included once."] if copies else []


def _table(people: Sequence[Measured]) -> tuple[pd.DataFrame, list[str]]:
    """Return a table with one row per person, and notes on columns and gaps."""
    table = pd.DataFrame([dict(one.values) for one in people])
    for old, new in _OLD_NAMES.items():
        if old in table and new in table:
            table = table.assign(**{new: table[new].fillna(table[old])}).drop(columns=old)
    regions = table[_regions_of(table)]
    empty = [*regions.columns[(regions.fillna(0) == 0).all() & regions.notna().any()]]
    notes = [f"Columns excluded because they are 0 for everyone: {listed(empty)}."] if empty else []
    table = table.drop(columns=empty)
    for one, n_gaps in zip(people, table.isna().sum(axis=1).tolist(), strict=True):
        if n_gaps:
            why = f" ({_missing_text(one)})" if one.missing else ""
            notes.append(f"{one.person} has no value in {n_gaps} of {table.shape[1]} columns{why}.")
    sessions = {SESSION: [one.session for one in people]} if any(one.session for one in people) else {}
    ids = pd.DataFrame({"participant_id": [one.person for one in people]} | sessions)
    return pd.concat([ids, table, pd.DataFrame({PROGRAM: [one.program for one in people]})], axis=1), notes


def _regions_of(table: pd.DataFrame) -> list[str]:
    return [name for name, one in known_columns(table.columns).items() if one.kind == "region"]


def _write_dictionary(path: Path, table: pd.DataFrame, program: Found) -> None:
    """Write the description of each column in BIDS format."""
    units = {"volume": program.unit, "": program.unit}
    entries: dict[str, dict[str, str]] = {"participant_id": {"Description": "the person, as named in the folder"}}
    for name, one in known_columns(table.columns[1:]).items():
        unit = units.get(one.measure, one.unit) if one.kind in ("region", "head size") else ""
        entries[name] = {"Description": one.title} | ({"Units": unit} if unit else {})
    entries[PROGRAM] = {"Description": "the program that measured the regions, and its version"}
    write_text(path, json.dumps(entries, ensure_ascii=False, indent=2) + "\n")
