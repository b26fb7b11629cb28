"""Patients in whom one pattern prevails, compared with controls voxel by voxel.

A model's people, covariates and variable of interest are the same at every voxel, and so is its orthonormal basis. t
follows from the products of the basis with the maps and from their sums of squares. Both are sums over people: maps
are added in blocks as they are read and then discarded, so memory does not grow with the number of maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import cpu_count
from numpy.typing import ArrayLike
from scipy.special import stdtr

from rindices.analysis.region_effects import FEWEST_PEOPLE, HIGH, LOW, subgroups_of
from rindices.analysis.statistics import basis, design, false_discovery, in_group, residuals, same_people
from rindices.imaging.images import (
    ID,
    PATH,
    VISIT,
    MapFile,
    MapTable,
    Space,
    as_text,
    common_space,
    map_table,
    open_map,
)
from rindices.problems import InputError, Remedy, counted, listed
from rindices.settings import ImageSettings

THRESHOLD = 0.05  # of the false discovery rate
REGRESSION = "regression"
_BLOCK_BYTES, _BLOCK_MAPS = 2**26, 32
_PASS_BYTES = 2**30  # of sums; models beyond it wait for another pass over the maps
_NOTHING_LEFT = 1e-10  # share of the sum of squares that is rounding error if a model explains all
_MOST_GAPS = 0.1  # share of voxels that a map may lack; beyond it, the map hardly covers this brain


class Result(NamedTuple):
    """The result of a comparison: one value per voxel of `space`, NaN where it could not be computed.

    Attributes
    ----------
    t
        Student's t; negative: lower than in controls, or lower at higher R-indices.
    q
        Benjamini–Hochberg q values over the voxels of this comparison.
    freedom
        Degrees of freedom.
    space
        Positions of the voxels.
    """

    t: np.ndarray
    q: np.ndarray
    freedom: int
    space: Space


class Comparison(NamedTuple):
    """A subgroup of patients versus controls, or the regression of all patients' maps on an R-index.

    Attributes
    ----------
    pattern
        Number of the pattern, from 1.
    level
        ``low``, ``middle``, ``high`` or ``regression``.
    rule
        Who is in the subgroup, in words.
    n_patients, n_controls
        Number of people compared; regressions have no controls.
    without_map, without_covariates
        Number of patients and controls excluded for either reason; people who lack both count as without map.
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
    """People, one row each: R-indices, groups, covariates as numbers, who has all covariates, and rows of `maps`."""

    scores: pd.DataFrame
    group: np.ndarray
    covariates: np.ndarray
    complete: np.ndarray
    maps: MapTable
    rows: np.ndarray


def compare_maps(
    maps: pd.DataFrame | str | Path,
    r_indices: pd.DataFrame,
    group: ArrayLike,
    covariates: pd.DataFrame | None = None,
    settings: ImageSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Comparison]:
    """Compare the maps of each subgroup of patients with those of controls, given covariates.

    The maps are images of any kind on a common grid, aligned between people. Each is read once, unless the sums of all
    models take more than 1 GiB. Each voxel is tested by least squares with a constant, the covariates and the subgroup;
    in regressions, one R-index at a time takes the place of the subgroup.

    Parameters
    ----------
    maps
        A table of people and their images, or its file: see `read_map_table`.
    r_indices
        ``participant_id``, ``visit`` (optional) and severity1, severity2, … or r1, r2, …; if it has a column
        ``first_visit``, later visits are excluded. Other columns are ignored.
    group
        ``control``, ``patient`` or ``other``, one per row of `r_indices`.
    covariates
        Numbers and categories, with the same rows; people who lack one are excluded.
    settings
        The mask, an image with two values or only ones (by default the standard brain); limits of the subgroups, as in
        `rindices.analysis.subgroup_sizes`; whether the maps of all patients are also regressed on each R-index; and
        whether images on another grid are resampled to that of most maps, or refused.
    progress
        Called with the number of maps read so far and in total.

    Returns
    -------
    list of Comparison
        For each pattern the subgroups low, middle and high, and the regression if requested. The low subgroup is the
        same for all patterns.

    Raises
    ------
    InputError
        If a table or an image cannot be used.
    """
    study = _study(map_table(maps), r_indices, group, covariates)
    settings = settings or ImageSettings()
    planned = [*_planned_comparisons(study, *(settings.limits or (LOW, HIGH)), settings.regressions)]
    models = {model.key: model for _, model in planned if model is not None}  # the low subgroup is compared once
    results = _results(models, study, settings.mask, settings.resample, progress) if models else {}
    return [
        comparison if model is None else comparison._replace(result=results[model.key]) for comparison, model in planned
    ]


def _rows_of(maps: MapTable, people: pd.DataFrame) -> np.ndarray:
    """Return the position of each person's row in a checked table of maps; −1 for people without a map.

    Parameters
    ----------
    maps
        From `map_table`.
    people
        ``participant_id`` and, if there are visits, ``visit``; one row per person.

    Raises
    ------
    InputError
        If nobody has a map, or a person has several maps and the visit is not known.
    """
    table, name = maps
    by = [column for column in (ID, VISIT) if column in table and column in people]
    twice = table.loc[table.duplicated(by), ID]
    if len(twice):
        raise InputError(
            f"{name} has maps from several visits for {counted(twice.nunique(), 'person', 'people')} (for example, "
            f"{twice.iloc[0]!r}), but the run has one scan per person.\n"
            "Keep only the maps of the scans used in the run."
        )
    wanted = pd.MultiIndex.from_frame(pd.DataFrame({column: as_text(people[column]) for column in by}))
    rows = pd.MultiIndex.from_frame(table[by]).get_indexer(wanted)
    rows[(rows >= 0) & (table[PATH].to_numpy()[rows] == "")] = -1
    if (rows < 0).all():
        keys = [repr("/".join(map(str, key))) for key in (table[by].iloc[0], wanted[0])]
        raise InputError(
            f"{name} has no map for anyone in the run: its ids look like {keys[0]}, but those in the run look like "
            f"{keys[1]}.\n"
            f"Use the same values for {listed(by, joiner=' and ')} in both."
        )
    return rows


def _study(maps: MapTable, r_indices: pd.DataFrame, group: ArrayLike, covariates: pd.DataFrame | None) -> _Study:
    groups = np.asarray(group, object)
    covariates = pd.DataFrame(index=range(len(r_indices))) if covariates is None else covariates
    same_people(len(r_indices), group=groups, covariates=covariates)
    kept = r_indices.get("first_visit", pd.Series(True, r_indices.index)).to_numpy(bool)
    people = r_indices[kept]
    repeated = people["participant_id"][pd.Series(as_text(people["participant_id"])).duplicated().to_numpy()]
    if len(repeated):
        raise InputError(
            f"Participant {repeated.iloc[0]!r} has several rows of R-indices, but each person can appear only once in "
            "a comparison.\n"
            "Keep one visit per person."
        )
    columns, complete = design(covariates[kept])
    scores = people.filter(regex=r"^(r|severity)\d+$")
    return _Study(scores, groups[kept], columns, complete, maps, _rows_of(maps, people))


def _planned_comparisons(
    study: _Study, low: float, high: float, regressions: bool
) -> Iterator[tuple[Comparison, Model | None]]:
    controls, patients = in_group(study.group, "control"), in_group(study.group, "patient")
    for pattern, level, rule, members in subgroups_of(study.scores, study.group, low, high):
        yield _planned(study, (pattern, level, rule), controls | members, members.astype(float))
        if regressions and level == "high":  # the last of its pattern
            own = study.scores.iloc[:, pattern - 1]
            about = pattern, REGRESSION, f"{own.name} in all patients"
            yield _planned(study, about, patients, own.to_numpy(float))


def _planned(
    study: _Study, about: tuple[int, str, str], people: np.ndarray, interest: np.ndarray
) -> tuple[Comparison, Model | None]:
    """Count the people who can be compared, and make the model of a variable of interest if there are enough.

    What the comparison is about is its pattern, level and rule.
    """
    no_map = people & (study.rows < 0)
    incomplete = people & ~study.complete & ~no_map
    members = np.flatnonzero(people & ~no_map & ~incomplete)
    n_controls = int(in_group(study.group[members], "control").sum())
    n_patients = len(members) - n_controls
    few_patients, few_controls = n_patients < FEWEST_PEOPLE, n_controls < FEWEST_PEOPLE and about[1] != REGRESSION
    model = None if few_patients or few_controls else make_model(members, interest[members], study.covariates[members])
    reasons = (
        (few_patients, f"fewer than {FEWEST_PEOPLE} patients"),
        (few_controls, f"fewer than {FEWEST_PEOPLE} controls"),
        (model is None, "the covariates fully explain the variable of interest"),
        (model is not None and model.freedom < FEWEST_PEOPLE, "too few people for the number of covariates"),
    )
    note = next((reason for applies, reason in reasons if applies), "")
    counts = n_patients, n_controls, int(no_map.sum()), int(incomplete.sum())
    return Comparison(*about, *counts, note, None), None if note else model


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
    values = t_values(
        list(models.values()), lambda person: _checked_values(files[int(person)], space), len(space.voxels), progress
    )
    return {
        key: Result(t, false_discovery(2 * stdtr(model.freedom, -np.abs(t))), model.freedom, space)
        for (key, model), t in zip(models.items(), values, strict=True)
    }


def _checked_values(file: MapFile, space: Space) -> np.ndarray:
    values = file.values(space)
    finite = np.isfinite(values)
    if finite.mean() < 1 - _MOST_GAPS:
        raise InputError(
            f"{file.name}: {file.path} has missing values (NaN) in {100 - 100 * finite.mean():.0f} % of the voxels "
            "inside the mask.\n"
            "Leave the path empty to exclude this person, recreate the map, or provide a smaller mask with ",
            Remedy("mask"),
            ".",
        )
    if np.ptp(values[finite]) == 0:
        raise InputError(
            f"{file.name}: {file.path} has the value {values[finite][0]:.4g} at every voxel inside the mask.\n"
            "Leave the path empty to exclude this person, or recreate the map."
        )
    return values


class Model(NamedTuple):
    """A linear model of some people.

    Attributes
    ----------
    people
        Their positions among all people.
    weights
        Orthonormal rows ``(columns of the design, people)``: the constant, the covariates, and last the part of the
        variable of interest that these do not explain.
    freedom
        Degrees of freedom.
    """

    people: np.ndarray
    weights: np.ndarray
    freedom: int

    @property
    def key(self) -> bytes:
        """A key that is the same for models of the same people and variable."""
        return self.people.tobytes() + self.weights[-1].tobytes()


def make_model(people: np.ndarray, interest: np.ndarray, covariates: np.ndarray) -> Model | None:
    """Return the model of a variable ``(people,)`` given covariates ``(people, n)``; None if they explain it."""
    given = basis(covariates)
    left = residuals(interest[:, None].astype(float), given)[:, 0]
    length = np.linalg.norm(left)
    if length == 0:
        return None
    constant = np.full(len(people), len(people) ** -0.5)
    return Model(people, np.vstack([constant, given.T, left / length]), len(people) - given.shape[1] - 2)


def t_values(
    models: Sequence[Model],
    read: Callable[[int], np.ndarray],
    n_voxels: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[np.ndarray]:
    """Return Student's t of each model's variable of interest at every voxel.

    Parameters
    ----------
    models
        From `make_model`.
    read
        Returns the values ``(voxels,)`` of a person, given their position; called from several threads.
    n_voxels
        Number of voxels.
    progress
        Called with the number of maps read so far and in total.

    Returns
    -------
    list of ndarray
        NaN where a map has no value or no residual variance is left, as in voxels that are 0 in everybody.
    """
    n_at_once = max(1, _PASS_BYTES // (8 * n_voxels * max(len(model.weights) + 1 for model in models)))
    passes = [models[start : start + n_at_once] for start in range(0, len(models), n_at_once)]
    to_read = [np.unique(np.concatenate([model.people for model in some])) for some in passes]
    n_all, n_read = sum(map(len, to_read)), 0
    n_maps = max(1, min(_BLOCK_MAPS, _BLOCK_BYTES // (8 * n_voxels)))
    statistics = []
    with ThreadPoolExecutor(min(4, cpu_count())) as pool:
        for some, people in zip(passes, to_read, strict=True):
            every_sum, origin = [_Sums(model, n_voxels) for model in some], None
            for block in np.split(people, range(n_maps, len(people), n_maps)):
                values = np.stack(list(pool.map(read, block)))
                values[np.isinf(values)] = np.nan
                # Subtracting the same image from every map leaves t unchanged and keeps sums of squares small.
                origin = np.nan_to_num(values[0]) if origin is None else origin
                values -= origin
                for sums in every_sum:
                    sums.add(block, values)
                n_read += len(block)
                if progress is not None:
                    progress(n_read, n_all)
            statistics += [sums.t() for sums in every_sum]
    return statistics


class _Sums:
    """Products of the basis of a model with the maps, and sums of squares."""

    def __init__(self, model: Model, n_voxels: int) -> None:
        self.model = model
        self.products, self.squares = np.zeros((len(model.weights), n_voxels)), np.zeros(n_voxels)

    def add(self, people: np.ndarray, values: np.ndarray) -> None:
        """Add the maps of the people who belong to the model."""
        _, here, there = np.intersect1d(people, self.model.people, assume_unique=True, return_indices=True)
        own = values[here]
        self.products += self.model.weights[:, there] @ own
        self.squares += np.einsum("ij,ij->j", own, own)

    def t(self) -> np.ndarray:
        """Return t of the last row of the basis, the variable of interest."""
        left = self.squares - np.einsum("ij,ij->j", self.products, self.products)
        left[~(left > _NOTHING_LEFT * self.squares)] = np.nan
        return self.products[-1] / np.sqrt(left / self.model.freedom)
