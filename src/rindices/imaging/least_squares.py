"""Many linear models at every voxel, while each map is read once.

A model's people, covariates and variable of interest are the same at every voxel, so its orthonormal basis is too. t
follows from the products of the basis with the maps and from their sums of squares. Both are sums over people: maps
are added in blocks as they are read and then forgotten, and memory does not grow with the number of maps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from rindices.analysis.statistics import basis, residuals

_BLOCK_BYTES, _BLOCK_MAPS = 2**26, 32
_PASS_BYTES = 2**30  # of sums; models beyond it wait for another reading of the maps
_SLAB = 2**14  # voxels at a time, so that intermediate results stay small
_NOTHING_LEFT = 1e-10  # share of the sum of squares that is rounding error where a model explains all


class Model(NamedTuple):
    """A linear model of some people.

    Attributes
    ----------
    people
        Their places in the list of all.
    weights
        Orthonormal rows ``(columns of the design, people)``: the constant, the covariates, and last what of the
        variable of interest these leave.
    freedom
        Degrees of freedom.
    """

    people: np.ndarray
    weights: np.ndarray
    freedom: int

    @property
    def key(self) -> bytes:
        """The same for models of the same people and variable."""
        return self.people.tobytes() + self.weights[-1].tobytes()


def make_model(people: np.ndarray, interest: np.ndarray, covariates: np.ndarray) -> Model | None:
    """Return the model of a variable ``(people,)`` given covariates ``(people, n)``; none where they explain it."""
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
        Returns the values ``(voxels,)`` of a person, given their place; called from several threads.
    n_voxels
        How many there are.
    progress
        Called with the number of maps read and of all.

    Returns
    -------
    list of ndarray
        NaN where a map has no value, or where nothing is left to chance, as in voxels that are 0 in everybody.
    """
    passes = list(_passes(models, n_voxels))
    to_read = [np.unique(np.concatenate([model.people for model in some])) for some in passes]
    n_all, n_read = sum(map(len, to_read)), 0
    n_maps = max(1, min(_BLOCK_MAPS, _BLOCK_BYTES // (8 * n_voxels)))
    found = []
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for some, people in zip(passes, to_read, strict=True):
            sums = _Sums(some, n_voxels)
            for block in np.split(people, range(n_maps, len(people), n_maps)):
                sums.add(block, list(pool.map(read, block)))
                n_read += len(block)
                if progress is not None:
                    progress(n_read, n_all)
            found += [sums.t(place) for place in range(len(some))]
    return found


def _passes(models: Sequence[Model], n_voxels: int) -> Iterator[list[Model]]:
    some: list[Model] = []
    for model in models:
        rows = sum(len(other.weights) + 1 for other in (*some, model))
        if some and 8 * rows * n_voxels > _PASS_BYTES:
            yield some
            some = []
        some.append(model)
    if some:
        yield some


class _Sums:
    """Products of the bases of several models with the maps, and sums of squares."""

    def __init__(self, models: Sequence[Model], n_voxels: int) -> None:
        self.models = models
        ends = np.cumsum([len(model.weights) for model in models])
        self.rows = [slice(int(end) - len(model.weights), int(end)) for model, end in zip(models, ends, strict=True)]
        self.products = np.zeros((int(ends[-1]), n_voxels))
        self.squares = np.zeros((len(models), n_voxels))
        self.gaps = np.zeros((len(models), n_voxels), bool)
        self.origin: np.ndarray | None = None

    def add(self, people: np.ndarray, maps: list[np.ndarray]) -> None:
        # t does not change when every map has the same image subtracted: one of them keeps sums of squares small.
        values = np.stack(maps)
        if self.origin is None:
            self.origin = np.where(np.isfinite(values[0]), values[0], 0)
        values -= self.origin
        weights, members = self._parts(people)
        missing = ~np.isfinite(values)
        if missing.any():
            values[missing] = 0
            self.gaps |= (members @ missing) > 0
        for start in range(0, values.shape[1], _SLAB):
            slab = slice(start, start + _SLAB)
            self.products[:, slab] += weights @ values[:, slab]
            self.squares[:, slab] += members @ values[:, slab] ** 2

    def _parts(self, people: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of the weights, and of who belongs to which model, of some people."""
        weights, members = np.zeros((len(self.products), len(people))), np.zeros((len(self.models), len(people)))
        for place, (model, rows) in enumerate(zip(self.models, self.rows, strict=True)):
            _, here, there = np.intersect1d(people, model.people, assume_unique=True, return_indices=True)
            weights[rows, here] = model.weights[:, there]
            members[place, here] = 1
        return weights, members

    def t(self, place: int) -> np.ndarray:
        products, squares = self.products[self.rows[place]], self.squares[place]
        left = squares - np.einsum("ij,ij->j", products, products)
        unknown = self.gaps[place] | (left <= _NOTHING_LEFT * squares)
        error = np.sqrt(np.where(unknown, 1, left) / self.models[place].freedom)
        return np.where(unknown, np.nan, products[-1] / error)
