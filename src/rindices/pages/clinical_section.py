"""The sections on clinical associations of severities: clinical variables, change between visits, and prognosis."""

import pandas as pd

from rindices import plots
from rindices.pages.elements import (
    GROUPS,
    Column,
    Gallery,
    Table,
    counts,
    limits,
    listed,
    measures,
    number,
    p_words,
    probabilities,
    words,
)
from rindices.pages.layout import RunView
from rindices.settings import FOLLOW_UP

_LARGEST_Q = 0.05
_MOST_VARIABLES = 2  # named on a card
_CHANGING = 0.05  # p of the test of proportional hazards: below it, the hazard ratio changes over time
_LETTERS = {"Pearson r": "r", "point-biserial r": "r", "eta²": "η²"}
_DIFFERENCE = "patients minus controls"  # as in ``change_summary.csv``


def _variable_names(table: pd.DataFrame) -> list[str]:
    """Return the variables of a table of associations, with the level of dichotomous ones."""
    pairs = zip(table["variable"], table["level"], strict=True)
    return [f"{name} = {level}" if level.strip() else name for name, level in pairs]


def related(table: pd.DataFrame | None, pattern: int) -> str | None:
    """Return the strongest significant associations of a pattern in patients, in words; None if none were tested."""
    if table is None or not (table["people"] == "patients").any():
        return None
    clear = table[(table["people"] == "patients") & (table["pattern"] == pattern) & (table["q"] < _LARGEST_Q)]
    clear = clear.sort_values("coefficient", key=abs, ascending=False, kind="stable").head(_MOST_VARIABLES)
    rows = zip(_variable_names(clear), clear["statistic"], clear["coefficient"], clear["q"], strict=True)
    return listed(
        f"{name} ({_LETTERS.get(statistic, statistic)} = {number(value)}, {p_words('q', q)})"
        for name, statistic, value, q in rows
    )


def associations_section(view: RunView) -> dict[str, object] | None:
    """Return the associations in patients and in all participants; None if none were tested."""
    table = view.run.analyses.get("associations")
    if table is None:
        return None
    return {
        "parts": [_part(table[table["people"] == people], people, view.gallery) for people in table["people"].unique()],
        "partial": bool(table["partial"].notna().any()),
        "adjusted": view.run.adjusted,
        "eta": bool((table["statistic"] == "eta²").any()),
    }


def _part(table: pd.DataFrame, people: str, gallery: Gallery) -> dict[str, object]:
    n_known, n_clear = int(table["coefficient"].notna().sum()), int((table["q"] < _LARGEST_Q).sum())
    title = f"Associations in {people.replace('everybody', 'all participants')}"
    alt = (
        f"Associations between variables and patterns in {people}, with 95 % intervals. Of {n_known} associations, "
        f"{n_clear or 'none'} {'has' if n_clear == 1 else 'have'} q below {_LARGEST_Q:g}. The table lists the values."
    )
    return {
        "title": title,
        "everybody": people == "everybody",
        "picture": gallery.draw(f"associations_{people}", plots.forest(table, people=people), alt) if n_known else None,
        "n": n_known,
        "n_clear": n_clear,
        "table": Table(title, _associations(table), source="analysis/associations.csv"),
    }


def _associations(table: pd.DataFrame) -> list[Column]:
    adjusted = [
        measures("Adjusted", table["partial"]),
        limits(table["partial_low"], table["partial_high"], of="95 % interval, adjusted"),
        probabilities("q, adjusted", table["partial_q"]),
    ]
    return [
        counts("Pattern", table["pattern"]),
        words("Variable", _variable_names(table)),
        words("Statistic", table["statistic"]),
        counts("n", table["n"]),
        measures("Coefficient", table["coefficient"]),
        limits(table["low"], table["high"]),
        probabilities("p", table["p"]),
        probabilities("q", table["q"]),
        *(adjusted if table["partial"].notna().any() else ()),
        measures("Whole brain", table["whole_brain"]),
        measures("Beyond it", table["beyond"]),
        limits(table["beyond_low"], table["beyond_high"], of="95 % interval, beyond it"),
        probabilities("q, beyond it", table["beyond_q"]),
        *([words("Note", table["note"])] if (table["note"].str.strip() != "").any() else ()),
    ]


def change_section(view: RunView) -> dict[str, object] | None:
    """Return how severities change between visits, in groups and in individuals; None without repeated visits."""
    change, means, noise = (view.run.analyses.get(name) for name in ("change", "change_summary", "scan_noise"))
    if change is None or means is None or noise is None:
        return None
    visits, groups = view.run.results.r_indices, means[means["group"].isin(GROUPS) & means["mean"].notna()]
    visits = visits[visits["participant_id"].duplicated(keep=False) & visits["years"].notna()]
    alt = (
        "Change in each severity per year. Faint marks show individuals; larger marks show the mean of each group with "
        "its 95 % interval. The table lists the means."
    )
    columns = [
        counts("Pattern", means["pattern"]),
        words("Group", means["group"].replace(GROUPS | {_DIFFERENCE: _DIFFERENCE.capitalize()})),
        counts("People", means["n"]),
        measures("Change per year", means["mean"], 3, "+"),
        limits(means["low"], means["high"], 3),
        probabilities("p", means["p"]),
        probabilities("q", means["q"]),
    ]
    pairs = dict.fromkeys(zip(means["group"], means["note"], strict=True))
    return {
        "n": len(change),
        "years": change["years"].median(),
        "slopes": bool(means["random_effects"].str.contains("intercept").any()),
        "by_person": bool(means["random_effects"].str.contains("by person").any()),
        "notes": [f"{GROUPS.get(group, group.capitalize())}: {note}" for group, note in pairs if note],
        "compared": bool((means["group"] == _DIFFERENCE).any()),
        "paths": view.gallery.draw(
            "trajectories",
            plots.trajectories(visits, groups),
            "Severities plotted against years since the first visit. Faint lines: individuals. Thick lines: groups.",
        ),
        "picture": view.gallery.draw("change", plots.change_lines(change, groups), alt) if len(groups) else None,
        "table": Table("Change in severity per year", columns),
        **_reliable(change, noise, view.run.results.score_names),
    }


def _reliable(change: pd.DataFrame, noise: pd.DataFrame, names: list[str]) -> dict[str, object]:
    """Return the scan noise, and how many people of each group changed by more than that."""
    rows = [
        (place, GROUPS[str(group)], len(own), int((own > 0).sum()), int((own < 0).sum()))
        for place, name in enumerate(names, start=1)
        for group, own in change.groupby("group")[f"{name}_reliable"]
    ]
    pattern, group, people, worse, better = zip(*rows, strict=True)
    columns = [
        counts("Pattern", pattern),
        words("Group", group),
        counts("People", people),
        counts("Reliably worse", worse),
        counts("Reliably better", better),
    ]
    known, about = noise["sd"].notna().all() and change[f"{names[0]}_reliable"].notna().any(), noise.iloc[0]
    return {
        "noise": {
            "source": about["source"],
            "n": int(about["n_controls"]),
            "years": about["years"],
            "sds": listed(f"{number(sd, 3)} (pattern {place})" for place, sd in enumerate(noise["sd"], start=1)),
        },
        "reliable": Table("Reliable change in individuals", columns) if known else None,
        "called": [
            f"{up + down} of {n} (pattern {place})" for place, name, n, up, down in rows if name == GROUPS["control"]
        ],
    }


def prognosis_section(view: RunView) -> dict[str, object] | None:
    """Return the associations of severities with later events; None if no follow-up was named."""
    table, curves = view.run.analyses.get("prognosis"), view.run.analyses.get("survival_curves")
    if table is None:
        return None
    columns = [
        counts("Pattern", table["pattern"]),
        counts("People", table["n"]),
        counts("Events", table["n_events"]),
        measures("Hazard ratio per 0.1 increase", table["hazard_ratio"]),
        limits(table["low"], table["high"]),
        probabilities("p", table["p"]),
        probabilities("q", table["q"]),
        probabilities("p, proportional hazards", table["p_proportional"]),
        measures("Concordance", table["concordance"], 3),
        measures("Covariates alone", table["base"], 3),
        measures("Gain", table["gain"], 3, "+"),
        measures("Gain, corrected", table["gain_corrected"], 3, "+"),
        words("Note", table["note"]),
    ]
    told = {name: view.run.summary.follow_up.get(name) for name in FOLLOW_UP}
    alt = (
        f"Proportion of people {'without' if told['competing'] is None else 'with'} the event over time, for the "
        "lowest, middle and highest thirds of each severity, with the numbers at risk."
    )
    picture = None
    if curves is not None:
        figure = plots.follow_up_curves(curves, str(told["time"]), competing=told["competing"] is not None)
        picture = view.gallery.draw("follow_up", figure, alt)
    return {
        "told": told,
        "covariates": [name for name in view.run.adjusted if name != view.run.summary.correction.site],
        "site": view.run.summary.correction.site in view.run.adjusted,
        "kind": table["kind"].iloc[0],
        "changing": listed(table["pattern"][table["p_proportional"] < _CHANGING]),
        "few": [note for note in table["note"].unique() if note],
        "picture": picture,
        "table": Table("Associations between severities and the event", columns, source="analysis/prognosis.csv"),
    }
