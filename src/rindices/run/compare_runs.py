"""Comparison of two runs: matched patterns, people in both, maps, settings, and who moved."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from rindices import plots
from rindices.files import check_folder, write_csv
from rindices.judging.agreement_and_misfit import concordance
from rindices.pages.elements import Gallery, Picture
from rindices.pages.layout import write_sheet
from rindices.problems import InputError, Remedy, counted, listed
from rindices.record import Run, read_run, shown_setting
from rindices.regions import known_regions
from rindices.schema import MIN_REGIONS

FEWEST = 20  # patients in both runs for matching patterns by rank order; with fewer, they are matched by their maps
_FILES = ("patterns.csv", "regions.csv", "people.csv", "compare.html")


class Pair(NamedTuple):
    """A pattern of the first run and the matching one of the second.

    Attributes
    ----------
    first, second
        Their numbers.
    concordance
        Share of pairs of patients in both runs that the two scores rank in the same order; 0.5 is chance. NaN if a
        run gives all of them the same score.
    map_correlation
        Correlation of the changes of the regions in both runs.
    difference, sd
        Second minus first score of everyone in both runs: mean and standard deviation.
    moved
        Number of people in both runs whose intervals do not overlap; None if a run has no intervals.
    """

    first: int
    second: int
    concordance: float
    map_correlation: float
    difference: float
    sd: float
    moved: int | None


class ComparedRuns(NamedTuple):
    """Comparison of two runs.

    Attributes
    ----------
    first, second
        The runs.
    pairs, unmatched
        Matched patterns, the best match first; and the unmatched patterns of each run.
    matched_by
        "people" or "maps".
    people
        One row per person in both: participant_id, visit (the first that is in both), group, scores of the pairs,
        differences; the largest differences first.
    regions
        One row per pair and region in both.
    n_patients
        Number of patients in both runs, on whom concordances are based.
    settings
        Settings that differ between the runs: name, value in the first, value in the second.
    warnings
        Reasons to doubt that ids or visits mean the same in both runs.
    """

    first: Run
    second: Run
    pairs: tuple[Pair, ...]
    unmatched: tuple[tuple[int, ...], tuple[int, ...]]
    matched_by: str
    people: pd.DataFrame
    regions: pd.DataFrame
    n_patients: int
    settings: tuple[tuple[str, str, str], ...]
    warnings: tuple[str, ...]


def compare_runs(first: Path, second: Path) -> ComparedRuns:
    """Compare two finished runs.

    Patterns are matched by how similarly they rank the patients in both runs or, with fewer than 20 such patients, by
    their maps.

    Raises
    ------
    InputError
        If a run is unfinished or damaged, or the two have too few patients and regions in common.
    """
    if first.resolve() == second.resolve():
        raise InputError(f"{first} and {second} are the same run.\nProvide the folders of two different runs.")
    runs = read_run(first), read_run(second)
    (scores, warnings), maps = _common_scores(*runs), _common_maps(*runs)
    patients = (scores["group"] == "patient").to_numpy()
    by_people = patients.sum() >= FEWEST
    if not by_people and len(maps[0]) < MIN_REGIONS:
        raise InputError(
            f"The runs in {first} and {second} have {int(patients.sum())} patients and {len(maps[0])} regions in "
            f"common.\nAt least {FEWEST} patients with the same ids, or {MIN_REGIONS} regions with the same names, are "
            "needed to match the patterns of the two runs."
        )
    blocks = [scores[patients].filter(regex=rf"^{side}_severity\d+$") for side in ("first", "second")]
    order = _matched(*(table.to_numpy(float) for table in (blocks if by_people else maps)), by_people=by_people)
    pairs = [_pair(scores, maps, *numbers, patients) for numbers in order]
    pairs.sort(key=lambda pair: -np.nan_to_num(pair.concordance if by_people else pair.map_correlation))
    rest = [
        tuple(n for n in range(1, run.summary.n_patterns + 1) if n not in [pair[side] for pair in pairs])
        for side, run in enumerate(runs)
    ]
    return ComparedRuns(
        *runs,
        tuple(pairs),
        (rest[0], rest[1]),
        "people" if by_people else "maps",
        _people(scores, pairs),
        _regions(maps, pairs),
        int(patients.sum()),
        _settings(*runs),
        warnings,
    )


def _common_scores(first: Run, second: Run) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the scores of people in both runs, at the first visit in both if they share visit labels, and warnings.

    Each person counts once: visits of one person are not independent, and the minimum is a number of patients.
    """
    tables, warnings = [run.results.r_indices for run in (first, second)], list[str]()
    visits = [dict.fromkeys(table.get("visit", ())) for table in tables]
    by_visit = not visits[0].keys().isdisjoint(visits[1])
    keys = ["participant_id", "visit"] if by_visit else ["participant_id"]
    if not by_visit:
        tables = [run.results.first_visits for run in (first, second)]
    named = [table.set_index(keys).add_prefix(side) for table, side in zip(tables, ("first_", "second_"), strict=True)]
    common = named[0].join(named[1], how="inner").assign(group=lambda both: both["first_group"]).reset_index()
    if by_visit:  # years may be unknown, but the first visit is not
        common = common.sort_values(["first_first_visit", "first_years"], ascending=[False, True])
    common = common.drop_duplicates("participant_id").sort_index().reset_index(drop=True)
    if len(common) and all(visits) and not by_visit:
        labels = " versus ".join(listed(one, 3) for one in visits)
        warnings.append(
            f"The runs share no visit labels ({labels}), so each person's first visits in the two runs are compared."
        )
    n_exchanged = int((common[["first_group", "second_group"]].replace("other", np.nan).nunique(axis=1) > 1).sum())
    if n_exchanged:
        warnings.append(
            f"{counted(n_exchanged, 'person is a control', 'people are controls')} in one run and patient"
            f"{'' if n_exchanged == 1 else 's'} in the other. If the studies use the same ids for different "
            "people, make the ids unique."
        )
    return common, tuple(warnings)


def _common_maps(first: Run, second: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the changes of the regions in both runs, one column per pattern."""
    maps = [
        run.results.patterns.pivot(index="region", columns="pattern", values="change_sd") for run in (first, second)
    ]
    both = maps[0].index.intersection(maps[1].index, sort=False)
    return maps[0].loc[both], maps[1].loc[both]


def _matched(first: np.ndarray, second: np.ndarray, *, by_people: bool) -> list[tuple[int, int]]:
    """Return the numbers of matching patterns, by the rank order of people or by the correlation of maps."""
    if by_people:
        table = np.nan_to_num([[_concordance(a, b) for b in second.T] for a in first.T], nan=0.5)
    else:
        table = np.nan_to_num(np.corrcoef(first.T, second.T)[: first.shape[1], first.shape[1] :])
    return [
        (int(row) + 1, int(column) + 1)
        for row, column in zip(*linear_sum_assignment(table, maximize=True), strict=True)
    ]


def _concordance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the concordance of two scores; NaN if either is constant.

    Neither is the reference: ties in one run, such as scores of 0, count the same whichever run comes first.
    """
    in_order = len(first) > 1 and np.ptp(first) > 0 and np.ptp(second) > 0
    return (concordance(first, second) + concordance(second, first)) / 2 if in_order else np.nan


def _pair(
    scores: pd.DataFrame,
    maps: tuple[pd.DataFrame, pd.DataFrame],
    first: int,
    second: int,
    patients: np.ndarray,
) -> Pair:
    """Describe two matched patterns."""
    names = f"first_severity{first}", f"second_severity{second}"
    a, b = (scores[name].to_numpy(float) for name in names)
    limits = [f"{name}_{end}" for name in names for end in ("low", "high")]
    moved = None
    if all(name in scores for name in limits):
        low_a, high_a, low_b, high_b = (scores[name] for name in limits)
        moved = int(((low_a > high_b) | (low_b > high_a)).sum())
    return Pair(
        first,
        second,
        _concordance(a[patients], b[patients]),
        float(np.corrcoef(maps[0][first], maps[1][second])[0, 1]) if len(maps[0]) >= MIN_REGIONS else np.nan,
        float(np.mean(b - a)) if len(a) else np.nan,
        float(np.std(b - a, ddof=1)) if len(a) > 1 else np.nan,
        moved,
    )


def _people(scores: pd.DataFrame, pairs: list[Pair]) -> pd.DataFrame:
    """Return everyone in both runs with the scores of matched patterns, those who moved most first."""
    who = scores[[name for name in ("participant_id", "visit", "group") if name in scores]].copy()
    for number, pair in enumerate(pairs, start=1):
        who[f"first_{number}"] = scores[f"first_severity{pair.first}"]
        who[f"second_{number}"] = scores[f"second_severity{pair.second}"]
        who[f"difference_{number}"] = who[f"second_{number}"] - who[f"first_{number}"]
    sizes = who.filter(like="difference_").abs().to_numpy()
    who["moved_most_in"] = np.where(np.isnan(sizes), -1.0, sizes).argmax(axis=1) + 1
    largest = pd.Series(np.nan_to_num(sizes).max(axis=1), who.index)
    return who.loc[largest.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)


def _regions(maps: tuple[pd.DataFrame, pd.DataFrame], pairs: list[Pair]) -> pd.DataFrame:
    """Return the changes of each region in both runs, pair by pair."""
    parts = [
        pd.DataFrame({"first": maps[0][pair.first], "second": maps[1][pair.second]}).assign(pair=number)
        for number, pair in enumerate(pairs, start=1)
    ]
    return pd.concat(parts).rename_axis("region").reset_index()[["pair", "region", "first", "second"]]


def _settings(first: Run, second: Run) -> tuple[tuple[str, str, str], ...]:
    """Return the settings in which two runs differ."""
    if first.settings is None or second.settings is None:
        return ()
    return tuple(
        (name, shown_setting(before), shown_setting(now))
        for (_, name), (before, now) in first.settings.changes(second.settings).items()
    )


def check_comparison_folder(out: Path, *runs: Path) -> None:
    """Refuse, before any work is done, a folder that holds other files, in particular a run."""
    check_folder(out, "out")
    strangers = sorted(path.name for path in out.glob("*") if path.name not in _FILES)
    within = [str(run) for run in runs if run.resolve() in (out.resolve(), *out.resolve().parents)]
    if strangers or within:
        what = f"is in the run folder {within[0]}" if within else f"already contains other files: {listed(strangers)}"
        raise InputError(f"The folder {out} {what}.\nChoose another folder with ", Remedy("out"), ".")


def write_comparison(compared: ComparedRuns, out: Path, *, show_ids: bool = False) -> Path:
    """Write the tables and the page of a comparison; return the page, which shows ids only with `show_ids`."""
    for name, table in zip(_FILES[:3], (pd.DataFrame(compared.pairs), compared.regions, compared.people), strict=True):
        write_csv(table, out / name)
    names = (str(compared.first.folder), str(compared.second.folder))
    return write_sheet(
        "compare",
        out / _FILES[3],
        title="Two runs compared",
        compared=compared,
        names=names,
        shown=shown_pairs(compared, names),
        show_ids=show_ids,
    )


def shown_pairs(compared: ComparedRuns, names: tuple[str, str]) -> list[tuple[Pair, list[Picture]]]:
    """Return each pair of patterns with its figures; `names` are those of the runs."""
    shown, gallery = list[tuple[Pair, list[Picture]]](), Gallery()
    full = {name: region.title for name, region in known_regions(compared.regions["region"].unique()).items()}
    for number, pair in enumerate(compared.pairs, start=1):
        titles = f"{names[0]}, pattern {pair.first}", f"{names[1]}, pattern {pair.second}"
        here, people = compared.regions[compared.regions["pair"] == number].replace({"region": full}), compared.people
        alt = f"Regional changes in pattern {pair.first} of the first run and pattern {pair.second} of the second."
        figures = [gallery.draw(f"maps_{number}", plots.two_maps(here, titles), alt)] if len(here) else []
        if len(people):
            figure = plots.two_scores(people[f"first_{number}"], people[f"second_{number}"], titles)
            figures.append(gallery.draw(f"scores_{number}", figure, "Scores of the people who are in both runs."))
        shown.append((pair, figures))
    return shown
