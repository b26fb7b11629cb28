"""Association of severities with clinical scores, also adjusted for covariates; resemblance of patterns to disorders.

Patterns are compared with ENIGMA's case-control maps of disorders. Cortical maps are smooth, so any two of them
correlate: each correlation is compared with those obtained after rotating the pattern's map on the sphere, within each
hemisphere (Alexander-Bloch et al. 2018, NeuroImage 178:540). ``experiments/reference_maps.py`` generates the tables in
``reference_maps``.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from rindices.analysis.statistics import (
    Coded,
    Estimate,
    as_numbers,
    basis,
    coded,
    correlation,
    design,
    explained_variance,
    false_discovery,
    residuals,
    same_people,
)
from rindices.regions import known_columns, known_regions

FEWEST_PEOPLE = 10  # with fewer, a correlation is uninformative and its interval not valid
FEWEST_IN_CATEGORY = 3
STATISTICS = {"continuous": "Pearson r", "dichotomous": "point-biserial r", "categorical": "eta²"}
_WHOLE = ["coefficient", "low", "high", "p"]
_PARTIAL = ["partial", "partial_low", "partial_high", "partial_p"]
_COLUMNS = [
    *("people", "pattern", "variable", "level", "kind", "statistic", "n"),
    *(*_WHOLE, "q", *_PARTIAL, "partial_q", "note"),
]


def associations(
    r_indices: pd.DataFrame,
    variables: pd.DataFrame,
    covariates: pd.DataFrame | None = None,
    *,
    people: str = "patients",
) -> pd.DataFrame:
    """Associate each R-index with each variable.

    Rows of the tables are the same people in the same order; their index does not matter.

    Parameters
    ----------
    r_indices
        One column per pattern.
    variables
        Numbers or text. Missing values are excluded, variable by variable.
    covariates
        Numbers or text, for partial coefficients: both variables are adjusted linearly for the covariates. People who
        lack one are excluded from the partial coefficients only.
    people
        Label of these people, "patients" or "everybody", which is only written into the table.

    Returns
    -------
    DataFrame
        One row per pattern and variable: ``people``, ``pattern`` (1, 2, …), ``variable``, ``level`` (of a dichotomous
        variable: the value coded as 1), ``kind``, ``statistic`` (Pearson's r for continuous variables, point-biserial r
        for those with two values, η² for text with three or more), ``n``, ``coefficient``, ``low`` and
        ``high`` (95 %), ``p`` (t or F test), ``q`` (Benjamini–Hochberg over the rows), the same for the ``partial``
        coefficient, and ``note``: why there is none.

    Notes
    -----
    Intervals do not assume normally distributed scores; see `rindices.analysis.statistics`.

    Examples
    --------
    >>> severity = pd.DataFrame({"r1": np.linspace(0, 1, 20)})
    >>> scores = pd.DataFrame({"memory": np.linspace(30, 20, 20) + np.tile([1, -1], 10), "carrier": ["no", "yes"] * 10})
    >>> associations(severity, scores)[["variable", "level", "statistic", "n", "coefficient"]].round(2).values.tolist()
    [['memory', '', 'Pearson r', 20, -0.95], ['carrier', 'yes', 'point-biserial r', 20, 0.09]]
    """
    scores = np.asarray(r_indices, float)
    same_people(len(scores), variables=variables, **({} if covariates is None else {"covariates": covariates}))
    sound = np.isfinite(scores).all(axis=1)
    adjustment = None if covariates is None else design(covariates)
    parts = [_associated(str(name), coded(column, sound), scores, adjustment) for name, column in variables.items()]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_COLUMNS, dtype=float)
    q, partial_q = (false_discovery(table[name].to_numpy()) for name in ("p", "partial_p"))
    table = table.assign(people=people, q=q, partial_q=partial_q)
    return table.sort_values("pattern", kind="stable", ignore_index=True)[_COLUMNS]


def _associated(
    name: str, column: Coded, scores: np.ndarray, adjustment: tuple[np.ndarray, np.ndarray] | None
) -> pd.DataFrame:
    """Return one row per pattern."""
    whole = partial = Estimate.unknown(scores.shape[1])
    note, level = _why_not(column), ""
    if not note:
        level = column.levels[1] if column.kind == "dichotomous" else ""
        whole = _estimate(scores[column.people], column, np.empty((len(column.values), 0)))
        if adjustment is not None:
            partial, note = _adjusted(scores, column, *adjustment)
    about = {"variable": name, "kind": column.kind, "statistic": STATISTICS[column.kind], "n": len(column.values)}
    numbers = dict(zip([*_WHOLE, *_PARTIAL], [*whole, *partial], strict=True))
    notes = np.where(np.isnan(whole.value), note or "the severity does not vary", note)
    return pd.DataFrame({"pattern": np.arange(len(notes)) + 1} | about | numbers | {"level": level, "note": notes})


def _adjusted(scores: np.ndarray, column: Coded, covariates: np.ndarray, complete: np.ndarray) -> tuple[Estimate, str]:
    """Return the partial coefficients, and a note if they are based on fewer people or cannot be estimated."""
    inside = complete[column.people]
    smaller = column._replace(values=column.values[inside], people=column.people & complete)
    given, partial = basis(covariates[smaller.people]), Estimate.unknown(scores.shape[1])
    reason = _why_not(smaller)
    if not reason and len(smaller.values) - given.shape[1] - len(column.levels) < FEWEST_PEOPLE:
        reason = "too few people for the covariates"
    if not reason:
        partial = _estimate(scores[smaller.people], smaller, given)
        reason = "the covariates explain this variable completely" if np.isnan(partial.value).all() else ""
    if reason:
        return partial, f"no partial coefficient: {reason}"
    fewer = (
        f"partial coefficient based on only {len(smaller.values)} people, because covariates are missing for the others"
    )
    return partial, "" if inside.all() else fewer


def _why_not(column: Coded) -> str:
    """Return why a variable is not tested, or "". Categories are not named: they could be names of people."""
    if len(column.values) < FEWEST_PEOPLE:
        return f"fewer than {FEWEST_PEOPLE} people have a value"
    if np.ptp(column.values) == 0:
        return "everyone has the same value"
    if not column.levels:
        return ""
    counts = np.bincount(column.values.astype(int), minlength=len(column.levels))
    return f"a category has fewer than {FEWEST_IN_CATEGORY} people" if counts.min() < FEWEST_IN_CATEGORY else ""


def _estimate(scores: np.ndarray, column: Coded, given: np.ndarray) -> Estimate:
    own, numbers, n_given = residuals(scores, given), residuals(as_numbers(column), given), given.shape[1]
    is_categorical = column.kind == "categorical"
    return explained_variance(own, numbers, n_given) if is_categorical else correlation(own, numbers[:, 0], n_given)


_CORTEX = ("thickness", "area")
_SUBCORTEX = "subcortex"
N_SPINS = 2000
_FOLDER = Path(__file__).parent / "reference_maps"
_SIDES = ["left", "right"]
_LEAST_SHARE = 0.5  # of a Desikan region that the table must cover
_LEAST_REGIONS = 20  # of 34 on each side: fewer do not cover the cortex
_LEAST_STRUCTURES = 5  # on each side
_RESEMBLANCE_COLUMNS = [
    *("pattern", "measure", "disorder", "n_regions", "r", "p", "p_corrected", "chance"),
    *("beyond", "beyond_p", "beyond_p_corrected"),
]
_CHANCE = 97.5  # percentile of the spins that is kept for figures, and that a resemblance must exceed


@cache
def _table(name: str) -> pd.DataFrame:
    return pd.read_csv(_FOLDER / f"{name}.csv")


@cache
def _enigma(measure: str) -> pd.DataFrame:
    """Return the maps of a measure: one row per disorder, one column per side and region."""
    table = _table("enigma")
    own = table[table["measure"] == measure]
    return own.pivot(index="disorder", columns=["side", "region"], values="d").reindex(own["disorder"].unique())


@cache
def spins(regions: tuple[str, ...], n_spins: int = N_SPINS, seed: int = 0) -> np.ndarray:
    """Return which Desikan region takes each one's place in random rotations of a hemisphere ``(spins, regions)``.

    Each region takes the place of exactly one, such that together they move as little as possible beyond the rotation;
    the other hemisphere rotates as the mirror image.

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
    """Return a map of one measure over the Desikan regions, by side and region, from a map over a table's regions.

    Destrieux regions are averaged by their share of each Desikan region. A region without a side counts for both.

    Parameters
    ----------
    changes
        One value per column of the table.
    measure
        ``thickness``, ``area``, or ``subcortex`` for volumes of subcortical structures.

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
    own, is_destrieux = pd.Series(values, dtype=float), any(of.atlas == "destrieux" for of in regions.values())
    return _from_destrieux(own) if len(own) and is_destrieux and measure != _SUBCORTEX else own


def _from_destrieux(values: pd.Series) -> pd.Series:
    shares, means = _table("destrieux_to_desikan"), dict[tuple[str, str], float]()
    for side in _SIDES:
        own = values.get(side, pd.Series(dtype=float))
        weighted = shares.assign(value=shares["part"].map(own)).dropna(subset="value")
        for region, part in weighted.groupby("region"):
            if part["share"].sum() >= _LEAST_SHARE:
                means[side, str(region)] = float(np.average(part["value"], weights=part["share"]))
    return pd.Series(means, dtype=float)


def _standardised(maps: np.ndarray) -> np.ndarray:
    centred = maps - maps.mean(axis=-1, keepdims=True)
    return centred / np.linalg.norm(centred, axis=-1, keepdims=True)


def _without(maps: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Return the standardised remainder of maps that a standardised one does not explain."""
    return _standardised(maps - (maps @ shared)[..., None] * shared)


def _exceeded(found: np.ndarray, spun: np.ndarray) -> np.ndarray:
    """Return the proportion of spins ``(spins, …)`` that correlate at least as strongly as the observed map."""
    return (1 + (spun >= found).sum(axis=0)) / (1 + len(spun))


def _compared(values: np.ndarray, maps: np.ndarray, orders: np.ndarray) -> dict[str, np.ndarray]:
    """Correlate a map ``(sides, regions)`` with others ``(maps, sides × regions)``, also beyond what they share.

    Each correlation is compared with those after spins, with the same map and, to correct p, with any of the maps.
    """
    spun = np.concatenate([values[:, orders[k]].reshape(1, -1) for k in range(len(orders))])
    own, turned, others = _standardised(values.ravel()), _standardised(spun), _standardised(maps)
    shared = _standardised(others.mean(axis=0))
    rest = _without(others, shared)
    r, after_spins = others @ own, turned @ others.T
    beyond, beyond_after_spins = rest @ _without(own, shared), _without(turned, shared) @ rest.T
    largest, beyond_largest = (of.max(axis=1, keepdims=True) for of in (after_spins, beyond_after_spins))
    return {
        "r": r,
        "p": _exceeded(r, after_spins),
        "p_corrected": _exceeded(r, largest),
        "chance": np.percentile(largest, _CHANCE),
        "beyond": beyond,
        "beyond_p": _exceeded(beyond, beyond_after_spins),
        "beyond_p_corrected": _exceeded(beyond, beyond_largest),
    }


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
        one-sided ``p`` against spins and ``p_corrected`` (for the choice of the disorder), ``chance`` (the value that
        the largest correlation over disorders stays below in 39 of 40 spins), and ``beyond``, ``beyond_p``,
        ``beyond_p_corrected``: the same given the mean of all maps. For the subcortex, only a descriptive ``r``.
        Empty if no map is available.
    """
    rows = []
    for pattern, own in patterns.groupby("pattern"):
        changes = own.set_index("region")["change_sd"].astype(float)
        for measure in (*_CORTEX, _SUBCORTEX):
            values, maps = desikan_map(changes, measure), _enigma(measure)
            shared = {*values.index} & {*maps.columns}
            regions = sorted({region for _, region in shared if shared >= {("left", region), ("right", region)}})
            if len(regions) < (_LEAST_STRUCTURES if measure == _SUBCORTEX else _LEAST_REGIONS):
                continue
            wanted = pd.MultiIndex.from_product([_SIDES, regions])
            seen, others = values[wanted].to_numpy().reshape(2, -1), maps[wanted].dropna()
            if not np.ptp(seen):
                continue
            if measure == _SUBCORTEX:
                numbers = {"r": _standardised(others.to_numpy()) @ _standardised(seen.ravel())}
            else:
                numbers = _compared(seen, others.to_numpy(), spins(tuple(regions), n_spins, seed))
            about = {"pattern": pattern, "measure": measure, "disorder": others.index, "n_regions": seen.size}
            rows.append(pd.DataFrame(about | numbers))
    return (pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()).reindex(columns=_RESEMBLANCE_COLUMNS)
