"""The section on the search: which settings were tried, how well each agrees, and why one was chosen."""

from typing import Any

import pandas as pd

from rindices import plots
from rindices.report.pieces import Picture, interval, number, picture
from rindices.report.read import AGREEMENT, SETTING, RunResults

MOST_SETTINGS = 20
DROPPED = "dropped early"


def search_section(results: RunResults) -> dict[str, Any] | None:
    """Return what the section shows, nothing where there was one setting only."""
    best = results.selection[results.selection["best"]]
    if len(best) < 2:
        return None
    search = results.summary.get("search") or {}
    runners_up = search.get("runners_up") or []
    best = best.assign(rival=_rivals(best))
    ordered = best.sort_values(["rival", "pattern_agreement"], ascending=False, kind="stable")
    # The chosen setting is always shown, however long the list is.
    shown = ordered[ordered["chosen"].to_numpy() | (pd.RangeIndex(len(ordered)) < MOST_SETTINGS)]
    rows = [_row(row, _remark(row, best, search)) for _, row in shown.iterrows()]
    return {
        "reason": search.get("reason") or "",
        "picture": _picture(results),
        "fewer_models": bool((best["n_models"] < best["n_models"].max()).any()),
        "rows": rows,
        "n_left_out": len(ordered) - len(shown),
        "one_pattern": not ordered["rival"].all(),
        "dropped_early": any(row["remark"] == DROPPED for row in rows),
        "runners_up": [_runner_up(entry) for entry in runners_up],
        "effort": _effort(search),
    }


def _rivals(best: pd.DataFrame) -> pd.Series:
    """Return which settings could be chosen: agreement on one pattern does not compare with that on several."""
    return (best["n_patterns"] > 1) | (best["n_patterns"].max() == 1)


def _setting(entry: Any) -> str:
    patterns = int(entry["n_patterns"])
    return f"{patterns} {'pattern' if patterns == 1 else 'patterns'} with orthogonality {entry['orthogonality']:g}"


def _picture(results: RunResults) -> Picture:
    alt = (
        "Agreement between trainings for each number of patterns and each orthogonality. Chosen: "
        f"{_setting(results.chosen)}, pattern agreement {number(results.chosen['pattern_agreement'], 3)}. "
        "The table has the values."
    )
    return picture(plots.agreement_over_settings(results.selection), alt)


def _row(row: pd.Series, remark: str) -> dict[str, Any]:
    values = [(number(row[name], 3), interval(row[f"{name}_low"], row[f"{name}_high"])) for name in AGREEMENT]
    return {
        "n_patterns": int(row["n_patterns"]),
        "orthogonality": f"{row['orthogonality']:g}",
        "n_models": int(row["n_models"]),
        "step": f"{int(row['step']):,}",
        "values": values,
        "remark": remark,
    }


def _remark(row: pd.Series, best: pd.DataFrame, search: dict[str, Any]) -> str:
    if row["chosen"]:
        return "chosen"
    runners_up = search.get("runners_up") or []
    if any(all(entry[name] == row[name] for name in SETTING) for entry in runners_up):
        return "runner-up"
    if not row["rival"]:
        return "not a rival"
    # Fewer models than the first look had, or the same: this setting was not trained on. More: some were faulty.
    first = search.get("first_stage_repetitions") or 0
    if search.get("exhaustive") is False and row["n_models"] <= first < best["n_models"].max():
        return DROPPED
    return ""


def _runner_up(entry: dict[str, Any]) -> str:
    models = f"{entry['n_models']} {'model' if entry['n_models'] == 1 else 'models'}"
    return f"{_setting(entry)} (pattern agreement {number(entry['pattern_agreement'], 3)}, {models})"


def _effort(search: dict[str, Any]) -> str:
    trained, whole = search.get("models_trained"), search.get("models_exhaustive")
    if trained is None or whole is None:
        return ""
    if search.get("exhaustive") or trained >= whole:
        return f"Every setting was trained in full: {trained:,} models."
    first = search.get("first_stage_repetitions")
    look = f" after {first} repetitions of each" if first else ""
    return (
        f"{trained:,} models were trained, where all repetitions of all settings would have been {whole:,}: "
        f"settings that agreed clearly less{look} were dropped."
    )
