"""What patterns resemble: their maps beside ENIGMA's case-control maps of disorders, against spins of the cortex.

Maps of the cortex are smooth, so that any two of them correlate: a correlation is compared with those after the
pattern's map is turned on the sphere, each hemisphere by itself (Alexander-Bloch et al. 2018, NeuroImage 178:540). The
tables lie beside in ``reference_maps``, made by ``experiments/reference_maps.py``.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices.regions import known_columns, known_regions

_CORTEX = ("thickness", "area")
_SUBCORTEX = "subcortex"
N_SPINS = 2000
_FOLDER = Path(__file__).parent / "reference_maps"
_SIDES = ["left", "right"]
_LEAST_SHARE = 0.5  # of a Desikan region must be covered by what the table has
_LEAST_REGIONS = 20  # of 34 on each side: fewer do not cover the cortex
_LEAST_STRUCTURES = 5  # on each side
_COLUMNS = [
    *("pattern", "measure", "disorder", "n_regions", "r", "p", "p_corrected", "chance"),
    *("beyond", "beyond_p", "beyond_p_corrected"),
]
_CHANCE = 97.5  # centile of the spins that is kept for figures, and that a resemblance has to exceed


class Spun(NamedTuple):
    """Correlations of a map with several others: as they are, and after each spin."""

    found: np.ndarray
    spun: np.ndarray

    @property
    def p(self) -> np.ndarray:
        """How often a spin correlates at least as much with the same map."""
        return (1 + (self.spun >= self.found).sum(axis=0)) / (1 + len(self.spun))

    @property
    def p_corrected(self) -> np.ndarray:
        """How often a spin correlates at least as much with any of the maps."""
        largest = self.spun.max(axis=1, keepdims=True)
        return (1 + (largest >= self.found).sum(axis=0)) / (1 + len(self.spun))


@cache
def _table(name: str) -> pd.DataFrame:
    return pd.read_csv(_FOLDER / f"{name}.csv")


@cache
def _enigma(measure: str) -> pd.DataFrame:
    """Return the maps of a measure: a row for each disorder, a column for each side and region."""
    table = _table("enigma")
    own = table[table["measure"] == measure]
    wide = own.pivot(index="disorder", columns=["side", "region"], values="d")
    return wide.reindex(index=own["disorder"].unique())


@cache
def spins(regions: tuple[str, ...], n_spins: int = N_SPINS, seed: int = 0) -> np.ndarray:
    """Return which Desikan region takes each one's place in random turns of a hemisphere ``(spins, regions)``.

    Every region takes the place of one other, such that they move as little as they can beyond the turn; the other
    hemisphere, its mirror image, turns as a mirror image.

    Examples
    --------
    >>> spins(("insula", "cuneus", "precentral"), n_spins=4).shape
    (4, 3)
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.transform import Rotation

    places = _table("desikan_positions").set_index("region").loc[list(regions)].to_numpy(float)
    turns = Rotation.random(n_spins, np.random.default_rng(seed))
    return np.stack([linear_sum_assignment(-places @ turn.apply(places).T)[1] for turn in turns])


def desikan_map(changes: pd.Series, measure: str) -> pd.Series:
    """Return a map of one measure over Desikan's regions, by side and region, from a map over a table's regions.

    Destrieux's regions are averaged by their share of each Desikan region. A region without a side counts for both.

    Parameters
    ----------
    changes
        A value for each column of the table.
    measure
        ``thickness``, ``area``, or ``subcortex`` for volumes of structures below the cortex.

    Examples
    --------
    >>> found = desikan_map(pd.Series({"lh_cuneus_thickness": -0.4, "lh_cuneus_area": 0.1}), "thickness")
    >>> found.to_dict()
    {('left', 'cuneus'): -0.4}
    """
    columns, regions = known_columns(changes.index), known_regions(changes.index)
    wanted, atlases = ("volume", ("aseg",)) if measure == _SUBCORTEX else (measure, ("dk", "destrieux"))
    values: dict[tuple[str, str], float] = {}
    for name, change in changes.items():
        region, column = regions.get(str(name)), columns.get(str(name))
        if region is None or region.atlas not in atlases or len(region.outlines) != 1:
            continue
        if (column.measure if column else "") not in (wanted, *[""] * (measure == _SUBCORTEX)):
            continue
        values |= {(side, region.outlines[0]): float(change) for side in region.sides}
    own = pd.Series(values, dtype=float)
    if len(own) and "destrieux" in {region.atlas for region in regions.values()} and measure != _SUBCORTEX:
        return _from_destrieux(own)
    return own


def _from_destrieux(values: pd.Series) -> pd.Series:
    shares, means = _table("destrieux_to_desikan"), dict[tuple[str, str], float]()
    for side in _SIDES:
        own = values.get(side, pd.Series(dtype=float))
        weighted = shares.assign(value=shares["part"].map(own)).dropna(subset="value")
        for region, part in weighted.groupby("region"):
            if part["share"].sum() >= _LEAST_SHARE:
                means[side, str(region)] = float(np.average(part["value"], weights=part["share"]))
    return pd.Series(means, dtype=float)


def _both_sides(values: pd.Series) -> list[str]:
    """Return the regions that have a value on either side."""
    if values.empty:
        return []
    return sorted({*values.get("left", pd.Series()).index} & {*values.get("right", pd.Series()).index})


def _standardised(maps: np.ndarray) -> np.ndarray:
    centred = maps - maps.mean(axis=-1, keepdims=True)
    return centred / np.linalg.norm(centred, axis=-1, keepdims=True)


def _without(maps: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Return what is left of maps that a standardised one does not explain."""
    return _standardised(maps - (maps @ shared)[..., None] * shared)


def _compared(values: np.ndarray, maps: np.ndarray, orders: np.ndarray) -> tuple[Spun, Spun]:
    """Correlate a map ``(sides, regions)`` with others ``(maps, sides × regions)``; also beyond what these share."""
    spun = np.concatenate([values[:, orders[k]].reshape(1, -1) for k in range(len(orders))])
    own, turned, others = _standardised(values.ravel()), _standardised(spun), _standardised(maps)
    shared = _standardised(others.mean(axis=0))
    beyond = _without(others, shared)
    plain = Spun(others @ own, turned @ others.T)
    return plain, Spun(beyond @ _without(own, shared), _without(turned, shared) @ beyond.T)


def resemblance(patterns: pd.DataFrame, *, n_spins: int = N_SPINS, seed: int = 0) -> pd.DataFrame:
    """Correlate the map of each pattern with the case-control maps of disorders.

    Parameters
    ----------
    patterns
        Columns ``pattern``, ``region`` and ``change_sd``.
    n_spins
        Number of rotations of each pattern's map.
    seed
        Seed of the rotations.

    Returns
    -------
    DataFrame
        ``pattern``, ``measure`` (``thickness``, ``area`` or ``subcortex``), ``disorder``, ``n_regions``, ``r``, its
        one-sided ``p`` against spins and ``p_corrected`` (for the choice of the disorder), ``chance`` (the largest
        correlation over disorders that 39 of 40 spins stay below), and ``beyond``, ``beyond_p``,
        ``beyond_p_corrected``: the same given the mean of all maps. For the subcortex, only a descriptive ``r``.
        There are no rows if no map is available.
    """
    rows = []
    for pattern, own in patterns.groupby("pattern"):
        changes = own.set_index("region")["change_sd"].astype(float)
        for measure in (*_CORTEX, _SUBCORTEX):
            values, maps = desikan_map(changes, measure), _enigma(measure)
            regions = [
                region for region in _both_sides(values) if ("left", region) in maps and ("right", region) in maps
            ]
            if len(regions) < (_LEAST_STRUCTURES if measure == _SUBCORTEX else _LEAST_REGIONS):
                continue
            wanted = pd.MultiIndex.from_product([_SIDES, regions])
            seen, others = values[wanted].to_numpy().reshape(2, -1), maps[wanted].dropna()
            if not np.ptp(seen):
                continue
            about: dict[str, object] = {
                "pattern": pattern,
                "measure": measure,
                "disorder": others.index,
                "n_regions": seen.size,
            }
            if measure == _SUBCORTEX:
                r = _standardised(others.to_numpy()) @ _standardised(seen.ravel())
                rows.append(pd.DataFrame(about | {"r": r}))
                continue
            plain, beyond = _compared(seen, others.to_numpy(), spins(tuple(regions), n_spins, seed))
            about |= {"r": plain.found, "p": plain.p, "p_corrected": plain.p_corrected}
            about |= {"chance": np.percentile(plain.spun.max(axis=1), _CHANCE)}
            about |= {"beyond": beyond.found, "beyond_p": beyond.p, "beyond_p_corrected": beyond.p_corrected}
            rows.append(pd.DataFrame(about))
    return (pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()).reindex(columns=_COLUMNS)
