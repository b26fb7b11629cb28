"""The sections on the evidence for the patterns: settings tried, agreement of the repetitions, and the verdict."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rindices import plots
from rindices.pages.elements import (
    Cell,
    Column,
    Gallery,
    Picture,
    Table,
    counts,
    limits,
    measures,
    number,
    p_value,
    probabilities,
    words,
)
from rindices.pages.layout import RunView
from rindices.problems import counted
from rindices.record import AGREEMENTS

_DROPPED = "dropped early"


def verdict_section(view: RunView) -> dict[str, object] | None:
    """Return the tests and the comparison of the groups behind the verdict; None if there is neither."""
    evidence, balance, check = view.run.summary.evidence, view.run.summary.balance, view.run.analyses.get("group_check")
    if evidence is None and balance is None and check is None:
        return None
    picture = None
    if evidence is not None and evidence.limit is not None:
        picture = spectrum_picture(view.gallery, evidence.eigenvalues, evidence.band, evidence.limit)
    return {
        "picture": picture,
        "balance": _balance_table(pd.DataFrame([*balance])) if balance else None,
        "imbalanced": [row["variable"] for row in balance or () if row["imbalanced"]],
        "check": None if check is None else _check_table(check),
        "check_removed": [] if check is None else check["variable"][check["removed"]].unique(),
        "check_left": check is not None and not check["removed"].all(),
        "remarks": [] if check is None else check["remark"][check["remark"].str.strip() != ""].unique().tolist(),
    }


def spectrum_picture(gallery: Gallery, eigenvalues: Sequence[float], band: Sequence[float], limit: float) -> Picture:
    """Return a picture of the variance of patients in each direction and in permuted groups; see `plots.spectrum`."""
    n_beyond = sum(value > limit for value in eigenvalues)
    alt = (
        f"Variance in patients relative to controls in {len(eigenvalues)} directions. The largest value is "
        f"{number(eigenvalues[0], 1)}; the limit is {number(limit, 1)}, and "
        f"{counted(n_beyond, 'direction exceeds', 'directions exceed')} it."
    )
    return gallery.draw("spectrum", plots.spectrum(eigenvalues, band, limit), alt, result=False)


def _balance_table(rows: pd.DataFrame) -> Table:
    differences = [
        f"V = {number(value)}" if kind == "category" and pd.notna(value) else number(value, 2, "+", " sd")
        for kind, value in zip(rows["kind"], rows["difference"], strict=True)
    ]
    return Table(
        "Comparison of controls and patients",
        [
            *(words(name.capitalize(), rows[name]) for name in ("variable", "controls", "patients")),
            measures("Difference", rows["difference"]).shown_as(differences),
            probabilities("p, corrected", rows["p_corrected"]),
            words("Remark", rows["imbalanced"].map({True: "imbalanced", False: "no clear difference"})),
        ],
    )


def _check_table(check: pd.DataFrame) -> Table:
    controls = _with_q(check["coefficient"], check["q"]).mask(check["removed"], "removed")
    patients = _with_q(check["coefficient_patients"], check["q_patients"])
    return Table(
        "Patterns and background variables",
        [
            counts("Pattern", check["pattern"]),
            words("Variable", check["variable"]),
            words("Statistic", check["statistic"]),
            measures("Controls", check["coefficient"]).shown_as(controls),
            measures("Patients", check["coefficient_patients"]).shown_as(patients),
            words("Groups", check["imbalanced"].map({True: "imbalanced", False: "no clear difference"})),
            measures("Difference", check["difference"]),
            measures("Adjusted", check["adjusted"]),
            measures("Explained", check["explained"]).shown_as(
                number(100 * one, 0, unit=" %") for one in check["explained"]
            ),
        ],
    )


def _with_q(coefficients: pd.Series, qs: pd.Series) -> pd.Series:
    pairs = zip(coefficients, qs, strict=True)
    return pd.Series([number(one) if pd.isna(q) else f"{number(one)} (q {p_value(q)})" for one, q in pairs], qs.index)


def search_section(view: RunView) -> dict[str, object] | None:
    """Return the settings that were tried; None if there was only one."""
    if view.run.selection is None or view.run.selection["best"].sum() < 2:
        return None
    best = _with_remarks(view.run.selection[view.run.selection["best"]], view)
    fits = "misfit" in best
    ordered = best.sort_values("misfit" if fits else "pattern_agreement", ascending=fits, kind="stable")
    chosen = best[best["chosen"]].iloc[0]
    alt = (
        f"Results for each setting. The chosen setting has {counted(int(chosen['n_patterns']), 'pattern')}, an "
        f"orthogonality of {chosen['orthogonality']:g} and a pattern agreement of "
        f"{number(chosen['pattern_agreement'], 3)}. The table lists the values."
    )
    return {
        "picture": view.gallery.draw(
            "agreement_over_settings", plots.agreement_over_settings(view.run.selection), alt, result=False
        ),
        "fewer_models": bool((best["n_models"] < best["n_models"].max()).any()),
        "table": _settings_table(ordered),
        "misfit": fits,
        "dropped_early": (best["remark"] == _DROPPED).any(),
    }


def _with_remarks(best: pd.DataFrame, view: RunView) -> pd.DataFrame:
    """Add a remark on the outcome of each setting."""
    search = view.run.summary.search
    runners_up = [(one["n_patterns"], one["orthogonality"]) for one in search.runners_up]
    settings = zip(best["n_patterns"], best["orthogonality"], strict=True)
    # No more models than first-stage repetitions: the setting was not trained further. More: some models were faulty.
    first = 0 if search.exhaustive else search.first_stage_repetitions
    cases = {
        "chosen": best["chosen"].astype(bool),
        "runner-up": np.array([setting in runners_up for setting in settings]),
        _DROPPED: (best["n_models"] <= first) & (first < best["n_models"].max()),
    }
    return best.assign(remark=np.select([*cases.values()], [*cases], ""))


def _settings_table(shown: pd.DataFrame) -> Table:
    columns = [
        counts("Patterns", shown["n_patterns"]),
        Column("Orthogonality", [Cell(f"{value:g}") for value in shown["orthogonality"]]),
        words("Remark", shown["remark"]),
        counts("Models", shown["n_models"]),
        counts("Step", shown["step"]),
        *([measures("Misfit", shown["misfit"], 1)] if "misfit" in shown else ()),
    ]
    for name in AGREEMENTS:
        title = name.replace("_", " ").capitalize()
        columns += [measures(title, shown[name], 3), limits(shown[f"{name}_low"], shown[f"{name}_high"], 3, of=title)]
    return Table(
        f"Settings tried, {'smallest misfit' if 'misfit' in shown else 'best agreement'} first",
        columns,
        source="selection.csv",
        marked=shown["remark"].tolist().index("chosen"),
    )


def agreement_section(view: RunView) -> dict[str, object] | None:
    """Return the repetitions and their agreement for the chosen setting; None for an applied model.

    A picture needs agreement at several steps of training.
    """
    if view.run.selection is None:
        return None
    chosen = view.run.selection[view.run.selection["chosen"]].iloc[0]
    names = [name.replace("_", " ") for name in AGREEMENTS]
    low, high = ([chosen[f"{name}_{end}"] for name in AGREEMENTS] for end in ("low", "high"))
    intervals = bool(pd.notna([*low, *high]).any())
    columns = [
        words("Index", [name.capitalize() for name in names]),
        measures("Value", [chosen[name] for name in AGREEMENTS], 3),
        *([limits(low, high, 3)] if intervals else []),
    ]
    step, is_curve = f"{int(chosen['step']):,}", view.run.selection["step"].nunique() > 1
    known, picture = chosen[list(AGREEMENTS)].notna().any(), None
    if known and is_curve:
        values = ", ".join(f"{name} {cell.text}" for name, cell in zip(names, columns[1].cells, strict=True))
        alt = f"Agreement between repetitions by number of training steps. At the chosen step ({step}): {values}."
        picture = view.gallery.draw(
            "agreement_over_training", plots.agreement_over_training(view.run.selection), alt, result=False
        )
    excluded = pd.DataFrame([*view.run.summary.members_left_out], columns=["member", "reason"])
    reasons = [words("Repetition", excluded["member"]), words("Reason", excluded["reason"])]
    return {
        "excluded": Table("Excluded repetitions", reasons) if len(excluded) else None,
        "known": known,
        "table": Table(
            f"Agreement at the chosen step ({step})" if is_curve else "Agreement between repetitions", columns
        ),
        "intervals": intervals,
        "n_models": int(chosen["n_models"]),
        "picture": picture,
    }
