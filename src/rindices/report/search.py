"""The section on the search: which settings were tried, how well each agrees, and why one was chosen."""

from typing import Any

import pandas as pd

from rindices import plots
from rindices.report.pieces import Gallery, Picture, number
from rindices.report.read import AGREEMENT, SETTING, RunResults
from rindices.report.tables import Cell, Table, count, limits, limits_column, make_table, measure, numbers

MOST_SETTINGS = 20
DROPPED = "dropped early"


def search_section(results: RunResults, gallery: Gallery) -> dict[str, Any] | None:
    """Return what the section shows, nothing where there was one setting only."""
    selection = results.selection
    if selection is None or selection["best"].sum() < 2:
        return None
    best = selection[selection["best"]]
    search = results.summary.get("search") or {}
    runners_up = search.get("runners_up") or []
    best = best.assign(rival=_rivals(best))
    ordered = best.sort_values(["rival", "pattern_agreement"], ascending=False, kind="stable")
    # The chosen setting is always shown, however long the list is.
    shown = ordered[ordered["chosen"].to_numpy() | (pd.RangeIndex(len(ordered)) < MOST_SETTINGS)]
    remarks = [_remark(row, best, search) for _, row in shown.iterrows()]
    one_pattern = not ordered["rival"].all()
    return {
        "reason": search.get("reason") or "",
        "picture": _picture(selection, results.chosen, gallery),
        "fewer_models": bool((best["n_models"] < best["n_models"].max()).any()),
        "table": _table(shown, remarks, one_pattern=one_pattern),
        "n_left_out": len(ordered) - len(shown),
        "one_pattern": one_pattern,
        "dropped_early": DROPPED in remarks,
        "runners_up": [_runner_up(entry) for entry in runners_up],
        "effort": _effort(search),
    }


def _rivals(best: pd.DataFrame) -> pd.Series:
    """Return which settings could be chosen: agreement on one pattern does not compare with that on several."""
    return (best["n_patterns"] > 1) | (best["n_patterns"].max() == 1)


def _setting(entry: Any) -> str:
    patterns = int(entry["n_patterns"])
    return f"{patterns} {'pattern' if patterns == 1 else 'patterns'} with orthogonality {entry['orthogonality']:g}"


def _picture(selection: pd.DataFrame, chosen: pd.Series, gallery: Gallery) -> Picture:
    alt = (
        "Agreement between trainings for each number of patterns and each orthogonality. Chosen: "
        f"{_setting(chosen)}, pattern agreement {number(chosen['pattern_agreement'], 3)}. "
        "The table has the values."
    )
    return gallery.draw("agreement_over_settings", plots.agreement_over_settings(selection), alt)


def _table(shown: pd.DataFrame, remarks: list[str], *, one_pattern: bool) -> Table:
    columns = [*numbers("Patterns", "Orthogonality"), "Remark", *numbers("Models", "Step")]
    for name in AGREEMENT:
        title = name.replace("_", " ").capitalize()
        columns += [*numbers(title), limits_column(of=title)]
    rows = []
    for (_, row), remark in zip(shown.iterrows(), remarks, strict=True):
        cells = [count(row["n_patterns"]), Cell(f"{row['orthogonality']:g}"), remark]
        cells += [count(row["n_models"]), count(row["step"])]
        for name in AGREEMENT:
            cells += [measure(row[name], 3), limits(row[f"{name}_low"], row[f"{name}_high"], 3)]
        rows.append(cells)
    caption = "Agreement of each setting, best first" + ("; one pattern last" if one_pattern else "")
    return make_table(caption, columns, rows, marked=remarks.index("chosen"))


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
