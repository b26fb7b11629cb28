"""The section on the verdict: is there anything to find, and whether it could be something else than disease."""

from typing import Any

import pandas as pd

from rindices import plots
from rindices.report.pieces import Gallery, Picture, listed, number, p_value
from rindices.report.read import RunResults
from rindices.report.summary import CALIBRATED, REFITS
from rindices.report.tables import Cell, Table, make_table, measure, numbers, probability


def verdict_section(results: RunResults, gallery: Gallery) -> dict[str, Any] | None:
    """Return what the section shows, nothing where neither a test nor a check of the groups is known."""
    summary, check = results.summary, results.analyses.group_check
    null, balance = summary.get("null"), summary.get("balance")
    if not null and balance is None and check is None:
        return None
    rows = balance or []
    imbalanced = [row["variable"] for row in rows if row["imbalanced"]]
    removed = summary.get("covariates") or []
    return {
        "tested": not results.applied,
        "sentences": _sentences(null or {}),
        "picture": _picture(null or {}, gallery),
        "balance": _balance_table(rows) if rows else None,
        "imbalanced": listed(imbalanced),
        "imbalanced_removed": listed([name for name in imbalanced if name in removed]),
        "imbalanced_left": listed([name for name in imbalanced if name not in removed]),
        "check": None if check is None else _check_table(check),
        "check_removed": "" if check is None else listed(list(dict.fromkeys(check.loc[check["removed"], "variable"]))),
        "check_left": check is not None and not check["removed"].all(),
        "remarks": [] if check is None else [remark for remark in dict.fromkeys(check["remark"]) if remark.strip()],
    }


def _sentences(null: dict[str, Any]) -> list[str]:
    statistic, words = null.get("statistic"), []
    if null.get("method") not in (CALIBRATED, REFITS) or statistic is None:
        return ["This run was not compared with cohorts without disease."]
    repetitions = null.get("repetitions")
    among = f" among {repetitions} repetitions" if repetitions else ""
    words.append(f"Repeated trainings agree at {number(statistic, 3)} (pattern agreement{among}; 0.5 is chance).")
    if null["method"] == CALIBRATED:
        words.append(_calibrated(statistic, null["threshold"]))
    else:
        words.append(_refitted(null))
    return words


def _calibrated(statistic: float, threshold: float | None) -> str:
    if threshold is None:
        return "For a cohort of this kind there is no threshold to compare it with."
    where = "above" if statistic > threshold else "not above"
    return (
        f"This is {where} the threshold of {number(threshold, 3)}, which was calibrated once on simulated cohorts "
        "without disease, by number of patterns, people, regions and repetitions. It was not calibrated on these data."
    )


def _refitted(null: dict[str, Any]) -> str:
    if not null["values"] or null["p"] is None:
        return "The comparison with cohorts without disease gave no p value."
    p = p_value(null["p"])
    reached = sum(value >= null["statistic"] for value in null["values"])
    return (
        f"The same search was repeated on {null['n']} cohorts in which people were dealt out to the groups at "
        f"random, so that the groups do not differ; "
        f"{reached or 'none'} of them agreed as well or better (p {'' if p.startswith('<') else '= '}{p})."
    )


def _picture(null: dict[str, Any], gallery: Gallery) -> Picture | None:
    if null.get("method") != REFITS or not null["values"] or null["statistic"] is None:
        return None
    highest = number(max(null["values"]), 3)
    alt = (
        f"Agreement in {null['n']} cohorts without disease as dots, the highest at {highest}, and these data as a line "
        f"at {number(null['statistic'], 3)}."
    )
    return gallery.draw("without_disease", plots.null_statistics(null["values"], null["statistic"]), alt)


def _balance_table(rows: list[dict[str, Any]]) -> Table:
    columns = ["Variable", "Controls", "Patients", *numbers("Difference", "p"), "Remark"]
    cells = []
    for row in rows:
        remark = "imbalanced" if row["imbalanced"] else "no clear difference"
        groups = [row["variable"], row["controls"], row["patients"]]
        cells.append([*groups, _difference(row), probability(row["p"]), remark])
    return make_table("Controls and patients compared", columns, cells)


def _difference(row: dict[str, Any]) -> Cell:
    value = measure(row["difference"], 2, "" if row["kind"] == "category" else "+")
    if row["difference"] is None:
        return value
    return value._replace(text=f"V = {value.text}" if row["kind"] == "category" else f"{value.text} sd")


def _check_table(check: pd.DataFrame) -> Table:
    columns = ["Pattern", "Variable", "Statistic", *numbers("Controls", "Patients"), "Groups", *numbers("Explained")]
    cells = []
    for row in check.to_dict("records"):
        value = row["explained"]
        share = measure(value)._replace(text="–" if pd.isna(value) else f"{number(100 * value, 0)} %")
        controls = _with_q(row["coefficient"], row["q"])
        controls = controls._replace(text="removed") if row["removed"] else controls
        patients = _with_q(row["coefficient_patients"], row["q_patients"])
        names = [f"R{row['pattern']}", str(row["variable"]), str(row["statistic"])]
        cells.append([*names, controls, patients, "imbalanced" if row["imbalanced"] else "alike", share])
    return make_table("R-indices and the background of people", columns, cells)


def _with_q(coefficient: float, q: float) -> Cell:
    value, known = measure(coefficient), probability(q).text
    return value._replace(text=f"{value.text} (q {known})") if pd.notna(q) else value
