"""``summary.json``: read, and every part that the report shows checked."""

import json
from pathlib import Path
from typing import Any

from rindices.report.checks import MAYBE_NUMBER, NUMBER, REMEDY, Kinds, check_rows, check_values, damaged, read_text

STATUSES = ("done", "failed", "unfinished")
CALIBRATED, REFITS, NOT_TESTED = "calibrated", "refits", "none"

# What the report of a finished run cannot do without; everything else is shown where it is there.
_REQUIRED: Kinds = {
    "n_controls": int,
    "n_patients": int,
    "n_features": int,
    "n_patterns": int,
    "patterns_chosen_from_data": bool,
    "repetitions": int,
    "reliable": (bool, type(None)),
    "warnings": list,
}
# People who were scored by a model that was there before: nothing was trained, chosen or judged.
_REQUIRED_APPLIED: Kinds = {"n_features": int, "n_patterns": int, "warnings": list}
_OPTIONAL: Kinds = {
    "n_other": int,
    "weights": dict,
    "versions": dict,
    "members_used": (int, list),
    "members_left_out": list,
    "seconds": NUMBER,
    "recovery": dict,
    "failure": str,
    "reliable_reason": str,
    "search": dict,
    "null": dict,
    "balance": list,
    "correlation": list,
    "applied": bool,
    "model": (str, dict),
    "model_sha256": str,
    "correction": dict,
    "clinical": list,
    "excluded": dict,
    "n_read": int,
    "subgroup_limits": list,
    "n_controls": int,
    "n_patients": int,
}
_CORRECTION: Kinds = {"smooth": list, "interactions": list, "proportion": str, "site": str, "n_sites": int}
_SEARCH: Kinds = {
    "exhaustive": bool,
    "first_stage_repetitions": int,
    "models_trained": int,
    "models_exhaustive": int,
    "runners_up": list,
    "reason": str,
}
_RUNNER_UP: Kinds = {
    "n_patterns": int,
    "orthogonality": NUMBER,
    "pattern_agreement": MAYBE_NUMBER,
    "n_models": int,
}
_NULL: dict[str, Kinds] = {
    CALIBRATED: {"statistic": MAYBE_NUMBER, "threshold": MAYBE_NUMBER},
    NOT_TESTED: {},
    REFITS: {"statistic": MAYBE_NUMBER, "p": MAYBE_NUMBER, "n": int, "values": list},
}
_BALANCE: Kinds = {
    "variable": str,
    "kind": str,
    "controls": str,
    "patients": str,
    "difference": MAYBE_NUMBER,
    "p": MAYBE_NUMBER,
    "imbalanced": bool,
}
_LEFT_OUT: Kinds = {"member": (int, str), "reason": str}


def read_summary(folder: Path) -> dict[str, Any]:
    """Read ``summary.json``; what is missing or damaged is a ``ValueError`` that names it and the remedy.

    Of a run whose ``status`` is not ``"done"`` nothing else is required.
    """
    if not folder.is_dir():
        raise ValueError(f"The run folder {folder} does not exist. {REMEDY}")
    path = folder / "summary.json"
    try:
        summary = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise damaged(path, f"it is not JSON (line {error.lineno}: {error.msg})") from error
    if not isinstance(summary, dict):
        raise damaged(path, "expected an object with named values")
    check_values(path, summary, {"status": str}, required=True)
    if summary["status"] not in STATUSES:
        raise damaged(path, f"'status' has the unexpected value {summary['status']!r}, expected one of {STATUSES}")
    required = _REQUIRED_APPLIED if summary.get("applied") is True else _REQUIRED
    check_values(path, summary, required, required=summary["status"] == "done")
    check_values(path, summary, _OPTIONAL, required=False)
    if summary["status"] == "done":
        _check_parts(path, summary)
    return summary


def _check_parts(path: Path, summary: dict[str, Any]) -> None:
    if summary["n_patterns"] < 1:
        raise damaged(path, f"'n_patterns' is {summary['n_patterns']}, expected 1 or more")
    check_rows(path, summary.get("members_left_out"), _LEFT_OUT, of="members_left_out")
    check_rows(path, summary.get("balance"), _BALANCE, of="balance")
    _check_correlation(path, summary.get("correlation"), summary["n_patterns"])
    check_values(path, summary.get("correction") or {}, _CORRECTION, required=False, of="correction")
    excluded = summary.get("excluded") or {}
    check_values(path, excluded, dict.fromkeys(excluded, int), required=True, of="excluded")
    for value in summary.get("subgroup_limits") or []:
        check_values(path, {"subgroup_limits": value}, {"subgroup_limits": NUMBER}, required=True)
    search = summary.get("search") or {}
    check_values(path, search, _SEARCH, required=False, of="search")
    check_rows(path, search.get("runners_up"), _RUNNER_UP, of="runners_up")
    null = summary.get("null")
    if null:
        if null.get("method") not in _NULL:
            raise damaged(path, f"'method' of 'null' has the unexpected value {null.get('method')!r}")
        check_values(path, null, _NULL[null["method"]], required=True, of="null")
        check_values(path, null, {"repetitions": int}, required=False, of="null")
        for value in null.get("values") or []:
            check_values(path, {"values": value}, {"values": NUMBER}, required=True, of="null")


def _check_correlation(path: Path, rows: list[Any] | None, n_patterns: int) -> None:
    if rows is None:
        return
    if len(rows) != n_patterns or not all(isinstance(row, list) and len(row) == n_patterns for row in rows):
        raise damaged(path, f"'correlation' needs {n_patterns} rows of {n_patterns} numbers")
    for value in (value for row in rows for value in row):
        check_values(path, {"correlation": value}, {"correlation": NUMBER}, required=True)
