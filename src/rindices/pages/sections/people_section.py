"""The sections on people: who took part, who is unusual, and what severities they have."""

from __future__ import annotations

import pandas as pd

from rindices import plots
from rindices.pages.elements import GROUPS, Table, counts, measures, number, words
from rindices.pages.run_view import RunView

# Mean severity of controls: 0.02 to 0.16 in cohorts whose intervals hold, 0.36 where they hold the truth in half of the
# people only (experiments/results/severity.csv).
_HIGH_FOR_CONTROLS = 0.2


def people_section(view: RunView) -> dict[str, object]:
    """Return the flow of people, and those who are unusual; by name where ids are shown."""
    flow, people = view.analyses.get("flow"), view.results.people
    flagged = people[people["flags"].str.strip() != ""]
    alt = (
        "How far each person's regions lie from those of the controls, as a robust distance, for each group; "
        "people who were flagged are marked."
    )
    known = people["distance"].notna().any()
    return {
        "flow": [] if flow is None else _flow(flow, "Visits" if view.summary.visits else "People"),
        "n_used": int(people["used"].sum()),
        "n_flagged": len(flagged),
        "picture": view.gallery.draw("outliers", plots.outlier_distances(people), alt, result=False) if known else None,
        "flagged": _flagged(flagged) if view.show_ids and len(flagged) else None,
    }


def _flow(flow: pd.DataFrame, what: str) -> list[Table]:
    tables = []
    for by_site, caption in ((False, f"{what} read, left out and used"), (True, "The same by site")):
        rows = flow[(flow["site"] != "all") == by_site]
        reasons = [name for name in rows.columns[2:] if name in ("read", "used") or rows[name].any()]
        columns = [words("Group", rows["group"].replace(GROUPS))]
        columns += [counts(f"{name[:1].upper()}{name[1:]}", rows[name]) for name in reasons]
        site = [words("Site", rows["site"])] if by_site else []
        tables += [Table(caption, [*site, *columns], source="analysis/flow.csv")] if len(rows) else []
    return tables


def _flagged(rows: pd.DataFrame) -> Table:
    used = ["yes" if used else f"no: {reason}" for used, reason in zip(rows["used"], rows["reason"], strict=True)]
    columns = [
        words("Participant", rows["participant_id"]),
        *([words("Visit", rows["visit"])] if "visit" in rows else []),
        words("Group", rows["group"].replace(GROUPS)),
        words("Used", used),
        measures("Distance", rows["distance"], 1),
        words("What is unusual", rows["flags"]),
    ]
    return Table("People with something unusual", columns, source="people.csv")


def recovery_section(view: RunView) -> dict[str, object] | None:
    """Return the comparison with the truth of a demonstration."""
    if view.run.truth is None or view.summary.recovery is None:
        return None
    known = view.run.truth.notna().all(axis=1) & (view.results.r_indices["group"] == "patient")
    per_pattern = list(view.summary.recovery.per_pattern)
    figure = plots.recovery(view.run.truth[known], view.results.scores[known], per_pattern)
    values = ", ".join(f"pattern {place}: {value:.3f}" for place, value in enumerate(per_pattern, start=1))
    alt = f"Known severity against {view.results.measure} in patients. Concordance, {values}."
    return {"picture": view.gallery.draw("recovery", figure, alt, result=False)}


def distributions_section(view: RunView) -> dict[str, object]:
    """Return the severities of each group as a picture and their quartiles."""
    first = view.results.first_visits
    scores = [first.groupby("group")[name].describe() for name in view.results.score_names]
    found = {place: table.reindex(["control", "patient", "other"]) for place, table in enumerate(scores, start=1)}
    rows = pd.concat(found, names=["pattern", "group"]).reset_index()
    rows = rows[rows["count"] > 0]
    columns = [
        counts("Pattern", rows["pattern"]),
        words("Group", rows["group"].map(GROUPS)),
        counts("People", rows["count"]),
        *(measures(title, rows[name]) for title, name in (("25 %", "25%"), ("Median", "50%"), ("75 %", "75%"))),
    ]
    what, reference = view.results.measures, view.summary.reference
    alt = f"{what.capitalize()} of each group, one panel per pattern; the table below gives the quartiles."
    return {
        "picture": view.gallery.draw("r_indices", plots.r_index_distributions(first, reference), alt),
        "table": Table(f"Quartiles of the {what}", columns),
    }


def reading_section(view: RunView) -> dict[str, object]:
    """Return the median spread over repetitions of each R-index, and what is known of severities."""
    people = view.results.r_indices
    known = {f"R{place}": people[f"r{place}_sd"].dropna() for place in range(1, view.summary.n_patterns + 1)}
    spreads = [f"{number(values.median(), 3)} ({name})" for name, values in known.items() if len(values)]
    means = (
        people.loc[(people["group"] == "control") & view.results.first_visit, view.results.score_names].mean().dropna()
    )
    return {
        "spreads": ", ".join(spreads),
        "intervals": "severity1_low" in people,
        "centiles": "centile1" in people,
        "controls": [number(value) for value in means],
        "doubtful": [place for place, value in enumerate(means, 1) if value >= _HIGH_FOR_CONTROLS],
    }


def correlation_section(view: RunView) -> dict[str, object] | None:
    """Return the learned correlation of severities, nothing where there is none, or one pattern only."""
    rows = view.summary.correlation or ()
    if len(rows) < 2:
        return None
    names = [f"Pattern {place}" for place in range(1, len(rows) + 1)]
    columns = [measures(name, values) for name, values in zip(names, zip(*rows, strict=True), strict=True)]
    return {"table": Table("Learned correlation of severities", [words("Pattern", names), *columns])}
