"""The section on single people: what the page's script needs to draw their cards."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from rindices.record import Run
from rindices.report.privacy import Curtain

MOST_PEOPLE = 3000
_CENTILES = (0.05, 0.5, 0.95)
_EXAMPLE_CENTILE = 0.9  # a patient with a high severity, but not the most extreme one
# None of these can end the script element or begin a tag, wherever they stand in a name.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


class Drivers(NamedTuple):
    """The regions that drive severities: by person and visit, a list for each pattern, and the names of all regions.

    A list is flat, which keeps the page light: place of the region among the names, change, z, and so on.
    """

    of: dict[tuple[str, str], list[list[float | None]]]
    regions: list[str]


def cards_section(run: Run, curtain: Curtain, *, show_ids: bool) -> dict[str, object] | None:
    """Return the people whose cards can be opened; without ids one example, nothing where there is none."""
    rows = _shown_people(run) if show_ids else _example(run)
    if rows.empty:
        return None
    first, drivers = run.results.first_visits, _drivers(run, rows)
    names, reference = run.results.score_names, run.summary.reference
    controls = [np.sort(first.loc[first["group"] == "control", name].dropna()) for name in names]
    known = reference is not None or all(map(len, controls))
    bands = reference or [np.quantile(values, _CENTILES) for values in controls if known]
    people = []
    ordered = rows.sort_values(["first_visit", "years"], ascending=[False, True]) if "visit" in rows else rows
    for _, visits in ordered.groupby("participant_id", sort=True):
        one = visits.iloc[0]
        named = {"id": one["participant_id"], "diagnosis": one["diagnosis"]} if show_ids else {}
        shown = [_visit(row, names, controls, drivers, curtain, show_ids) for _, row in visits.iterrows()]
        people.append({"group": one["group"], **named, "visits": shown})
    data = {
        "patterns": run.summary.n_patterns,
        "name": "R" if run.results.measure == "R-index" else "Severity ",
        "level": f"{100 * run.summary.level:g} %",
        "reference": "controls" if reference is None else "held-out controls",
        "controls": [_rounded(band, 4) for band in bands],
        "regions": drivers.regions,
        "people": people,
        "ids": show_ids,
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return {
        "json": Markup(text.translate(_ESCAPES)),  # in a script element, HTML's own escapes are not read
        "ids": show_ids,
        "n_shown": len(people),
        "controls": known,
        "held_out": reference is not None,
        "intervals": f"{names[0]}_low" in rows,
        "drivers": bool(drivers.regions),
    }


def _shown_people(run: Run) -> pd.DataFrame:
    """Return the rows of at most so many people, patients first."""
    first, rows = run.results.first_visits, run.results.r_indices
    rank = first["group"].map({"patient": 0, "other": 1, "control": 2})
    ids = first.loc[rank.sort_values(kind="stable").index, "participant_id"].head(MOST_PEOPLE)
    return rows[rows["participant_id"].isin(ids)]


def _example(run: Run) -> pd.DataFrame:
    """Return the row of one patient with a high severity, of those whose regions are known if there are any."""
    first = run.results.first_visits
    patients = first[first["group"] == "patient"]
    known = patients["participant_id"].isin(run.analyses.get("drivers", patients)["participant_id"])
    patients = patients[known] if known.any() else patients
    highest = patients[run.results.score_names].max(axis=1).dropna().sort_values(kind="stable")
    return patients.loc[highest.index[int(_EXAMPLE_CENTILE * (len(highest) - 1)) :][:1]]


def _drivers(run: Run, rows: pd.DataFrame) -> Drivers:
    empty = pd.DataFrame(columns=["participant_id", "rank", "region", "pattern", "change_sd", "z"])
    table = run.analyses.get("drivers", empty)
    table = table[table["participant_id"].isin(rows["participant_id"])].sort_values("rank", kind="stable")
    places, names = pd.factorize(table["region"])
    found: dict[tuple[str, str], list[list[float | None]]] = {}
    for place, row in zip(places, table.to_dict("records"), strict=True):
        key = (row["participant_id"], row.get("visit", ""))
        lists = found.setdefault(key, [[] for _ in range(run.summary.n_patterns)])
        lists[row["pattern"] - 1] += [int(place), *_rounded((row["change_sd"], row["z"]), 2)]
    return Drivers(found, [*names])


def _visit(
    row: pd.Series, names: list[str], controls: list[np.ndarray], drivers: Drivers, curtain: Curtain, show_ids: bool
) -> dict[str, object]:
    visit, centiles = str(row.get("visit", "")), row.filter(regex=r"^centile\d+$")
    above = [
        np.nan if pd.isna(row[name]) else 100 * np.searchsorted(values, row[name]) / len(values)
        for name, values in zip(names, controls, strict=True)
        if len(values)
    ]
    known = {
        "r": _rounded(row[names], 3),
        "low": _rounded(row.filter(regex=r"^severity\d+_low$"), 3),
        "high": _rounded(row.filter(regex=r"^severity\d+_high$"), 3),
        "above": _rounded(centiles if len(centiles) else above, 1),
        "visit": visit if show_ids else "",
        "flags": curtain(str(row.get("flags", "")).strip()),
        "drivers": drivers.of.get((row["participant_id"], visit)),
    }
    return {name: value for name, value in known.items() if value}


def _rounded(values: Iterable[float], digits: int) -> list[float | None]:
    return [None if pd.isna(value) else round(float(value), digits) for value in values]
