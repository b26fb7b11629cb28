"""The section on who took part: everybody who was read, who was left out and why, and who is unusual."""

from __future__ import annotations

import pandas as pd

from rindices import plots
from rindices.record import Run
from rindices.report.elements import GROUPS, Gallery, Table, counts, make_table, measures, words


def people_section(run: Run, gallery: Gallery, *, show_ids: bool) -> dict[str, object]:
    """Return the flow of people, and those who are unusual; by name where ids are shown."""
    flow, people = run.analyses.get("flow"), run.results.people
    flagged, picture = people[people["flags"].str.strip() != ""], None
    if people["distance"].notna().any():
        alt = (
            "How far each person's regions lie from those of the controls, as a robust distance, for each group; "
            "people who were flagged are marked."
        )
        picture = gallery.draw("outlier_distances", plots.outlier_distances(people), alt)
    return {
        "flow": [] if flow is None else _flow(flow, "Visits" if run.summary.visits else "People"),
        "n_used": int(people["used"].sum()),
        "n_flagged": len(flagged),
        "picture": picture,
        "flagged": _flagged(flagged) if show_ids and len(flagged) else None,
    }


def _flow(flow: pd.DataFrame, what: str) -> list[Table]:
    whole, sites = flow[flow["site"] == "all"], flow[flow["site"] != "all"]
    tables = []
    for rows, caption in ((whole, f"{what} read, left out and used"), (sites, "The same by site")):
        numbers = [
            counts(f"{name[:1].upper()}{name[1:]}", rows[name])
            for name in map(str, rows.columns[2:])
            if name in ("read", "used") or rows[name].any()
        ]
        site = [] if rows is whole else [words("Site", rows["site"])]
        columns = [*site, words("Group", rows["group"].replace(GROUPS)), *numbers]
        tables += [make_table(caption, columns, source="analysis/flow.csv")] if len(rows) else []
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
    return make_table("People with something unusual", columns, source="people.csv")
