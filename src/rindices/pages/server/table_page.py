"""Pages on tables: the role of each column, problems and remedies, as in `rindices check`.

Also the form that turns the folder of a segmentation program into a table, as `rindices gather` does.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
import pandas as pd
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rindices import record
from rindices.cohort import Cohort
from rindices.pages.elements import Picture
from rindices.pages.server import query
from rindices.pages.server.page import Desk, address, background_result, free_name, on_page, page, tables_of
from rindices.pages.server.query import (
    Pairs,
    buttons_of,
    form_of,
    options_of,
    pairs_of,
    posted,
    read_query,
)
from rindices.problems import InputError, worded
from rindices.run.check_table import CheckedColumn, CheckedTable, FoundProblem, FoundRemedy, check_cohort, fixes_in
from rindices.run.gather_folder import gather_folder
from rindices.settings import FOLLOW_UP, GatherSettings, TableSettings
from rindices.tables import Source, files_of, read_source
from rindices.value_kinds import paths_of, settings_of, wanted_names

_BINS, _MOST_LEVELS = 16, 12
_PER_PAGE = 250  # columns
# The roles of columns, as `rindices.cohort` and as menus call them.
_ROLES = {
    "the participant id": "id",
    "the diagnosis": "diagnosis",
    "a covariate": "covariate",
    "the site": "site",
    "the visit": "visit",
    "a clinical score": "clinical score",
    **{FOLLOW_UP[one.name]: one.label for one in settings_of(TableSettings) if one.name in FOLLOW_UP},
    "a region": "region",
    "no role": "no role",
}
Stamp = tuple[tuple[str, int, int], ...]


class ColumnRow(NamedTuple):
    """A column as shown: what was found, its role in the menu, its histogram, and its problems."""

    found: CheckedColumn
    role: str
    bars: list[tuple[float, str]]  # height from 0 to 1, and label
    problems: list[str]


class Check(NamedTuple):
    """A table that was checked, or why it could not be."""

    found: CheckedTable | None
    problems: tuple[FoundProblem, ...]
    remedies: tuple[str, ...]
    fixes: tuple[FoundRemedy, ...]
    bars: dict[str, list[tuple[float, str]]]
    cohort: Cohort | None = None  # who would be used for training


def stamp_of(path: Path, settings: TableSettings | None = None) -> Stamp:
    """Return names, times and sizes of files, which show whether any has changed since it was read."""
    others = () if settings is None else (*paths_of(settings.join), settings.dictionary)
    paths = [Path(str(one).partition("#")[0]) for one in (*files_of(path), *others) if one]
    return tuple((str(one), one.stat().st_mtime_ns, one.stat().st_size) for one in paths if one.exists())


@lru_cache(maxsize=2)
def _read(stamp: Stamp, path: Path, join: tuple[Path, ...], **choices: str | tuple[str, ...] | None) -> Source:
    return read_source(path, join=join, **choices)  # type: ignore[arg-type]


@lru_cache(maxsize=16)
def checked(stamp: Stamp, path: Path, settings: TableSettings) -> Check:
    """Check a table; an unchanged table is not read again."""

    def read(file: Path, *, join: Sequence[Path] = (), **choices: str | tuple[str, ...] | None) -> Source:
        source = _read(stamp, file, tuple(join), **choices)
        sources.append(source)
        return source

    sources: list[Source] = []
    try:
        found, cohort = check_cohort(path, settings, wording=on_page, read=read)
    except InputError as error:
        problems = tuple(FoundProblem(text=worded(one.what, on_page), columns=one.where) for one in error.problems)
        remedies = tuple(worded(one, on_page) for one in error.remedies)
        return Check(None, problems, remedies, fixes_in([error.message], error.sheets), _histograms(sources))
    return Check(found, found.problems, found.remedies, found.fixes, _histograms(sources), cohort)


def _histograms(sources: list[Source]) -> dict[str, list[tuple[float, str]]]:
    """Return the histogram of each numeric column and of each column with few categories."""
    found: dict[str, list[tuple[float, str]]] = {}
    for name, column in sources[0].frame.items() if sources else ():
        values = pd.to_numeric(column, errors="coerce").to_numpy(float)
        values = values[np.isfinite(values)]
        levels = column.dropna().astype(str).value_counts() if column.dtype.kind not in "fiu" else pd.Series(dtype=int)
        if len(values) and not len(levels):
            counts, edges = np.histogram(values, min(_BINS, max(1, len(np.unique(values)))))
            words = [
                f"{low:.4g} to {high:.4g}: {n}" for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True)
            ]
        elif 0 < len(levels) <= _MOST_LEVELS:
            counts, words = levels.to_numpy(), [f"{level}: {n}" for level, n in levels.items()]
        else:
            continue
        found[str(name)] = [(float(n / max(counts)), word) for n, word in zip(counts, words, strict=True)]
    return found


def changed(settings: TableSettings, request: Request) -> TableSettings:
    """Return settings with the change that a menu asks for."""
    asked = request.query_params
    if "column" in asked:
        settings = query.with_role(settings, asked["column"], asked.get("role", ""))
    if "label" in asked:
        settings = query.with_group(settings, asked["label"], asked.get("group", ""))
    usual = {one.name: one.default for one in fields(TableSettings)}
    if (without := asked.get("without")) in usual:
        settings = replace(settings, **{without: usual[without]})  # type: ignore[arg-type]
    return settings


def table_page(desk: Desk, request: Request) -> Response:
    """List the tables, or show the chosen one, whose check is loaded after the page.

    Controls and patients in separate files arrive as labels and files, which are combined into the name of one table.
    """
    asked = request.query_params
    if parts := [
        f"{one.strip()}={file}" for one, file in zip(asked.getlist("of"), asked.getlist("file"), strict=False) if file
    ]:
        return RedirectResponse(address("/table", ("table", ",".join(parts))), 303)
    name = asked.get("table", "")
    if name:
        _file_of(desk, name)
    source = address("/table/checked", *asked.multi_items())
    return page(desk, "table", name or "Tables", {"table": name, "source": source, "tables": tables_of(desk)})


def checked_part(desk: Desk, request: Request) -> Response:
    """Show a checked table, the part of the page that takes a while."""
    name, columns, settings, check = _asked(desk, request)
    rows = _rows(columns, settings, check)
    first = query.first_of(request.query_params)
    pairs: Pairs = [("table", name), ("chosen", "yes"), *pairs_of(settings, desk)]
    return page(
        desk,
        "checked",
        name,
        {
            "table": name,
            "query": urlencode(pairs),
            "found": check.found,
            "problems": [one.shown or one.text for one in check.problems],
            "remedies": check.remedies,
            "buttons": buttons_of(check.fixes, TableSettings, name),
            "doubts": buttons_of(check.found.advice if check.found else (), TableSettings),
            "warnings": check.found.warnings if check.found else (),
            "given": [
                (one, text) for one, text in pairs[2:] if one in ("drop_missing", "drop_outliers", "small_sites")
            ],
            "missing": settings.missing or (),
            "joined": (joined := [text for one, text in pairs if one == "join"]),
            "others": [
                one
                for one in tables_of(desk)
                if one not in (name, *joined, *map(desk.name, files_of(desk.table(name))))
            ],
            "rows": rows[first : first + _PER_PAGE],
            "first": first,
            "per_page": _PER_PAGE,
            "n_columns": len(rows),
            "roles": query.ROLES,
            "groups": _groups(check.found, settings),
        },
        command=_command(desk, name, settings),
    )


def look_part(desk: Desk, request: Request) -> Response:
    """Show a first look at the groups before training, loaded separately from the check, which does not wait for it."""
    name, _, settings, check = _asked(desk, request)
    found, pictures = background_result(
        ("look", stamp_of(desk.table(name), settings), settings), lambda: _looked(check)
    )
    return page(desk, "looked", name, {"found": found, "pictures": pictures})


def _looked(check: Check) -> tuple[CheckedTable | None, tuple[Picture | None, ...]]:
    if check.found is None or check.cohort is None:
        return check.found, ()
    from rindices.run.first_look_and_power import look_pictures, with_first_look  # the engine: seconds to load, once

    found = with_first_look(check.found, check.cohort, on_page)
    return found, look_pictures(found.look) if found.look else ()


def _asked(desk: Desk, request: Request) -> tuple[str, list[str], TableSettings, Check]:
    """Return the table that an address names, its columns, its settings and its check."""
    name = request.query_params.get("table", "")
    path = _file_of(desk, name)
    settings = read_query(TableSettings, request.query_params, desk)
    if also := request.query_params.get("also"):
        settings = replace(settings, join=(*map(str, paths_of(settings.join)), str(_file_of(desk, also))))
    if also or "chosen" not in request.query_params:
        settings = query.guessed(settings, desk, name, again=bool(also))
    settings = changed(settings, request)
    check = checked(stamp_of(path, settings), path, settings)
    if (wanted := _wanted(check.found, request)) is not None:
        settings = replace(settings, features=wanted)
        check = checked(stamp_of(path, settings), path, settings)
    columns = [one.name for one in check.found.columns] if check.found else query.all_columns(settings, desk, name)
    return name, columns, settings, check


def _wanted(found: CheckedTable | None, request: Request) -> tuple[str, ...] | None:
    """Return all region names plus the column if it is chosen as a region but was not taken for one; otherwise None."""
    column, regions = (
        request.query_params.get("column"),
        [one.name for one in found.columns if one.role == "a region"] if found else [],
    )
    is_wanted = request.query_params.get("role") == "region" and found is not None and column not in regions
    return (*regions, str(column)) if is_wanted else None


def _file_of(desk: Desk, name: str) -> Path:
    path = desk.table(name)
    if missing := [file.name for file in files_of(path) if not file.exists()]:
        raise InputError(f"There is no table {missing[0]!r} in the folder.")
    return path


def _command(desk: Desk, name: str, settings: TableSettings) -> list[str]:
    try:
        return desk.words("check", name, **options_of(settings, desk))
    except InputError:  # a name with a comma; training says so
        return []


def _rows(columns: list[str], settings: TableSettings, check: Check) -> list[ColumnRow]:
    """Return all columns: first those with problems, then those that may not be regions."""
    known = {one.name: one for one in check.found.columns} if check.found else {}
    named = {settings.id: "the participant id", settings.diagnosis: "the diagnosis"}
    rows = []
    for name in columns:
        blank = CheckedColumn(name=name, role=named.get(name, "no role"), why="not checked yet")
        found = known.get(name, blank)
        role = _ROLES[found.role]
        if name in wanted_names(settings.smooth):
            role = "curve"
        elif name == settings.proportion:
            role = "head size"
        wrong = [one.shown or one.text for one in check.problems if name in one.columns]
        rows.append(ColumnRow(found, role, check.bars.get(name, []), wrong))
    return sorted(rows, key=lambda row: (not row.problems, not row.found.suspicion, row.role in ("region", "no role")))


def _groups(found: CheckedTable | None, settings: TableSettings) -> list[tuple[str, int, str]]:
    """Return each label of the diagnosis, its number of rows, and its group."""
    if found is None:
        return []
    control = found.control_labels or settings.control or ()
    patients = found.patient_labels or settings.patients or ()
    return [
        (label, number, "control" if label in control else "patient" if label in patients else "other")
        for label, number in found.labels.items()
    ]


_HERE = "."
_MOST = 200  # folders that are offered


def gather_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show the form for gathering a table."""
    return _form(desk, request.query_params)


async def gather(desk: Desk, request: Request) -> Response:
    """Gather a table as a form asks and show the result; a refusal is shown above the same form."""
    asked = QueryParams(await posted(request))
    try:
        return await run_in_threadpool(_gathered, desk, asked)
    except InputError as error:
        return _form(desk, asked, desk.said(error.message))


def _gathered(desk: Desk, asked: QueryParams) -> HTMLResponse:
    settings = read_query(GatherSettings, asked, desk)
    folder, out = asked.get("folder", "").strip(), asked.get("out", "").strip()
    path = desk.path(out)
    beside = path.with_suffix(".json")
    if path.suffix != ".csv" or path.exists() or beside.exists():
        raise InputError(f"The output must be a new file whose name ends in .csv, but got {out!r}.")
    found = gather_folder(desk.folder if folder == _HERE else desk.path(folder), path, settings)
    notes = [*found.notes, *(f"Excluded {where}: {problem}." for where, problem in found.left_out.items())]
    shown = {"table": "", "gathered": found, "out": out, "dictionary": desk.name(beside), "notes": notes}
    command = ["gather", folder, *desk.words("", **options_of(settings, desk), out=out)[1:]]
    return page(desk, "gather", "Table created", shown, command=command)


def _form(desk: Desk, asked: QueryParams, refused: str = "") -> HTMLResponse:
    inside = (path for path in sorted(desk.folder.iterdir()) if path.is_dir() and not path.name.startswith("."))
    folders = [_HERE, *(path.name for path in inside if record.status_of(path) is None)][:_MOST]
    shown = {
        "table": "",
        "gathered": None,
        "refused": refused,
        "folder": asked.get("folder", ""),
        "folders": folders,
        "out": asked.get("out") or free_name(desk, "gathered", ".csv") + ".csv",
        "fields": form_of(GatherSettings, asked),
    }
    return page(desk, "gather", "Gather a table", shown, status=400 if refused else 200)
