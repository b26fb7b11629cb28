"""The section on the verdict: is there anything to find, and whether it could be something else than disease."""

from typing import Any

from rindices import plots
from rindices.report.pieces import Picture, number, p_value, picture
from rindices.report.summary import CALIBRATED, REFITS


def verdict_section(summary: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the section shows, nothing where neither a test nor the balance of the groups is known."""
    null, balance = summary.get("null"), summary.get("balance")
    if not null and balance is None:
        return None
    rows = balance or []
    imbalanced = [row["variable"] for row in rows if row["imbalanced"]]
    removed = summary.get("covariates") or []
    return {
        "sentences": _sentences(null or {}),
        "picture": _picture(null or {}),
        "balance": [_balance_row(row) for row in rows],
        "imbalanced": _listed(imbalanced),
        "imbalanced_removed": _listed([name for name in imbalanced if name in removed]),
        "imbalanced_left": _listed([name for name in imbalanced if name not in removed]),
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
        f"The same search was repeated on {null['n']} cohorts in which the labels of patients and controls were "
        f"permuted, so that the groups do not differ; "
        f"{reached or 'none'} of them agreed as well or better (p {'' if p.startswith('<') else '= '}{p})."
    )


def _picture(null: dict[str, Any]) -> Picture | None:
    if null.get("method") != REFITS or not null["values"] or null["statistic"] is None:
        return None
    highest = number(max(null["values"]), 3)
    alt = (
        f"Agreement in {null['n']} cohorts without disease as dots, the highest at {highest}, and these data as a line "
        f"at {number(null['statistic'], 3)}."
    )
    return picture(plots.null_statistics(null["values"], null["statistic"]), alt)


def _balance_row(row: dict[str, Any]) -> dict[str, str]:
    difference = row["difference"]
    if difference is None:
        shown = "–"
    elif row["kind"] == "category":
        shown = f"V = {number(difference)}"
    else:
        shown = f"{number(difference, 2, '+')} sd"
    return {
        "variable": row["variable"],
        "controls": row["controls"],
        "patients": row["patients"],
        "difference": shown,
        "p": p_value(row["p"]),
        "q": p_value(row["q"]),
        "remark": "imbalanced" if row["imbalanced"] else "no clear difference",
    }


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
