"""The section on single people: what the page's script needs to draw their cards."""

import json
import re
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from rindices.report.csv_files import in_time
from rindices.report.privacy import Curtain
from rindices.report.read import RunResults

MOST_PEOPLE = 3000
_CENTILES = (0.05, 0.5, 0.95)
_EXAMPLE_CENTILE = 0.9  # a patient with a high R-index, but not the most extreme one
# None of these can end the script element or begin a tag, wherever they stand in a name.
_ESCAPES = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def cards_section(results: RunResults, curtain: Curtain, *, show_ids: bool) -> dict[str, Any] | None:
    """Return the people whose cards can be opened; without ids one example, nothing where there is none."""
    rows = _shown_people(results) if show_ids else _example(results)
    if rows.empty:
        return None
    regions: dict[str, int] = {}
    drivers = _drivers(results, rows, regions)
    controls = _controls(results)
    people = []
    for _, one in in_time(rows).groupby("participant_id", sort=True):
        person = _person(one, show_ids=show_ids)
        person["visits"] = [_visit(row, controls, drivers, curtain, show_ids) for row in one.to_dict("records")]
        people.append(person)
    data = {
        "patterns": results.n_patterns,
        "controls": [[_rounded(value, 4) for value in np.quantile(values, _CENTILES)] for values in controls],
        "regions": list(regions),
        "people": people,
        "ids": show_ids,
    }
    return {
        "json": Markup(_safe_json(data)),  # escaped for a script element, where HTML's own escapes are not read
        "ids": show_ids,
        "n_shown": len(people),
        "n_people": results.first.shape[0],
        "scatter": results.n_patterns > 1,
        "controls": bool(controls),
        "visits": "visit" in results.r_indices,
        "drivers": bool(regions),
    }


def _safe_json(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def _shown_people(results: RunResults) -> pd.DataFrame:
    """Return the rows of at most so many people, patients first."""
    first = results.first
    rank = first["group"].map({"patient": 0, "other": 1, "control": 2})
    ids = first.loc[rank.sort_values(kind="stable").index, "participant_id"].head(MOST_PEOPLE)
    return results.r_indices[results.r_indices["participant_id"].isin(set(ids))]


def _example(results: RunResults) -> pd.DataFrame:
    """Return the row of one patient with a high R-index, of those whose regions are known if there are any."""
    patients = results.group("patient")
    drivers = results.analyses.drivers
    if drivers is not None:
        known = patients["participant_id"].isin(set(drivers["participant_id"]))
        patients = patients[known] if known.any() else patients
    names = [f"r{place}" for place in range(1, results.n_patterns + 1)]
    highest = patients[names].max(axis=1).dropna().sort_values(kind="stable")
    if highest.empty:
        return patients.head(0)
    return patients.loc[[highest.index[int(_EXAMPLE_CENTILE * (len(highest) - 1))]]]


def _drivers(results: RunResults, rows: pd.DataFrame, regions: dict[str, int]) -> dict[tuple[str, str], Any]:
    """Return the driving regions by person and visit, a list for each pattern; names go to `regions`."""
    table = results.analyses.drivers
    if table is None:
        return {}
    table = table[table["participant_id"].isin(set(rows["participant_id"]))].sort_values("rank", kind="stable")
    visits = table["visit"] if "visit" in table else pd.Series("", index=table.index)
    found: dict[tuple[str, str], Any] = {}
    columns = (table["participant_id"], visits, table["pattern"], table["region"], table["change_sd"], table["z"])
    for person, visit, pattern, region, change, z in zip(*columns, strict=True):
        lists = found.setdefault((person, visit), [[] for _ in range(results.n_patterns)])
        place = regions.setdefault(region, len(regions))
        lists[int(pattern) - 1] += [place, _rounded(change), _rounded(z)]  # flat, which keeps the page light
    return found


def _person(rows: pd.DataFrame, *, show_ids: bool) -> dict[str, Any]:
    first = rows.iloc[0]
    named = {"id": first["participant_id"], "diagnosis": first["diagnosis"]} if show_ids else {}
    return {"group": first["group"], **named}


def _visit(
    row: dict[Any, Any],
    controls: list[np.ndarray],
    drivers: dict[tuple[str, str], Any],
    curtain: Curtain,
    show_ids: bool,
) -> dict[str, Any]:
    name, flags = str(row.get("visit", "")), str(row.get("flags", "")).strip()
    places = range(1, sum(re.fullmatch(r"r\d+", str(column)) is not None for column in row) + 1)
    scores = [row[f"r{place}"] for place in places]
    shares = [
        100 * np.searchsorted(values, score) / len(values) for values, score in zip(controls, scores, strict=False)
    ]
    visit: dict[str, Any] = {
        "r": [_rounded(score, 3) for score in scores],
        "sd": [_rounded(row[f"r{place}_sd"], 3) for place in places],
        "above": [None if pd.isna(score) else _rounded(share, 1) for share, score in zip(shares, scores, strict=False)],
        "visit": name if show_ids else "",
        "flags": curtain(flags),
        "drivers": drivers.get((row["participant_id"], name)),
    }
    return {key: value for key, value in visit.items() if value}


def _controls(results: RunResults) -> list[np.ndarray]:
    """Return the controls' R-indices of each pattern in order, nothing where there are no controls."""
    controls = results.group("control")
    known = [controls[f"r{place}"].dropna().to_numpy(float) for place in range(1, results.n_patterns + 1)]
    return [np.sort(values) for values in known] if all(len(values) for values in known) else []


def _rounded(value: Any, digits: int = 2) -> float | None:
    return None if pd.isna(value) else round(float(value), digits)
