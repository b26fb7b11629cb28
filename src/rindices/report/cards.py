"""The section on single people: what the page's script needs to draw their cards."""

from __future__ import annotations

import json
from collections.abc import Hashable

import numpy as np
import pandas as pd
from markupsafe import Markup

from rindices.record import Run
from rindices.report.distribution import first_visits
from rindices.report.privacy import Curtain

MOST_PEOPLE = 3000
_CENTILES = (0.05, 0.5, 0.95)
_EXAMPLE_CENTILE = 0.9  # a patient with a high R-index, but not the most extreme one
# None of these can end the script element or begin a tag, wherever they stand in a name.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def cards_section(run: Run, curtain: Curtain, *, show_ids: bool) -> dict[str, object] | None:
    """Return the people whose cards can be opened; without ids one example, nothing where there is none."""
    rows = _shown_people(run) if show_ids else _example(run)
    if rows.empty:
        return None
    drivers, regions = _drivers(run, rows)
    first = first_visits(run)
    controls = [np.sort(first.loc[first["group"] == "control", name].dropna()) for name in run.results.score_names]
    people = []
    for _, visits in _in_time(rows).groupby("participant_id", sort=True):
        one = visits.iloc[0]
        named = {"id": one["participant_id"], "diagnosis": one["diagnosis"]} if show_ids else {}
        shown = [_visit(row, controls, drivers, curtain, show_ids) for _, row in visits.iterrows()]
        people.append({"group": one["group"], **named, "visits": shown})
    known = all(len(values) for values in controls)
    data = {
        "patterns": run.summary.n_patterns,
        "controls": [[_rounded(end, 4) for end in np.quantile(values, _CENTILES)] for values in controls if known],
        "regions": regions,
        "people": people,
        "ids": show_ids,
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return {
        "json": Markup(text.translate(_ESCAPES)),  # in a script element, HTML's own escapes are not read
        "ids": show_ids,
        "n_shown": len(people),
        "controls": known,
        "drivers": bool(regions),
    }


def _shown_people(run: Run) -> pd.DataFrame:
    """Return the rows of at most so many people, patients first."""
    first, rows = first_visits(run), run.results.r_indices
    rank = first["group"].map({"patient": 0, "other": 1, "control": 2})
    ids = first.loc[rank.sort_values(kind="stable").index, "participant_id"].head(MOST_PEOPLE)
    return rows[rows["participant_id"].isin(ids)]


def _example(run: Run) -> pd.DataFrame:
    """Return the row of one patient with a high R-index, of those whose regions are known if there are any."""
    first = first_visits(run)
    patients = first[first["group"] == "patient"]
    if "drivers" in run.analyses:
        known = patients["participant_id"].isin(run.analyses["drivers"]["participant_id"])
        patients = patients[known] if known.any() else patients
    highest = patients[run.results.score_names].max(axis=1).dropna().sort_values(kind="stable")
    return patients.loc[highest.index[int(_EXAMPLE_CENTILE * (len(highest) - 1)) :][:1]]


def _in_time(rows: pd.DataFrame) -> pd.DataFrame:
    if "visit" not in rows:
        return rows
    later, years = ~rows["first_visit"].astype(bool), rows.get("years", 0.0)
    order = pd.DataFrame({"later": later, "years": years}).sort_values(["later", "years"], kind="stable")
    return rows.loc[order.index]


def _drivers(run: Run, rows: pd.DataFrame) -> tuple[dict[Hashable, list[list[float | None]]], list[str]]:
    """Return the driving regions by person and visit, a flat list for each pattern, and the names of all regions."""
    table = run.analyses.get("drivers")
    if table is None:
        return {}, []
    table = table[table["participant_id"].isin(rows["participant_id"])].sort_values("rank", kind="stable")
    places, names = pd.factorize(table["region"])
    visits = table["visit"] if "visit" in table else [""] * len(table)
    found: dict[Hashable, list[list[float | None]]] = {}
    columns = (table["participant_id"], visits, table["pattern"], places, table["change_sd"], table["z"])
    for person, visit, pattern, place, change, z in zip(*columns, strict=True):
        lists = found.setdefault((person, visit), [[] for _ in range(run.summary.n_patterns)])
        lists[pattern - 1] += [int(place), _rounded(change), _rounded(z)]  # flat, which keeps the page light
    return found, [*names]


def _visit(
    row: pd.Series,
    controls: list[np.ndarray],
    drivers: dict[Hashable, list[list[float | None]]],
    curtain: Curtain,
    show_ids: bool,
) -> dict[str, object]:
    name, names = str(row.get("visit", "")), [f"r{place}" for place in range(1, len(controls) + 1)]
    above = [
        None if pd.isna(row[score]) else _rounded(100 * np.searchsorted(values, row[score]) / len(values), 1)
        for score, values in zip(names, controls, strict=True)
        if len(values)
    ]
    visit = {
        "r": [_rounded(row[score], 3) for score in names],
        "sd": [_rounded(row[f"{score}_sd"], 3) for score in names],
        "above": above,
        "visit": name if show_ids else "",
        "flags": curtain(str(row.get("flags", "")).strip()),
        "drivers": drivers.get((row["participant_id"], name)),
    }
    return {key: value for key, value in visit.items() if value}


def _rounded(value: float, digits: int = 2) -> float | None:
    return None if pd.isna(value) else round(float(value), digits)
