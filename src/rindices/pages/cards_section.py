"""The sections that people read first: patients versus controls, and a card for each pattern."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
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
from rindices.pages.patterns_section import brains_of, draw_each, draw_measures, strongest_first
from rindices.plots.style import PATTERN_COLOURS
from rindices.regions import pair_sides

_MOST_REGIONS = 6  # in a figure, and in a sentence
_SHARE_OF_STRONGEST = 0.5
_MOST_OTHERS = 3  # co-occurring patterns named on a card
_FEW = 20  # people: smaller groups are not summarised
_HALF_WIDTH = 6.2  # inches
_CLEAR = 0.05  # q
_IMPOSSIBLE, _ALIKE = 20.0, 0.02  # sd of controls that no disease exceeds; range below which severities are alike


def groups_section(view: RunView) -> dict[str, object] | None:
    """Return how patients and controls differ in each region; None if the groups were not compared."""
    table = view.run.analyses.get("group_effects")
    if table is None:
        return None
    rows = table.sort_values("effect", key=abs, ascending=False, kind="stable")
    names, clear = view.region_names, rows["q"] < _CLEAR
    *code, name = _named(rows["region"], names)  # the code comes last, out of sight on a phone
    effects = measures("d", rows["effect"], 2, "+"), limits(rows["low"], rows["high"]), probabilities("q", rows["q"])
    columns = [name._replace(title="Region"), *effects, *(one._replace(title="Column") for one in code)]
    return {
        "pictures": _effect_maps(view, rows),
        "table": Table("Patients versus controls in every region", columns, source="analysis/group_effects.csv"),
        "n": len(rows),
        "n_smaller": int((clear & (rows["effect"] < 0)).sum()),
        "n_larger": int((clear & (rows["effect"] > 0)).sum()),
        "n_below": int((rows["effect"] < 0).sum()),
        "sizes": table[["n_controls", "n_patients"]].iloc[0],
        "covariates": view.run.adjusted,
        "imbalanced": imbalanced_in(view.run.summary),
    }


def _effect_maps(view: RunView, rows: pd.DataFrame) -> list[Picture]:
    """Return brains coloured by Cohen's d, one for each measure; regions that are not significant are grey."""
    table = rows.rename(columns={"effect": "change_sd"}).assign(pattern=1)
    drawings = draw_measures(table, 1, rows["region"][~(rows["q"] < _CLEAR)], "Cohen's d")
    alt = "Brain regions coloured by Cohen's d for patients versus controls. The table lists the values."
    return draw_each(view.gallery, "patients_against_controls", drawings, alt, result=False)


def cards_section(view: RunView) -> dict[str, object]:
    """Return a card for each pattern: brain, strongest regions, severities, age, and who has it."""
    people, training = view.run.results.first_visits, _training(view)
    (brains, pieces), had = brains_of(view), [high for _, _, high in view.reference]
    has_mixture = had and (people["group"] == "patient").sum() >= _FEW and view.run.summary.n_patterns > 1
    alt = (
        "Percentage of people in each group by number of patterns. A person is counted as having a pattern "
        "if their severity exceeds that of 95 % of controls."
    )
    mixture = view.gallery.draw("mixture", plots.pattern_mixture(people, had), alt) if has_mixture else None
    return {
        "cards": [_card(view, place, training, had) for place in range(1, view.run.summary.n_patterns + 1)],
        "brains": brains,
        "training": training is not None,
        "mixture": mixture,
        "decomposed": _is_decomposed(view),
        "doses": _doses(view, pieces) if pieces else None,
    }


def _card(view: RunView, place: int, training: pd.DataFrame | None, had: Sequence[float]) -> dict[str, object]:
    people, name = view.run.results.first_visits, view.run.results.score_names[place - 1]
    rows, patients = strongest_first(view.run.results.patterns, place), people["group"] == "patient"
    return {
        "place": place,
        "colour": f"pattern{(place - 1) % len(PATTERN_COLOURS) + 1}",
        "doubt": _implausibility(rows, people[name]),
        "gist": _gist(rows, view.region_names),
        "strongest": _strongest(view, place, rows.iloc[0]),
        "histogram": view.gallery.draw(
            f"severities_{place}",
            plots.severity_histogram(people, name, training),
            f"Distribution of the severity of pattern {place} in each group. The text gives the medians.",
        ),
        "age": _by_age(view, place, name),
        "groups": _groups(people, name),
        "share": _share(people.loc[patients, view.run.results.score_names], had, place) if had else None,
        "related": related(view.run.analyses.get("associations"), place),
        "table": _every_region(view, place, rows),
    }


def _implausibility(rows: pd.DataFrame, scores: pd.Series) -> str:
    """Return why a pattern is implausible, as when a model has more patterns than the data; empty if it is not."""
    if rows["change_sd"].abs().max() > _IMPOSSIBLE:
        return f"its largest change exceeds {_IMPOSSIBLE:g} control standard deviations"
    low, high = scores.quantile([0.025, 0.975])
    return "everyone has almost the same score" if high - low < _ALIKE and len(scores) >= _FEW else ""


def _training(view: RunView) -> pd.DataFrame | None:
    """Return the centiles of the severities in a model's training sample; None if they are unknown."""
    parts = [
        pd.DataFrame(np.transpose(known), columns=view.run.results.score_names).assign(group=group)
        for group, known in view.run.summary.training.items()
    ]
    return pd.concat(parts, ignore_index=True) if parts else None


def _share(patients: pd.DataFrame, had: Sequence[float], place: int) -> dict[str, object] | None:
    """Return the percentage of patients with a pattern, and in words the patterns with it; None for few patients."""
    above = patients.set_axis(range(1, patients.shape[1] + 1), axis=1) > had
    own = above[place]
    if len(above) < _FEW or not own.any():
        return None
    shares = 100 * pd.DataFrame({"own": above[own].mean(), "all": above.mean()}).drop(index=place)
    # Of many patterns, those whose presence depends most on this one.
    telling = (shares["own"] - shares["all"]).abs().nlargest(_MOST_OTHERS).index
    others = [
        f"{row.own:.0f} % also have pattern {row.Index} (versus {row.all:.0f} % of all patients)"
        for row in shares.loc[sorted(telling)].itertuples()
    ]
    return {"patients": 100 * own.mean(), "others": others}


def _groups(people: pd.DataFrame, name: str) -> dict[str, float] | None:
    """Return the medians of both groups and how often a patient lies above a control; None if a group is too small."""
    controls, patients = (people.loc[people["group"] == group, name].dropna() for group in ("control", "patient"))
    if min(len(controls), len(patients)) < _FEW:
        return None
    above = mannwhitneyu(patients, controls).statistic / (len(patients) * len(controls))
    return {"controls": controls.median(), "patients": patients.median(), "above": float(above)}


def _by_age(view: RunView, place: int, name: str) -> Picture | None:
    variables = view.run.results.variables[view.run.results.first_visit]
    age = next(
        (str(one) for one in variables if str(one).lower().startswith("age") and variables[one].dtype == float), None
    )
    if age is None or variables[age].nunique() < _FEW:
        return None
    people = view.run.results.first_visits[["group", name]].assign(**{age: variables[age].to_numpy()})
    figure = plots.severity_by_age(people, name, age)
    return view.gallery.draw(
        f"age_{place}",
        figure,
        f"Severity of pattern {place} plotted against {age}.",
    )


def _gist(rows: pd.DataFrame, names: Mapping[str, str]) -> str:
    """Return the regions that change most in words: first the smaller ones, then the larger ones, and by how much."""
    pairs, rows = pair_sides(rows["region"]), rows.head(_MOST_REGIONS)
    rows = rows[rows["change_sd"].abs() >= _SHARE_OF_STRONGEST * rows["change_sd"].abs().max()]
    found = []
    for direction, change in (("smaller", rows[rows["change_sd"] < 0]), ("larger", rows[rows["change_sd"] > 0])):
        sides: dict[str, list[str]] = {}
        for region in change["region"]:
            side, _ = pairs.get(region, ("", region))
            sides.setdefault(names[region].removeprefix(f"{side} "), []).append(side)
        said = listed(f"{' and '.join(sorted(one))} {name}".strip() for name, one in sides.items())
        low, high = change["change_sd"].min(), change["change_sd"].max()
        size = number(low) if number(low) == number(high) else interval(low, high)
        found += [f"{direction} {said} ({size} control SDs at severity 1)"] if len(change) else []
    gist = "; ".join(found)
    return f"{gist[:1].upper()}{gist[1:]}."


def _named(regions: pd.Series, names: Mapping[str, str]) -> list[Column]:
    """Return a column with the regions, and one with their full names if these differ."""
    columns = [words("Region", regions), words("Full name", regions.map(names))]
    return columns[:1] if columns[0].cells == columns[1].cells else columns


def _is_decomposed(view: RunView) -> bool:
    """Return whether to show the change seen in patients; for linear models, it is the same by construction."""
    patterns, networks = view.run.results.patterns, view.run.summary.preset != "linear"
    return networks and "decomposed_sd" in patterns and bool(patterns["decomposed_sd"].notna().any())


def _strongest(view: RunView, place: int, first: pd.Series) -> Picture:
    """Return the regions that change most as a picture; `first` is the strongest."""
    patterns, names = view.run.results.patterns, view.region_names
    alt = (
        f"Regions that change most in pattern {place}, with one mark for each side of the brain. The largest change "
        f"({names[first['region']]}) is {number(first['change_sd'], 2, '+')} control SDs. The table lists the values."
    )
    shown = patterns if _is_decomposed(view) else patterns.drop(columns="decomposed_sd", errors="ignore")
    return view.gallery.draw(
        f"pattern_{place}", plots.pattern_dots(shown, place, _MOST_REGIONS, names, _HALF_WIDTH), alt
    )


def _every_region(view: RunView, place: int, rows: pd.DataFrame) -> Table:
    table = view.run.analyses.get("group_effects")
    effects = None if table is None else table.set_index("region")["effect"]
    columns = [
        *_named(rows["region"], view.region_names),
        measures("Change (sd)", rows["change_sd"], 2, "+"),
        measures("Spread (sd)", rows["spread_sd"]),
        measures("Change (%)", rows["change_percent"], 1, "+"),
        *(
            [
                measures("In patients (sd)", rows["decomposed_sd"], 2, "+"),
                measures("Spread in patients (sd)", rows["decomposed_spread_sd"]),
            ]
            if _is_decomposed(view)
            else []
        ),
        *([] if effects is None else [measures("Patients versus controls (d)", rows["region"].map(effects), 2, "+")]),
    ]
    return Table(f"All regions of pattern {place}, largest changes first", columns, source="patterns.csv")


def _doses(view: RunView, pieces: Mapping[int, object]) -> object:
    """Return the change of each region at each severity as JSON, for the slider of the page."""
    table = view.run.analyses.get("severities", view.run.results.patterns.assign(severity=1.0))
    doses: dict[str, dict[str, dict[str, float]]] = {}
    for row in table[table["severity"] > 0].to_dict("records"):
        regions = doses.setdefault(str(row["pattern"]), {})
        regions.setdefault(str(row["region"]), {})[f"{row['severity']:g}"] = round(float(row["change_sd"]), 3)
    return script_json({"patterns": doses, "names": view.region_names, "brains": pieces})
