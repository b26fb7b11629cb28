"""The section on who took part: everybody who was read, who was left out and why, and who is unusual."""

from typing import Any

import pandas as pd

from rindices import plots
from rindices.report.pieces import Gallery, Picture
from rindices.report.read import RunResults
from rindices.report.tables import Cell, Table, count, make_table, measure, numbers

_GROUPS = {"all": "Everybody", "control": "Controls", "patient": "Patients", "other": "Others"}


def people_section(results: RunResults, gallery: Gallery, *, show_ids: bool) -> dict[str, Any] | None:
    """Return what the section shows, nothing where neither a record of people nor a flow of them is there."""
    flow, people = results.analyses.flow, results.analyses.people
    if flow is None and people is None:
        return None
    what = "Visits" if "visit" in results.r_indices else "People"
    flagged = people[people["flags"].str.strip() != ""] if people is not None else None
    return {
        "flow": None if flow is None else _flow_table(flow[flow["site"] == "all"], f"{what} read, left out and used"),
        "applied": results.applied,
        "sites": _sites(flow),
        "n_read": None if people is None else len(people),
        "n_used": None if people is None else int(people["used"].sum()),
        "n_flagged": None if flagged is None else len(flagged),
        "picture": _distances(people, gallery),
        "flagged": _flagged_table(flagged) if show_ids and flagged is not None and len(flagged) else None,
        "visits": "visit" in results.r_indices,
    }


def _sites(flow: pd.DataFrame | None) -> Table | None:
    if flow is None:
        return None
    rows = flow[flow["site"] != "all"]
    return _flow_table(rows, "The same by site", by_site=True) if len(rows) else None


def _flow_table(rows: pd.DataFrame, caption: str, *, by_site: bool = False) -> Table:
    reasons = [str(name) for name in rows.columns if name not in ("site", "group", "read", "used")]
    reasons = [reason for reason in reasons if rows[reason].sum() > 0]
    first = ["Site", "Group"] if by_site else ["Group"]
    columns = [*first, *numbers("Read", *(reason[:1].upper() + reason[1:] for reason in reasons), "Used")]
    cells = []
    for _, row in rows.iterrows():
        names = [str(row["site"])] if by_site else []
        group = _GROUPS.get(row["group"], str(row["group"]))
        cells.append([*names, group, *(count(row[name]) for name in ("read", *reasons, "used"))])
    return make_table(caption, columns, cells, source="analysis/flow.csv")


def _distances(people: pd.DataFrame | None, gallery: Gallery) -> Picture | None:
    if people is None or not people["distance"].notna().any():
        return None
    alt = (
        "How far each person's regions lie from those of the controls, as a robust distance, for each group; "
        "people who were flagged are marked."
    )
    return gallery.draw("outlier_distances", plots.outlier_distances(people), alt)


def _flagged_table(flagged: pd.DataFrame) -> Table:
    visit = ["Visit"] if "visit" in flagged else []
    columns = ["Participant", *visit, "Group", "Used", *numbers("Distance"), "What is unusual"]
    rows = []
    for _, row in flagged.iterrows():
        visits = [str(row["visit"])] if visit else []
        used = "yes" if row["used"] else f"no: {row['reason']}"
        group = _GROUPS.get(row["group"], str(row["group"]))
        rows.append([row["participant_id"], *visits, group, used, measure(row["distance"], 1), Cell(row["flags"])])
    return make_table("People with something unusual", columns, rows, source="people.csv")
