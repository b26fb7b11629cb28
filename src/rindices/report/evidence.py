"""The section on the verdict: is there anything to find, and whether it could be something else than disease."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from rindices import plots
from rindices.record import BalanceRow, Run
from rindices.report.elements import (
    Cell,
    Column,
    Gallery,
    Picture,
    Table,
    listed,
    make_table,
    measures,
    number,
    p_value,
    probabilities,
    words,
)


def verdict_section(run: Run, gallery: Gallery) -> dict[str, object] | None:
    """Return what the section shows, nothing where neither a test nor a check of the groups is known."""
    summary, check = run.summary, run.analyses.get("group_check")
    if summary.null is None and summary.balance is None and check is None:
        return None
    imbalanced = [row.variable for row in summary.balance or () if row.imbalanced]
    contents: dict[str, object] = {
        "picture": _picture(run, gallery),
        "balance": _balance_table(summary.balance) if summary.balance else None,
        "imbalanced": listed(imbalanced),
        "imbalanced_removed": listed(name for name in imbalanced if name in summary.covariates),
        "imbalanced_left": listed(name for name in imbalanced if name not in summary.covariates),
        "check": None,
    }
    if check is not None:
        contents |= {
            "check": _check_table(check),
            "check_removed": listed(dict.fromkeys(check.loc[check["removed"], "variable"])),
            "check_left": not check["removed"].all(),
            "remarks": [remark for remark in dict.fromkeys(check["remark"]) if remark.strip()],
        }
    return contents


def _picture(run: Run, gallery: Gallery) -> Picture | None:
    null = run.summary.null
    if null is None or null.statistic is None or not null.values:
        return None
    alt = (
        f"Agreement in {null.n} cohorts without disease as dots, the highest at {number(max(null.values), 3)}, and "
        f"these data as a line at {number(null.statistic, 3)}."
    )
    return gallery.draw("without_disease", plots.null_statistics(list(null.values), null.statistic), alt)


def _balance_table(rows: Sequence[BalanceRow]) -> Table:
    differences = measures("Difference", [row.difference for row in rows])
    shown = []
    for row, cell in zip(rows, differences.cells, strict=True):
        text = f"V = {cell.text}" if row.kind == "category" else f"{number(row.difference, 2, '+')} sd"
        shown.append(cell if row.difference is None else cell._replace(text=text))
    columns = [
        words("Variable", [row.variable for row in rows]),
        words("Controls", [row.controls for row in rows]),
        words("Patients", [row.patients for row in rows]),
        differences._replace(cells=shown),
        probabilities("p", [row.p for row in rows]),
        words("Remark", ["imbalanced" if row.imbalanced else "no clear difference" for row in rows]),
    ]
    return make_table("Controls and patients compared", columns)


def _check_table(check: pd.DataFrame) -> Table:
    shares = [Cell("–" if pd.isna(one) else f"{number(100 * one, 0)} %", f"{one:.15g}") for one in check["explained"]]
    columns = [
        words("Pattern", "R" + check["pattern"].astype(str)),
        words("Variable", check["variable"]),
        words("Statistic", check["statistic"]),
        _with_q("Controls", check["coefficient"], check["q"], check["removed"]),
        _with_q("Patients", check["coefficient_patients"], check["q_patients"], check["removed"] & False),
        words("Groups", check["imbalanced"].map({True: "imbalanced", False: "alike"})),
        Column("Explained", shares),
    ]
    return make_table("R-indices and the background of people", columns)


def _with_q(title: str, coefficients: pd.Series, qs: pd.Series, removed: pd.Series) -> Column:
    column = measures(title, coefficients)
    cells = []
    for cell, q, gone in zip(column.cells, qs, removed, strict=True):
        text = "removed" if gone else cell.text if pd.isna(q) else f"{cell.text} (q {p_value(q)})"
        cells.append(cell._replace(text=text))
    return column._replace(cells=cells)
