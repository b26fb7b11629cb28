"""The sections on repeated trainings: the settings that were tried, and how well the chosen one agrees with itself."""

from __future__ import annotations

import pandas as pd

from rindices import plots
from rindices.record import Run, Search
from rindices.report.elements import (
    Cell,
    Column,
    Gallery,
    Table,
    counted,
    counts,
    limits,
    make_table,
    measures,
    number,
    words,
)

MOST_SETTINGS = 20
_DROPPED = "dropped early"
_AGREEMENT = ("pattern_agreement", "dimension_correlation", "difference_correlation")


def search_section(run: Run, gallery: Gallery) -> dict[str, object] | None:
    """Return the settings that were tried, nothing where there was one only."""
    if run.selection is None or run.selection["best"].sum() < 2:
        return None
    best = run.selection[run.selection["best"]]
    # Agreement on one pattern does not compare with that on several.
    rival = (best["n_patterns"] > 1) | (best["n_patterns"].max() == 1)
    best = best.assign(remark=_remarks(best, rival, run.summary.search), rival=rival)
    ordered = best.sort_values(["rival", "pattern_agreement"], ascending=False, kind="stable")
    # The chosen setting is always shown, however long the list is.
    shown = ordered[ordered["chosen"].to_numpy() | (pd.RangeIndex(len(ordered)) < MOST_SETTINGS)]
    chosen = best[best["chosen"]].iloc[0]
    alt = (
        "Agreement between trainings for each number of patterns and each orthogonality. Chosen: "
        f"{_setting(chosen['n_patterns'], chosen['orthogonality'])}, "
        f"pattern agreement {number(chosen['pattern_agreement'], 3)}. The table has the values."
    )
    runners_up = [
        f"{_setting(one.n_patterns, one.orthogonality)} (pattern agreement {number(one.pattern_agreement, 3)}, "
        f"{counted(one.n_models, 'model')})"
        for one in run.summary.search.runners_up
    ]
    return {
        "picture": gallery.draw("agreement_over_settings", plots.agreement_over_settings(run.selection), alt),
        "fewer_models": bool((best["n_models"] < best["n_models"].max()).any()),
        "table": _settings_table(shown, one_pattern=not rival.all()),
        "n_left_out": len(ordered) - len(shown),
        "one_pattern": not rival.all(),
        "dropped_early": (shown["remark"] == _DROPPED).any(),
        "runners_up": runners_up,
    }


def _setting(n_patterns: float, orthogonality: float) -> str:
    return f"{counted(int(n_patterns), 'pattern')} with orthogonality {orthogonality:g}"


def _remarks(best: pd.DataFrame, rival: pd.Series, search: Search) -> list[str]:
    runners_up = {(one.n_patterns, one.orthogonality) for one in search.runners_up}
    # Fewer models than the first look had, or the same: this setting was not trained on. More: some were faulty.
    first = 0 if search.exhaustive else search.first_stage_repetitions
    dropped = (best["n_models"] <= first) & (first < best["n_models"].max())
    remarks = []
    settings = zip(best["n_patterns"], best["orthogonality"], strict=True)
    for setting, chosen, compared, left in zip(settings, best["chosen"], rival, dropped, strict=True):
        other = "not a rival" if not compared else _DROPPED if left else ""
        remarks.append("chosen" if chosen else "runner-up" if setting in runners_up else other)
    return remarks


def _settings_table(shown: pd.DataFrame, *, one_pattern: bool) -> Table:
    columns = [
        counts("Patterns", shown["n_patterns"]),
        Column("Orthogonality", [Cell(f"{value:g}") for value in shown["orthogonality"]]),
        words("Remark", shown["remark"]),
        counts("Models", shown["n_models"]),
        counts("Step", shown["step"]),
    ]
    for name in _AGREEMENT:
        title = name.replace("_", " ").capitalize()
        columns += [measures(title, shown[name], 3), limits(shown[f"{name}_low"], shown[f"{name}_high"], 3, of=title)]
    caption = "Agreement of each setting, best first" + ("; one pattern last" if one_pattern else "")
    return make_table(caption, columns, marked=shown["remark"].tolist().index("chosen"))


def agreement_section(run: Run, gallery: Gallery) -> dict[str, object] | None:
    """Return the agreement over training of the chosen setting, without a picture with a single training."""
    if run.selection is None:
        return None
    chosen = run.selection[run.selection["chosen"]].iloc[0]
    names = [name.replace("_", " ") for name in _AGREEMENT]
    low, high = ([chosen[f"{name}_{end}"] for name in _AGREEMENT] for end in ("low", "high"))
    intervals = bool(pd.notna([*low, *high]).any())
    columns = [
        words("Index", [name.capitalize() for name in names]),
        measures("Value", [chosen[name] for name in _AGREEMENT], 3),
        *([limits(low, high, 3)] if intervals else []),
    ]
    step = f"{int(chosen['step']):,}"
    values = ", ".join(f"{name} {cell.text}" for name, cell in zip(names, columns[1].cells, strict=True))
    alt = f"Agreement between trainings over the steps of training. At the chosen step {step}: {values}."
    known = bool(chosen[list(_AGREEMENT)].notna().any())
    figure = (
        gallery.draw("agreement_over_training", plots.agreement_over_training(run.selection), alt) if known else None
    )
    return {
        "table": make_table(f"Agreement at the chosen step {step}", columns),
        "intervals": intervals,
        "searched": run.selection["best"].sum() > 1,
        "n_models": int(chosen["n_models"]),
        "picture": figure,
    }


def repetitions_section(run: Run) -> dict[str, object] | None:
    """Return which repetitions did not go into the R-indices."""
    if run.summary.applied:
        return None
    left_out = run.summary.members_left_out
    columns = [words("Repetition", [one.member for one in left_out]), words("Reason", [one.reason for one in left_out])]
    return {"table": make_table("Repetitions that were left out", columns) if left_out else None}
