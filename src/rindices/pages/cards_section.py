"""The sections that people read first: patients versus controls, and a card for each pattern."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator
from scipy.stats import mannwhitneyu

from rindices import plots
from rindices.pages.clinical_section import related
from rindices.pages.elements import (
    Column,
    Picture,
    Table,
    interval,
    limits,
    listed,
    measures,
    number,
    probabilities,
    script_json,
    words,
)
from rindices.pages.layout import RunView, imbalanced_in
from rindices.pages.patterns_section import SMALL_BRAIN, SURE, brains_of, has_outlines
from rindices.plots.brain import measures_of
from rindices.plots.brain_drawing import draw_brain
from rindices.plots.style import PATTERN_COLOURS
from rindices.regions import pair_sides

_MOST_REGIONS = 6  # on a card, and in a sentence
_SHARE_OF_STRONGEST = 0.5
_MOST_OTHERS = 3  # co-occurring patterns named on a card
_FEW = 20  # people: smaller groups are not summarised
_TOP_REGIONS = 12
_HALF_WIDTH = 6.2  # inches
_CLEAR = 0.05  # q
_LARGEST = 8.0  # sd of controls: where the scale of the strongest regions ends
_IMPOSSIBLE, _ALIKE = 20.0, 0.02  # sd of controls that no disease exceeds; range below which severities are alike


class Mark(NamedTuple):
    """A region on a card: its side, its change, and the limits of the change, which may be unknown."""

    side: str
    value: float
    low: float
    high: float


class Share(NamedTuple):
    """Percentage of patients with a pattern, and the percentages with each other pattern among these and among all."""

    patients: float
    others: Sequence[tuple[int, float, float]]


def groups_section(view: RunView) -> dict[str, object] | None:
    """Return how patients and controls differ in each region; None if the groups were not compared."""
    table = view.analyses.get("group_effects")
    if table is None:
        return {"table": None} if view.summary.separation else None
    rows = table.sort_values("effect", key=abs, ascending=False, kind="stable")
    names, clear = view.region_names, rows["q"] < _CLEAR
    *code, name = _named(rows["region"], names)  # the code comes last, out of sight on a phone
    effects = measures("d", rows["effect"], 2, "+"), limits(rows["low"], rows["high"]), probabilities("q", rows["q"])
    columns = [name._replace(title="Region"), *effects, *(one._replace(title="Column") for one in code)]
    return {
        "pictures": _effect_maps(view, rows),
        "table": Table("Patients versus controls, every region", columns, source="analysis/group_effects.csv"),
        "n": len(rows),
        "n_smaller": int((clear & (rows["effect"] < 0)).sum()),
        "n_larger": int((clear & (rows["effect"] > 0)).sum()),
        "n_below": int((rows["effect"] < 0).sum()),
        "sizes": table[["n_controls", "n_patients"]].iloc[0],
        "covariates": view.run.adjusted,
        "imbalanced": imbalanced_in(view.summary),
    }


def _effect_maps(view: RunView, rows: pd.DataFrame) -> list[Picture]:
    """Return brains coloured by Cohen's d, one for each measure; regions that are not significant are grey."""
    table = rows.rename(columns={"effect": "change_sd"}).assign(pattern=1)
    unsure, found = rows["region"][~(rows["q"] < _CLEAR)], list[Picture]()
    for measure in measures_of(table["region"]) if has_outlines(view.run) else ():
        drawing = draw_brain(table, 1, measure=measure, unsure=unsure, unit="Cohen's d", layout=SMALL_BRAIN)
        if drawing is not None:
            name = f"patients_against_controls{measure and '_'}{measure}"
            alt = "Regions on the brain, coloured by Cohen's d of patients versus controls. The table gives the values."
            found.append(view.gallery.keep(name, drawing.figure(), drawing.svg(name), alt, result=False))
    return found


def cards_section(view: RunView) -> dict[str, object]:
    """Return a card for each pattern: brain, strongest regions, severities, age, and who has it."""
    people, patterns, training = view.results.first_visits, view.results.patterns, _training(view)
    had = _limits(view)
    brains, rows = brains_of(view), {place: _rows(patterns, place) for place in range(1, view.summary.n_patterns + 1)}
    strongest = pd.concat([own["change_sd"].head(2 * _MOST_REGIONS) for own in rows.values()])
    reach = strongest.clip(-_LARGEST, _LARGEST)
    ends = 1.15 * min(0.0, *reach), 1.15 * max(0.2, *reach)
    mixture = None
    if had is not None and (people["group"] == "patient").sum() >= _FEW and len(rows) > 1:
        alt = (
            "Number of patterns per person in each group; a pattern counts if its severity exceeds that of 95 "
            "of 100 controls."
        )
        mixture = view.gallery.draw("mixture", plots.pattern_mixture(people, had), alt)
    return {
        "cards": [_card(view, place, own, training, had) for place, own in rows.items()],
        "brains": brains,
        "ends": ends,
        "sided": bool(pair_sides(rows[1]["region"])),
        "ticks": [value for value in MaxNLocator(4).tick_values(*ends) if ends[0] <= value <= ends[1]],
        "training": training is not None,
        "mixture": mixture,
        "decomposed": _is_decomposed(view),
        "doses": _doses(view, brains.pieces) if brains.pieces else None,
    }


def _card(
    view: RunView, place: int, rows: pd.DataFrame, training: pd.DataFrame | None, had: Sequence[float] | None
) -> dict[str, object]:
    people, name = view.results.first_visits, view.results.score_names[place - 1]
    alt = f"Distribution of the severity of pattern {place} in each group; the text gives the medians."
    figure = plots.severity_histogram(people, name, training)
    return {
        "place": place,
        "colour": f"pattern{(place - 1) % len(PATTERN_COLOURS) + 1}",
        "doubt": _implausibility(rows, people[name]),
        "changes": _changes(rows, view.region_names),
        "regions": _strongest(rows, view.region_names),
        "histogram": view.gallery.draw(f"severities_{place}", figure, alt),
        "age": _by_age(view, place, name),
        "groups": _groups(people, name),
        "share": None if had is None else _share(people[view.results.score_names], people["group"], had, place),
        "related": related(view.analyses.get("associations"), place),
        "every_region": _every_region(view, place, rows),
    }


def _implausibility(rows: pd.DataFrame, scores: pd.Series) -> str:
    """Return why a pattern is implausible, as when a model has more patterns than the data; empty if it is not."""
    if rows["change_sd"].abs().max() > _IMPOSSIBLE:
        return f"its changes exceed {_IMPOSSIBLE:g} standard deviations of controls"
    low, high = scores.quantile([0.025, 0.975])
    return "everyone has almost the same score" if high - low < _ALIKE and len(scores) >= _FEW else ""


def _training(view: RunView) -> pd.DataFrame | None:
    """Return the centiles of the severities in a model's training sample; None if they are unknown."""
    parts = [
        pd.DataFrame(np.transpose(known), columns=view.results.score_names).assign(group=group)
        for group, known in view.summary.training.items()
    ]
    return pd.concat(parts, ignore_index=True) if parts else None


def _limits(view: RunView) -> list[float] | None:
    """Return the severity above which a person has each pattern, the 95th centile of controls; None if unknown."""
    if view.summary.reference is not None:
        return [high for _, _, high in view.summary.reference]
    people = view.results.first_visits
    controls = people.loc[people["group"] == "control", view.results.score_names]
    return None if len(controls) < _FEW else [float(value) for value in controls.quantile(0.95)]


def _share(scores: pd.DataFrame, group: pd.Series, had: Sequence[float], place: int) -> Share | None:
    above = (scores.to_numpy(dtype=float) > np.asarray(had))[(group == "patient").to_numpy()]
    own = above[:, place - 1]
    if len(above) < _FEW or not own.any():
        return None
    others = [
        (other + 1, 100 * above[own, other].mean(), 100 * above[:, other].mean())
        for other in range(above.shape[1])
        if other != place - 1
    ]
    # Of many patterns, those whose presence depends most on this one.
    telling = sorted(others, key=lambda one: -abs(one[1] - one[2]))[:_MOST_OTHERS]
    return Share(100 * own.mean(), sorted(telling))


def _groups(people: pd.DataFrame, name: str) -> dict[str, float] | None:
    """Return the medians of both groups and how often a patient lies above a control; None if a group is too small."""
    controls, patients = (people.loc[people["group"] == group, name].dropna() for group in ("control", "patient"))
    if min(len(controls), len(patients)) < _FEW:
        return None
    above = mannwhitneyu(patients, controls).statistic / (len(patients) * len(controls))
    return {"controls": controls.median(), "patients": patients.median(), "above": float(above)}


def _by_age(view: RunView, place: int, name: str) -> Picture | None:
    variables = view.results.variables[view.results.first_visit]
    age = next(
        (str(one) for one in variables if str(one).lower().startswith("age") and variables[one].dtype == float), None
    )
    if age is None or variables[age].nunique() < _FEW:
        return None
    people = view.results.first_visits[["group", name]].assign(**{age: variables[age].to_numpy()})
    alt = f"Severity of pattern {place} against {age}, by group."
    return view.gallery.draw(f"age_{place}", plots.severity_by_age(people, name, age), alt)


def _rows(patterns: pd.DataFrame, place: int) -> pd.DataFrame:
    """Return the regions of a pattern, strongest first, with the limits of their changes."""
    own = patterns[patterns["pattern"] == place]
    own = own.sort_values("change_sd", key=abs, ascending=False, kind="stable")
    half = SURE * own["spread_sd"]
    return own.assign(low=own["change_sd"] - half, high=own["change_sd"] + half)


def _strongest(rows: pd.DataFrame, names: Mapping[str, str]) -> list[tuple[str, list[Mark]]]:
    """Return the regions that change most, left and right together: the name, and a mark for each side."""
    pairs, found = pair_sides(rows["region"]), dict[str, tuple[str, list[Mark]]]()
    for row in rows.to_dict("records"):
        side, short = pairs.get(row["region"], ("", row["region"]))
        marks = found.setdefault(short, (names[row["region"]].removeprefix(f"{side} "), []))[1]
        marks.append(Mark(side, row["change_sd"], row["low"], row["high"]))
    return [(name, sorted(marks)) for name, marks in list(found.values())[:_MOST_REGIONS]]


def _changes(rows: pd.DataFrame, names: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the regions that change most: "lower" or "higher", their names, and by how much."""
    pairs, rows = pair_sides(rows["region"]), rows.head(_MOST_REGIONS)
    rows = rows[rows["change_sd"].abs() >= _SHARE_OF_STRONGEST * rows["change_sd"].abs().max()]
    found = []
    for direction, change in (("lower", rows[rows["change_sd"] < 0]), ("higher", rows[rows["change_sd"] > 0])):
        sides: dict[str, list[str]] = {}
        for region in change["region"]:
            side, _ = pairs.get(region, ("", region))
            sides.setdefault(names[region].removeprefix(f"{side} "), []).append(side)
        said = listed(f"{' and '.join(sorted(one))} {name}".strip() for name, one in sides.items())
        low, high = change["change_sd"].min(), change["change_sd"].max()
        size = number(low) if number(low) == number(high) else interval(low, high)
        found += [(direction, said, size)] if len(change) else []
    return found


def _named(regions: pd.Series, names: Mapping[str, str]) -> list[Column]:
    """Return a column with the regions, and one with their full names if these differ."""
    columns = [words("Region", regions), words("Full name", regions.map(names))]
    return columns[:1] if columns[0].cells == columns[1].cells else columns


def _is_decomposed(view: RunView) -> bool:
    """Return whether to show the change seen in patients; for linear models, it is the same by construction."""
    patterns, networks = view.results.patterns, view.summary.preset != "linear"
    return networks and "decomposed_sd" in patterns and bool(patterns["decomposed_sd"].notna().any())


def _every_region(view: RunView, place: int, rows: pd.DataFrame) -> tuple[Picture, Table]:
    patterns, names, first = view.results.patterns, view.region_names, rows.iloc[0]
    alt = (
        f"The regions that change most in pattern {place}, with left and right as two marks; the strongest is "
        f"{names[first['region']]} with {number(first['change_sd'], 2, '+')} sd of controls. The table gives all "
        "values."
    )
    columns = [
        *_named(rows["region"], names),
        measures("Change (sd)", rows["change_sd"], 2, "+"),
        measures("Spread (sd)", rows["spread_sd"]),
        measures("Change (%)", rows["change_percent"], 1, "+"),
    ]
    if not _is_decomposed(view):
        patterns = patterns.drop(columns="decomposed_sd", errors="ignore")
    else:
        columns.append(measures("In patients (sd)", rows["decomposed_sd"], 2, "+"))
        columns.append(measures("Spread of that (sd)", rows["decomposed_spread_sd"]))
    if (effects := view.analyses.get("group_effects")) is not None:
        d = rows["region"].map(effects.set_index("region")["effect"])
        columns.append(measures("Patients versus controls (d)", d, 2, "+"))
    figure = plots.pattern_dots(patterns, place, _TOP_REGIONS, names, _HALF_WIDTH)
    picture = view.gallery.draw(f"pattern_{place}", figure, alt)
    return picture, Table(f"All regions of pattern {place}, strongest first", columns, source="patterns.csv")


def _doses(view: RunView, pieces: Mapping[int, object]) -> object:
    """Return the change of each region at each severity as JSON, for the slider of the page."""
    table = view.analyses.get("severities", view.results.patterns.assign(severity=1.0))
    doses: dict[str, dict[str, dict[str, float]]] = {}
    for row in table[table["severity"] > 0].to_dict("records"):
        regions = doses.setdefault(str(row["pattern"]), {})
        regions.setdefault(str(row["region"]), {})[f"{row['severity']:g}"] = round(float(row["change_sd"]), 3)
    return script_json({"patterns": doses, "names": view.region_names, "brains": pieces})
