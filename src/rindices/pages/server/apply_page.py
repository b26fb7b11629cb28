"""Pages for applying a model to new people, from a table or a form: what does not match the model, and remedies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pandas as pd
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rindices.files import plain, write_csv
from rindices.model import Header, read_header
from rindices.pages.elements import Table, limits, measures, words
from rindices.pages.server.page import MODELS, TABLES, Desk, address, background_result, files_with, free_name, page
from rindices.pages.server.query import (
    Button,
    buttons_of,
    options_of,
    pairs_of,
    posted,
    read_query,
)
from rindices.pages.server.run_pages import call
from rindices.pages.server.table_page import stamp_of
from rindices.problems import InputError, Value
from rindices.record import DONE, Summary
from rindices.regions import known_regions
from rindices.run.apply_table import people_for
from rindices.run.check_table import fixes_in
from rindices.settings import ApplySettings


class Match(NamedTuple):
    """Whether a table fits a model: the number of people to be scored, with notes, or problems and remedies."""

    n_people: int = 0
    n_flagged: int = 0
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    buttons: tuple[Button, ...] = ()


def _model(desk: Desk, name: str) -> tuple[Path, Header]:
    path = desk.file(name, "model")
    return path, read_header(path)


def verdict_of(header: Header) -> Summary:
    """Return the verdict of a model's training, as a summary contains it."""
    state, reason = header.verdict
    return Summary(
        status=DONE,
        n_patterns=header.parameters.n_patterns,
        supported=header.n_supported,
        verdict=state,
        reliable_reason=reason or "The model was trained elsewhere.",
    )


def apply_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show a model, and whether a table fits it."""
    asked = request.query_params
    model, table = asked.get("model", ""), asked.get("table", "")
    shown: dict[str, object] = {
        "model": model,
        "models": files_with(desk, MODELS),
        "table": table,
        "tables": files_with(desk, TABLES),
        "match": None,
        "verdict": None,
        "contract": None,
        "query": "",
    }
    command: list[str] = []
    if model:
        path, header = _model(desk, model)
        shown |= {"verdict": verdict_of(header), "contract": header.contract}
    if model and table:
        settings = read_query(ApplySettings, asked, desk)
        _, command = _planned_scores(desk, model, table, options_of(settings, desk))
        key = ("match", stamp_of(path), table, stamp_of(desk.path(table)), settings)
        shown |= {
            "match": background_result(key, lambda: _match(desk, path, table, settings)),
            "query": urlencode([("model", model), ("table", table), *pairs_of(settings, desk)]),
        }
    return page(desk, "apply", "Apply", shown, command=command)


def _match(desk: Desk, model: Path, table: str, settings: ApplySettings) -> Match:
    """Check a table against a model without scoring anyone."""
    path = desk.path(table)
    try:
        batches = list(people_for(model, path, settings))
    except InputError as error:
        return Match(
            problems=tuple(desk.said(one.what) for one in error.problems),
            remedies=tuple(map(desk.said, error.remedies)),
            buttons=tuple(buttons_of(fixes_in([error.message], error.sheets), ApplySettings, table)),
        )
    notes = dict.fromkeys(desk.said(note) for people in batches for note in people.notes)
    flagged = sum(int((people.flags != "").sum()) for people in batches)
    return Match(sum(len(people.features) for people in batches), flagged, tuple(notes))


def _planned_scores(desk: Desk, model: str, table: str, options: Mapping[str, Value]) -> tuple[str, list[str]]:
    """Return the name of a new table of scores, and the words of the command that writes it with its report."""
    stem = free_name(desk, f"{Path(table).name.partition('.')[0]}_scores", ".csv", ".html")
    scores, report = f"{stem}.csv", f"{stem}.html"
    return scores, desk.words("apply", model, table, **options, out=scores, report=report)


async def score(desk: Desk, request: Request) -> Response:
    """Score the people of a table with the command line."""
    asked, show_ids = request.query_params, ("ids", "yes") in await posted(request)
    model, table = asked.get("model", ""), asked.get("table", "")
    _model(desk, model)
    desk.path(table)
    options = options_of(read_query(ApplySettings, asked, desk), desk) | {"show_ids": show_ids or None}
    return await run_in_threadpool(_scored, desk, model, table, options)


def _scored(desk: Desk, model: str, table: str, options: Mapping[str, Value]) -> Response:
    scores, command = _planned_scores(desk, model, table, options)
    call(desk, command)
    return RedirectResponse(address("/scored", ("model", model), ("scores", scores)), 303)


def scored_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show the scores of a table below the verdict of the model that gave them."""
    model, scores = (request.query_params.get(name, "") for name in ("model", "scores"))
    _, header = _model(desk, model)
    try:
        options: Any = {"dtype": {"participant_id": str, "flags": str}, "keep_default_na": False, "na_values": [""]}
        table = _scores_table(plain(pd.read_csv(desk.path(scores), **options)), scores)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{scores} is not a table of scores.") from error
    report = f"{scores.removesuffix('.csv')}.html"
    shown = {
        "model": model,
        "scores": scores,
        "table": table,
        "verdict": verdict_of(header),
        "report": report if desk.path(report).is_file() else "",
    }
    return page(desk, "scored", f"Scores of {scores}", shown)


def _scores_table(rows: pd.DataFrame, source: str) -> Table:
    visits = rows["participant_id"] + (", " + rows["visit"].astype(str) if "visit" in rows else "")
    columns = [words("Person", visits)]
    for name in rows.filter(regex=r"^severity\d+$"):
        title = str(name).replace("severity", "Severity ")
        columns.append(measures(title, rows[name]))
        if f"{name}_low" in rows:
            columns.append(limits(rows[f"{name}_low"], rows[f"{name}_high"], title="Interval", of=title))
        if (centile := str(name).replace("severity", "centile")) in rows:
            columns.append(measures("% of controls below", rows[centile], 1))
    return Table("Severities with their intervals", [*columns, words("Unusual", rows["flags"].fillna(""))], source)


def person_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show a form for one person."""
    model = request.query_params.get("model", "")
    _, header = _model(desk, model)
    contract = header.contract
    shown = {
        "model": model,
        "contract": contract,
        "verdict": verdict_of(header),
        "titles": {name: region.title for name, region in known_regions(contract.features).items()},
        "choices": {
            one.name: one.categories or [f"{code:g}" for code in one.codes or ()] for one in contract.covariates
        },
    }
    return page(desk, "person", "One person", shown)


async def keep_person(desk: Desk, request: Request) -> Response:
    """Write the form for one person as a table, and score it unless there is something to review first."""
    model = request.query_params.get("model", "")
    path, header = _model(desk, model)
    contract = header.contract
    said = {name: text.strip() for name, text in await posted(request)}
    who = said.get("id", "") or "person"
    row = {
        contract.id_column: who,
        **{spec.name: said.get(f"covariate {spec.name}", "") for spec in contract.covariates},
        **{name: said.get(f"region {name}", "") for name in contract.features},
    }
    stem = "".join(sign if sign.isalnum() or sign in "-_" else "-" for sign in who)[:60].lstrip("-") or "person"
    name = free_name(desk, stem, ".csv") + ".csv"
    write_csv(pd.DataFrame([row]), desk.path(name))
    match = await run_in_threadpool(_match, desk, path, name, ApplySettings())
    if match.problems or match.notes or match.n_flagged:
        return RedirectResponse(address("/apply", ("model", model), ("table", name)), 303)
    return await run_in_threadpool(_scored, desk, model, name, {})
