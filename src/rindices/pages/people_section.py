"""The sections on people: who took part, how to read their severities, and each person individually."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rindices import plots
from rindices.pages.elements import GROUPS, Table, counts, measures, number, script_json, words
from rindices.pages.layout import RunView
from rindices.pages.patterns_section import strongest_first

# The regions that drive severities: for each person and visit, a list per pattern. Lists are flat to keep the page
# small: index of the region among the names, change, z, index of the next, ...
Drivers = dict[tuple[str, str], list[list[float | None]]]

_EXAMPLE_SHARE = 0.1  # of the patients have a higher severity than the person shown first
# Mean severity of controls: 0.02 to 0.16 in cohorts whose intervals keep their coverage, 0.36 where they cover the
# truth in only half of the people (results/severity.csv).
_HIGH_FOR_CONTROLS = 0.2


def people_section(view: RunView) -> dict[str, object]:
    """Return the flow of participants and those who are unusual, listed individually if ids are shown."""
    flow, people = view.run.analyses.get("flow"), view.run.results.people
    flagged = people[people["flags"].str.strip() != ""]
    alt = "Each person's distance from the controls, shown separately for each group. Crosses mark outliers."
    return {
        "flow": [] if flow is None else _flow(flow, "Visits" if view.run.summary.visits else "People"),
        "n_used": int(people["used"].sum()),
        "n_flagged": len(flagged),
        "picture": view.gallery.draw("outliers", plots.outlier_distances(people), alt, result=False)
        if people["distance"].notna().any()
        else None,
        "flagged": _flagged(flagged) if view.show_ids and len(flagged) else None,
    }


def _flow(flow: pd.DataFrame, what: str) -> list[Table]:
    tables = []
    for by_site, rows in flow.groupby(flow["site"] != "all"):
        caption = "Counts at each site" if by_site else f"{what} read, excluded and used"
        reasons = [name for name in rows.columns[2:] if name in ("read", "used") or rows[name].any()]
        columns = [
            *([words("Site", rows["site"])] if by_site else ()),
            words("Group", rows["group"].replace(GROUPS)),
            *(counts(f"{name[:1].upper()}{name[1:]}", rows[name]) for name in reasons),
        ]
        tables.append(Table(caption, columns, source="analysis/flow.csv"))
    return tables


def _flagged(rows: pd.DataFrame) -> Table:
    used = ["yes" if used else f"no: {reason}" for used, reason in zip(rows["used"], rows["reason"], strict=True)]
    return Table(
        "People with unusual values",
        [
            words("Participant", rows["participant_id"]),
            *([words("Visit", rows["visit"])] if "visit" in rows else []),
            words("Group", rows["group"].replace(GROUPS)),
            words("Used", used),
            measures("Distance", rows["distance"], 1),
            words("What is unusual", rows["flags"]),
        ],
        source="people.csv",
    )


def recovery_section(view: RunView) -> dict[str, object] | None:
    """Return the comparison with the true severities of a demonstration; None without them."""
    recovery = view.run.summary.recovery
    if view.run.truth is None or recovery is None:
        return None
    known = view.run.truth.notna().all(axis=1) & (view.run.results.r_indices["group"] == "patient")
    figure = plots.recovery(view.run.truth[known], recovery.of(view.run.results.scores[known]), recovery.per_pattern)
    values = ", ".join(
        f"{value:.3f} (pattern {number})"
        for number, value in zip(recovery.matched_patterns, recovery.per_pattern, strict=True)
    )
    alt = f"Estimated severity plotted against true severity, one mark per patient. Concordance: {values}."
    return {"picture": view.gallery.draw("recovery", figure, alt, result=False)}


def reading_section(view: RunView) -> dict[str, object]:
    """Return the median spread over repetitions of each R-index, and what helps to read severities."""
    people, places = view.run.results.r_indices, range(1, view.run.summary.n_patterns + 1)
    known = {f"r{place}": people[f"r{place}_sd"].dropna() for place in places}
    spreads = [f"{number(values.median(), 3)} ({name})" for name, values in known.items() if len(values)]
    first = view.run.results.first_visits
    means = first.loc[first["group"] == "control", view.run.results.score_names].mean().dropna()
    strongest = [strongest_first(view.run.results.patterns, place)[["change_sd", "region"]].iloc[0] for place in places]
    return {
        "spreads": spreads,
        "intervals": "severity1_low" in people,
        "centiles": "centile1" in people,
        "controls": [number(value) + f" (pattern {place})" * (len(means) > 1) for place, value in enumerate(means, 1)],
        "unit": [
            f"{number(change / 10, 2, '+')} control SDs in {view.region_names[region]} (pattern {place})"
            for place, (change, region) in zip(places, strongest, strict=True)
        ],
        "doubtful": [place for place, value in enumerate(means, 1) if value >= _HIGH_FOR_CONTROLS],
    }


def correlation_section(view: RunView) -> dict[str, object] | None:
    """Return the learned correlation of severities; None if there is none or only one pattern."""
    rows = view.run.summary.correlation or ()
    if len(rows) < 2:
        return None
    names = [f"Pattern {place}" for place in range(1, len(rows) + 1)]
    columns = [measures(name, values) for name, values in zip(names, zip(*rows, strict=True), strict=True)]
    return {"table": Table("Learned correlations between severities", [words("Pattern", names), *columns])}


def explorer_section(view: RunView) -> dict[str, object] | None:
    """Return the people of the explorer; None if no one has a score.

    If ids are hidden, so are diagnoses, dates and names of visits. People are sorted by group and score.
    """
    show_ids, scores, table = view.show_ids, view.run.results.score_names, _people(view)
    if table.empty:
        return None
    first = table[table["first_visit"]].sort_values(["group", *scores], ascending=False, kind="stable")
    sites, changes = _levels(table["site"]) or [], _changes(view)
    drivers, regions = _drivers(view, table)
    clinical = {name: _levels(table[name]) for name in view.variables if name in table}
    ordered = table.sort_values(["first_visit", "years"], ascending=[False, True]) if "years" in table else table
    rows, places = ordered.to_dict("records"), ordered.groupby("participant_id").indices
    people = [
        ({"id": who, "diagnosis": one["diagnosis"]} if show_ids else {})
        | {"group": one["group"], "site": sites.index(one["site"]) if one["site"] in sites else None}
        | ({"change": changes[who]} if who in changes else {})
        | {"visits": [_visit(rows[place], view, drivers, clinical) for place in places[who]]}
        for who, one in first.set_index("participant_id").to_dict("index").items()
    ]
    data = {
        "ids": show_ids,
        "names": [f"Severity {k + 1}" for k in range(len(scores))],
        "level": f"{100 * view.run.summary.level:g} %",
        "reference": "controls" if view.run.summary.reference is None else "held-out controls",
        "bands": [_rounded(band, 4) for band in view.reference],
        "sites": sites,
        "scores": [{"name": name, "levels": levels} for name, levels in clinical.items()],
        "regions": [[region, view.region_names.get(region, region)] for region in regions],
        "example": int(_EXAMPLE_SHARE * (first["group"] == "patient").sum()),
        "people": people,
    }
    return {
        "json": script_json(data),
        "ids": show_ids,
        "n_shown": len(people),
        "bands": bool(view.reference),
        "held_out": view.run.summary.reference is not None,
        "intervals": f"{scores[0]}_low" in table,
        "drivers": bool(regions),
    }


def _people(view: RunView) -> pd.DataFrame:
    """Return the rows of a view's people, patients first, with their sites, variables and centiles."""
    results, names = view.run.results, view.run.results.score_names
    used = results.people[results.people["used"].astype(bool)]
    site = used["site"].fillna("").to_numpy() if "site" in used else ""
    clinical = dict(results.variables.filter(list(view.variables)))
    rows = results.r_indices.assign(**clinical).assign(site=site, first_visit=results.first_visit)
    controls = rows[rows["first_visit"] & (rows["group"] == "control")]
    for place, name in enumerate(names, start=1):
        known = np.sort(controls[name].dropna())
        if f"centile{place}" not in rows and len(known):  # as for models without held-out controls
            above = 100 * np.searchsorted(known, rows[name]) / len(known)
            rows[f"centile{place}"] = np.where(rows[name].isna(), np.nan, above)
    complete = rows[rows["first_visit"] & rows[names].notna().all(axis=1)]
    shown = complete.sort_values("group", ascending=False, kind="stable").head(view.most_people)
    return rows[rows["participant_id"].isin(shown["participant_id"])]


def _changes(view: RunView) -> dict[str, list[list[float | None]]]:
    """Return each person's change in each score from first to last visit, its limits, and whether it is reliable."""
    parts = ("change", "change_low", "change_high", "reliable")
    names = [[f"{name}_{part}" for part in parts] for name in view.run.results.score_names]
    return {
        row["participant_id"]: [_rounded((row[one] for one in of), 3) for of in names]
        for row in view.run.analyses.get("change", pd.DataFrame()).to_dict("records")
    }


def _levels(values: pd.Series) -> list[str] | None:
    """Return the categories of a variable; None if it is numeric."""
    if values.dtype.kind == "f":
        return None
    return sorted({str(value) for value in values.dropna()} - {""})


def _drivers(view: RunView, rows: pd.DataFrame) -> tuple[Drivers, list[str]]:
    """Return the regions that drive severities, and the names of all of these regions."""
    table = view.run.analyses.get("drivers", pd.DataFrame(columns=["participant_id", "rank", "region"]))
    table = table[table["participant_id"].isin(rows["participant_id"])].sort_values("rank", kind="stable")
    places, names = pd.factorize(table["region"])
    found: Drivers = {}
    for place, row in zip(places, table.to_dict("records"), strict=True):
        lists = found.setdefault(
            (row["participant_id"], row.get("visit", "")), [[] for _ in range(view.run.summary.n_patterns)]
        )
        lists[row["pattern"] - 1] += [int(place), *_rounded((row["change_sd"], row["z"]), 2)]
    return found, [*names]


def _visit(
    row: Mapping[Hashable, Any], view: RunView, drivers: Drivers, clinical: Mapping[str, list[str] | None]
) -> dict[str, object]:
    numbers, visit = range(1, view.run.summary.n_patterns + 1), str(row.get("visit", ""))
    scores = [_code(row[name], levels) for name, levels in clinical.items()]
    columns = {"r": "severity{}", "low": "severity{}_low", "high": "severity{}_high", "above": "centile{}"}
    known = {
        name: _rounded([row[form.format(k)] for k in numbers if form.format(k) in row], 1 if name == "above" else 3)
        for name, form in columns.items()
    } | {
        "visit": visit if view.show_ids else "",
        "years": _rounded([row.get("years", np.nan)], 2 if view.show_ids else 1)[0],
        "scores": scores if any(score is not None for score in scores) else None,
        "flags": view.curtain(str(row["flags"]).strip()),
        "drivers": drivers.get((str(row["participant_id"]), visit)),
    }
    return {name: value for name, value in known.items() if value not in (None, "", [])}


def _code(value: Any, levels: list[str] | None) -> float | None:
    """Return the value of a score: a number, or the index of a category; None if it is missing."""
    if pd.isna(value) or value == "":
        return None
    return _rounded([value], 3)[0] if levels is None else levels.index(str(value))


def _rounded(values: Iterable[Any], digits: int) -> list[float | None]:
    return [None if pd.isna(value) else round(float(value), digits) for value in values]
