"""Patients in whom one pattern prevails, compared with controls voxel by voxel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtr

from rindices.analysis.coding import design, in_group, same_people
from rindices.analysis.effects import FEWEST_PEOPLE, HIGH, LOW, subgroups_of
from rindices.analysis.statistics import false_discovery
from rindices.errors import InputError, setting
from rindices.imaging.images import MapFile, Space, common_space, open_map
from rindices.imaging.least_squares import Model, make_model, t_values
from rindices.imaging.map_table import MapTable, as_text, map_table, rows_of

THRESHOLD = 0.05  # of the false discovery rate
REGRESSION = "regression"
_MOST_GAPS = 0.1  # share of the voxels that a map may lack; beyond it, the map is hardly of this brain


class Result(NamedTuple):
    """What a comparison found; one value a voxel of `space`, NaN where it could not be computed.

    Attributes
    ----------
    t
        Student's t; negative: less than in controls, or less the higher the R-index.
    q
        Benjamini and Hochberg's, over the voxels of this comparison.
    freedom
        Degrees of freedom.
    space
        Where the voxels are.
    """

    t: np.ndarray
    q: np.ndarray
    freedom: int
    space: Space


class Comparison(NamedTuple):
    """A subgroup of patients against controls, or the regression of all patients' maps on an R-index.

    Attributes
    ----------
    pattern
        Which R-index, from 1.
    level
        ``low``, ``middle``, ``high`` or ``regression``.
    rule
        Who is in the subgroup, in words.
    n_patients, n_controls
        Who was compared; regressions have no controls.
    without_map, without_covariates
        Patients and controls that were left out, and why; who lacks both counts as without map.
    note
        Why there is no result, or "".
    result
        Statistics of the voxels.
    """

    pattern: int
    level: str
    rule: str
    n_patients: int
    n_controls: int
    without_map: int
    without_covariates: int
    note: str
    result: Result | None


class _Study(NamedTuple):
    """People, one row each: R-indices, groups, covariates as numbers, who has all of them, and rows of `maps`."""

    scores: pd.DataFrame
    group: np.ndarray
    covariates: np.ndarray
    complete: np.ndarray
    maps: MapTable
    rows: np.ndarray


class _Question(NamedTuple):
    """Whom to compare: everybody concerned, and the variable whose effect is sought."""

    pattern: int
    level: str
    rule: str
    people: np.ndarray
    interest: np.ndarray


def compare_maps(
    maps: pd.DataFrame | str | Path,
    r_indices: pd.DataFrame,
    group: ArrayLike,
    covariates: pd.DataFrame | None = None,
    *,
    mask: str | Path | None = None,
    low: float = LOW,
    high: float = HIGH,
    regressions: bool = False,
    resample: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Comparison]:
    """Compare the maps of each subgroup of patients with those of controls, given covariates.

    The maps are images of any kind on one grid, with the voxels of different people at the same place of the brain.
    Each is read once, unless the sums of all models take more than 1 GiB. Voxels are tested by least squares with a
    constant, the covariates and the subgroup; in regressions with one R-index at a time in its place.

    Parameters
    ----------
    maps
        A table of people and their images, or its file: see `read_map_table`.
    r_indices
        ``participant_id``, ``visit`` (optional) and r1, r2, …; where it has a column ``first_visit``, later visits are
        left out. Other columns are ignored.
    group
        ``control``, ``patient`` or ``other``, one a row of `r_indices`.
    covariates
        Numbers and categories, with the same rows; people who lack one are left out.
    mask
        An image of two values, or of ones everywhere; the standard (MNI) brain where none is given.
    low, high
        Limits of the subgroups, as in `rindices.analysis.subgroup_sizes`.
    regressions
        Whether the maps of all patients are also regressed on each R-index.
    resample
        Whether images of another grid are resampled to that of most maps; otherwise they are refused.
    progress
        Called with the number of maps read and of all.

    Returns
    -------
    list of Comparison
        For each pattern the subgroups low, middle and high, and the regression where it is asked for. The low subgroup
        is the same for all patterns.

    Raises
    ------
    InputError
        If a table or an image cannot be used.
    """
    study = _study(map_table(maps), r_indices, group, covariates)
    planned = [_planned(question, study) for question in _questions(study, low, high, regressions)]
    models = {model.key: model for _, model in planned if model is not None}  # the low subgroup is compared once
    results = _results(models, study, mask, resample, progress) if models else {}
    return [
        comparison if model is None else comparison._replace(result=results[model.key]) for comparison, model in planned
    ]


def _study(maps: MapTable, r_indices: pd.DataFrame, group: ArrayLike, covariates: pd.DataFrame | None) -> _Study:
    groups = np.asarray(group, object)
    covariates = pd.DataFrame(index=range(len(r_indices))) if covariates is None else covariates
    same_people(len(r_indices), group=groups, covariates=covariates)
    kept = np.ones(len(r_indices), bool)
    if "first_visit" in r_indices:
        kept = r_indices["first_visit"].to_numpy(bool)
    people = r_indices[kept]
    if "participant_id" not in people:
        raise InputError("`r_indices` should have a column 'participant_id', which says whose maps are whose.")
    repeated = pd.Series(as_text(people["participant_id"])).duplicated()
    if repeated.any():
        raise InputError(
            f"{people['participant_id'].iloc[int(repeated.argmax())]!r} has several rows of R-indices, but a person "
            "counts once in a comparison.\nKeep one visit of everybody."
        )
    scores = people[[name for name in map(str, people) if name[:1] == "r" and name[1:].isdigit()]]
    if not scores.shape[1]:
        raise InputError("`r_indices` should have columns r1, r2, …; it has none.")
    columns, complete = design(covariates[kept])
    return _Study(scores, groups[kept], columns, complete, maps, rows_of(maps, people))


def _questions(study: _Study, low: float, high: float, regressions: bool) -> Iterator[_Question]:
    controls, patients = in_group(study.group, "control"), in_group(study.group, "patient")
    subgroups = list(subgroups_of(study.scores, study.group, low, high))
    for pattern, name in enumerate(study.scores, start=1):
        for found in subgroups:
            if found.pattern == pattern:
                yield _Question(pattern, found.level, found.rule, controls | found.members, found.members.astype(float))
        if regressions:
            yield _Question(
                pattern, REGRESSION, f"{name} in all patients", patients, study.scores[name].to_numpy(float)
            )


def _planned(question: _Question, study: _Study) -> tuple[Comparison, Model | None]:
    """Count who can be compared, and make the model where there are enough."""
    no_map = question.people & (study.rows < 0)
    incomplete = question.people & ~study.complete & ~no_map
    members = np.flatnonzero(question.people & ~no_map & ~incomplete)
    n_controls = int(in_group(study.group[members], "control").sum())
    n_patients = len(members) - n_controls
    model, note = None, ""
    if n_patients < FEWEST_PEOPLE:
        note = f"fewer than {FEWEST_PEOPLE} patients"
    elif n_controls < FEWEST_PEOPLE and question.level != REGRESSION:
        note = f"fewer than {FEWEST_PEOPLE} controls"
    else:
        model = make_model(members, question.interest[members], study.covariates[members])
        if model is None:
            note = "the covariates alone tell these people apart"
        elif model.freedom < FEWEST_PEOPLE:
            model, note = None, "too few people for so many covariates"
    counts = n_patients, n_controls, int(no_map.sum()), int(incomplete.sum())
    return Comparison(question.pattern, question.level, question.rule, *counts, note, None), model


def _results(
    models: dict[bytes, Model],
    study: _Study,
    mask: str | Path | None,
    resample: bool,
    progress: Callable[[int, int], None] | None,
) -> dict[bytes, Result]:
    everybody = np.unique(np.concatenate([model.people for model in models.values()]))
    files = {int(person): open_map(*study.maps.file(study.rows[person])) for person in everybody}
    space = common_space(list(files.values()), mask, resample=resample)

    def read(person: int) -> np.ndarray:
        return _checked_values(files[int(person)], space)

    found = t_values(list(models.values()), read, len(space.voxels), progress)
    results = {}
    for (key, model), t in zip(models.items(), found, strict=True):
        p = 2 * stdtr(model.freedom, -np.abs(t))
        results[key] = Result(t, false_discovery(p), model.freedom, space)
    return results


def _checked_values(file: MapFile, space: Space) -> np.ndarray:
    values = file.values(space)
    known = np.isfinite(values)
    if known.mean() < 1 - _MOST_GAPS:
        raise InputError(
            f"{file.name}: {file.path} has no number (NaN) at {100 - 100 * known.mean():.0f} % of the voxels inside "
            f"the mask.\nLeave its path empty, make it again, or give a smaller mask with {setting('mask')}."
        )
    if np.ptp(values[known]) == 0:
        raise InputError(
            f"{file.name}: {file.path} is {values[known][0]:.4g} at every voxel inside the mask.\n"
            "Leave its path empty, or make it again."
        )
    return values
