"""Pages on tables: the role of each column, problems and remedies, as in `rindices check`.

Also the form that turns the folder of a segmentation program into a table, as `rindices gather` does.
"""

from collections.abc import Sequence
from dataclasses import replace
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
from rindices.pages.server.page import TABLES, Desk, address, background_result, files_with, free_name, on_page, page
from rindices.pages.server.query import (
    Pairs,
    buttons_of,
    form_of,
    options_of,
    pairs_of,
    posted,
    read_query,
)
from rindices.problems import InputError
from rindices.run.check_table import CheckedColumn, CheckedTable, check_cohort, refused_for
from rindices.run.gather_folder import gather_folder
from rindices.settings import FOLLOW_UP, GatherSettings, TableSettings
from rindices.tables import Source, files_of, read_source
from rindices.value_kinds import paths_of, settings_of, wanted_names

_BINS, _MOST_LEVELS = 16, 12
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
# Choices that can be undone, and how they are stated above the table.
_CHOSEN = {
    "drop_missing": "people with missing values are excluded",
    "drop_outliers": "outliers are excluded",
    "small_sites": "small sites are excluded",
    "missing": "codes for missing values: {}",
    "join": "joined: {}",
}
Stamp = tuple[tuple[str, int, int], ...]


class ColumnRow(NamedTuple):
    """A column as shown: what was found, its role in the menu, histogram and problems, and how it stands out."""

    found: CheckedColumn
    role: str
    bars: list[tuple[float, str]]  # height from 0 to 1, and label
    problems: list[str]
    look: str  # wrong, doubt, alike (a region without remarks), or nothing of these


class Check(NamedTuple):
    """A table that was checked, the histogram of each column, and who would be used for training."""

    found: CheckedTable
    bars: dict[str, list[tuple[float, str]]]
    cohort: Cohort | None


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
        found, cohort = _not_checked(error, path, settings), None
    return Check(found, _histograms(sources), cohort)


def _not_checked(error: InputError, path: Path, settings: TableSettings) -> CheckedTable:
    """Return the columns of a table that cannot be checked, and why."""
    roles = {settings.id: "the participant id", settings.diagnosis: "the diagnosis"}
    columns = tuple(
        CheckedColumn(name=name, role=roles.get(name, "no role"), why="not checked yet")
        for name in query.all_columns(path, settings)
    )
    unread = CheckedTable(source=path.name, columns=columns)
    return unread.model_copy(update=refused_for(error, error.problems, str, on_page))


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


def table_page(desk: Desk, request: Request) -> Response:
    """List the tables, or show the chosen one, whose check is loaded after the page.

    Controls and patients in separate files arrive as labels and files, which are combined into the name of one table.
    """
    asked = request.query_params
    if parts := [
        f"{one.strip()}={file}" for one, file in zip(asked.getlist("of"), asked.getlist("file"), strict=False) if file
    ]:
        return RedirectResponse(address("/table", ("table", ",".join(parts))), 303)
    name, source = asked.get("table", ""), address("/table/checked", *asked.multi_items())
    return page(desk, "table", name or "Tables", {"table": name, "source": source, "tables": files_with(desk, TABLES)})


def checked_part(desk: Desk, request: Request) -> Response:
    """Show a checked table, the part of the page that takes a while."""
    name, settings, check = _asked(desk, request)
    found = check.found
    pairs: Pairs = [("table", name), ("chosen", "yes"), *pairs_of(settings, desk)]
    values = {one: [text for setting, text in pairs if setting == one] for one in _CHOSEN}
    return page(
        desk,
        "checked",
        name,
        {
            "query": urlencode(pairs),
            "found": found,
            "problems": [one.shown or one.text for one in found.problems],
            "buttons": buttons_of(found.fixes, TableSettings),
            "doubts": buttons_of(found.advice, TableSettings),
            "chosen": [(one, _CHOSEN[one].format(", ".join(texts))) for one, texts in values.items() if texts],
            "others": [
                one
                for one in files_with(desk, TABLES)
                if one not in (name, *values["join"], *map(desk.name, files_of(desk.table(name))))
            ],
            "rows": _rows(settings, check),
            "roles": query.ROLES,
            "groups": _groups(found, settings),
        },
        command=_command(desk, name, settings),
    )


def look_part(desk: Desk, request: Request) -> Response:
    """Show a first look at the groups before training, loaded separately from the check, which does not wait for it."""
    name, settings, check = _asked(desk, request)
    found, pictures = background_result(
        ("look", stamp_of(desk.table(name), settings), settings), lambda: _looked(check)
    )
    return page(desk, "looked", name, {"found": found, "pictures": pictures})


def _looked(check: Check) -> tuple[CheckedTable, tuple[Picture | None, ...]]:
    if check.cohort is None:
        return check.found, ()
    from rindices.run.first_look_and_power import look_pictures, with_first_look  # the engine: seconds to load, once

    found = with_first_look(check.found, check.cohort, on_page)
    return found, look_pictures(found.look) if found.look else ()


def _asked(desk: Desk, request: Request) -> tuple[str, TableSettings, Check]:
    """Return the table that an address names, its settings and its check."""
    asked = request.query_params
    name = asked.get("table", "")
    path = _file_of(desk, name)
    kept = [(one, text) for one, text in asked.multi_items() if one != asked.get("without")]
    settings = read_query(TableSettings, QueryParams(kept), desk)
    if also := asked.get("also"):
        settings = replace(settings, join=(*map(str, paths_of(settings.join)), str(_file_of(desk, also))))
    if also or "chosen" not in asked:
        settings = query.guessed(settings, path, again=bool(also))
    column, role = asked.get("column", ""), asked.get("role", "")
    if column:
        settings = query.with_role(settings, column, role)
    if "label" in asked:
        settings = query.with_group(settings, asked["label"], asked.get("group", ""))
    check = checked(stamp_of(path, settings), path, settings)
    regions = [one.name for one in check.found.columns if one.role == "a region"]
    if role == "region" and column not in regions and check.found.n_rows:  # it was not taken for one by itself
        settings = replace(settings, features=(*regions, column))
        check = checked(stamp_of(path, settings), path, settings)
    return name, settings, check


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


def _rows(settings: TableSettings, check: Check) -> list[ColumnRow]:
    """Return all columns: first those with problems, then those that may not be regions."""
    special = {settings.proportion: "head size"} | dict.fromkeys(wanted_names(settings.smooth), "curve")
    rows = []
    for found in check.found.columns:
        wrong = [one.shown or one.text for one in check.found.problems if found.name in one.columns]
        role, doubtful = special.get(found.name, _ROLES[found.role]), bool(found.suspicion)
        alike = role == "region" and not found.missing
        look = "wrong" if wrong or found.impossible else "doubt" if doubtful else "alike" if alike else ""
        rows.append(ColumnRow(found, role, check.bars.get(found.name, []), wrong, look))
    return sorted(rows, key=lambda row: (not row.problems, not row.found.suspicion, row.role in ("region", "no role")))


def _groups(found: CheckedTable, settings: TableSettings) -> list[tuple[str, int, str]]:
    """Return each label of the diagnosis, its number of rows, and its group."""
    control = found.control_labels or settings.control or ()
    patients = found.patient_labels or settings.patients or ()
    return [
        (label, number, "controls" if label in control else "patients" if label in patients else "scored only")
        for label, number in found.labels.items()
    ]


_HERE = "."


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
    shown = {"gathered": found, "out": out, "dictionary": desk.name(beside), "notes": notes}
    command = desk.words("gather", folder, **options_of(settings, desk), out=out)
    return page(desk, "gather", "Table created", shown, command=command)


def _form(desk: Desk, asked: QueryParams, refused: str = "") -> HTMLResponse:
    inside = (path for path in sorted(desk.folder.iterdir()) if path.is_dir() and not path.name.startswith("."))
    folders = [_HERE, *(path.name for path in inside if record.status_of(path) is None)]
    shown = {
        "gathered": None,
        "refused": refused,
        "folder": asked.get("folder", ""),
        "folders": folders,
        "out": asked.get("out") or free_name(desk, "gathered", ".csv") + ".csv",
        "fields": form_of(GatherSettings, asked),
    }
    return page(desk, "gather", "Gather a table", shown, status=400 if refused else 200)
