"""The run in a few plain sentences, built from its results."""

from typing import Any

import pandas as pd

from rindices.plots.region_names import pair_sides
from rindices.report import associations
from rindices.report.maps import strongest
from rindices.report.pieces import in_words, interval, listed, number
from rindices.report.read import RunResults
from rindices.report.summary import CALIBRATED, REFITS

_MOST_REGIONS = 6
_MOST_VARIABLES = 2
_SHARE_OF_STRONGEST = 0.5
_NOT_SUMMED_UP = (
    "Because these patterns are not reliable, neither their regions nor what they are related to are summed up here."
)


def summary_words(results: RunResults) -> list[str]:
    """Return a sentence or two on the whole, then one paragraph per pattern; none of patterns that are not reliable."""
    if results.summary.get("reliable") is False:
        return [_whole(results), _NOT_SUMMED_UP]
    return [_whole(results), *(_pattern(results, place) for place in range(1, results.n_patterns + 1))]


def model_words(model: Any) -> str:
    """Say which model scored these people, as far as it is known."""
    if not isinstance(model, dict):
        return str(model or "")
    facts = [str(model.get("file") or model.get("name") or "")]
    if model.get("n_controls") is not None and model.get("n_patients") is not None:
        facts.append(f"trained with {model['n_controls']:,} controls and {model['n_patients']:,} patients")
    if model.get("agreement") is not None:
        facts.append(f"pattern agreement {number(model['agreement'], 3)}")
    if model.get("version"):
        facts.append(f"made by rindices {model['version']}")
    if model.get("sha256"):
        facts.append(f"SHA-256 {model['sha256']}")
    return ", ".join(fact for fact in facts if fact)


def _whole(results: RunResults) -> str:
    n_patterns = results.n_patterns
    first = f"{in_words(n_patterns).capitalize()} {'pattern' if n_patterns == 1 else 'patterns'}."
    agreement = (results.summary.get("agreement") or {}).get("pattern_agreement")
    if results.applied or agreement is None:
        return first
    return f"{first} Repeated trainings agree at {number(agreement)} ({_chance(results.summary.get('null') or {})})."


def _chance(null: dict[str, Any]) -> str:
    values = null.get("values") or []
    if null.get("method") == REFITS and values:
        return f"without disease {number(sum(values) / len(values))} on average"
    if null.get("method") == CALIBRATED and null.get("threshold") is not None:
        return f"without disease hardly above {number(null['threshold'])}"
    return "0.5 is chance, 1 is perfect"


def _pattern(results: RunResults, place: int) -> str:
    sentences = []
    if not results.patterns.empty:
        rows = strongest(results.patterns, place).head(_MOST_REGIONS)
        rows = rows[rows["change_sd"].abs() >= _SHARE_OF_STRONGEST * rows["change_sd"].abs().max()]
        parts = [
            _regions(results, rows[rows["change_sd"] < 0], "lower"),
            _regions(results, rows[rows["change_sd"] > 0], "higher"),
        ]
        sentences.append(f"{'; '.join(part for part in parts if part) or 'no region changes'}.")
    table = results.analyses.associations
    clear = associations.clear_associations(table, place).head(_MOST_VARIABLES)
    if len(clear):
        sentences.append(
            f"Related to {listed([associations.in_words(row) for row in clear.itertuples()])} in patients."
        )
    elif table is not None and (table["people"] == "patients").any():
        sentences.append("Not clearly related to any clinical variable in patients.")
    return f"Pattern {place}: {' '.join(sentences)}" if sentences else f"Pattern {place}."


def _regions(results: RunResults, rows: pd.DataFrame, direction: str) -> str:
    if rows.empty:
        return ""
    pairs = pair_sides(results.patterns["region"].unique())
    sides: dict[str, list[str]] = {}
    for region in rows["region"]:
        side, name = pairs.get(region, ("", region))
        sides.setdefault(name, []).append(side)
    names = [f"{' and '.join(sorted(found))} {name}".strip() for name, found in sides.items()]
    change = rows["change_sd"]
    size = number(change.iloc[0]) if len(rows) == 1 else interval(change.min(), change.max(), 2)
    return f"{direction} in {listed(names)} ({size} sd of controls at severity 1)"
