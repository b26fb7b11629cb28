"""The healthy people that a simulated cohort is made of: drawn from the embedded population, or the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rindices.simulate.reference import ReferencePopulation

N_CONTROLS, N_PATIENTS = 492, 900  # as in the paper
_MOST_PEOPLE = 1_000_000  # of a group: no cohort is larger, and a slip of the keyboard fills the memory
NOT_REGIONS = frozenset({"participant_id", "diagnosis", "age", "sex", "site", "icv", "tiv", "education"})


@dataclass(frozen=True, eq=False)
class HealthyPeople:
    """People before any disease is put in, in random order.

    Attributes
    ----------
    table : DataFrame
        Covariates and regions, one row per person.
    regions : list of str
        Region columns of ``table``.
    n_controls : int
        The first so many rows stay controls, the others become patients.
    """

    table: pd.DataFrame
    regions: list[str]
    n_controls: int


def drawn_people(n_controls: int | None, n_patients: int | None, rng: np.random.Generator) -> HealthyPeople:
    """Draw people from the embedded population.

    Examples
    --------
    >>> drawn_people(10, 20, np.random.default_rng(0)).table.shape
    (30, 130)
    """
    n_controls = N_CONTROLS if n_controls is None else n_controls
    n_patients = N_PATIENTS if n_patients is None else n_patients
    _check_sizes(n_controls, n_patients)
    population = ReferencePopulation.load()
    return HealthyPeople(population.draw(n_controls + n_patients, rng), list(population.regions), n_controls)


def own_people(
    controls: pd.DataFrame,
    regions: Sequence[str] | None,
    n_controls: int | None,
    n_patients: int | None,
    rng: np.random.Generator,
) -> HealthyPeople:
    """Choose people at random from the user's table of controls, without replacement.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [50, 60, 70], "Hip": [3.1, 3.0, 2.9]})
    >>> people = own_people(table, None, None, None, np.random.default_rng(0))
    >>> people.regions, people.n_controls
    (['Hip'], 1)
    """
    names = _region_columns(controls, regions)
    _check_people(controls)
    _check_volumes(controls[names])
    n_controls, n_patients = _split_sizes(len(controls), n_controls, n_patients)
    chosen = rng.permutation(len(controls))[: n_controls + n_patients]
    return HealthyPeople(controls.iloc[chosen].reset_index(drop=True), names, n_controls)


def _region_columns(controls: pd.DataFrame, regions: Sequence[str] | None) -> list[str]:
    repeated = controls.columns[controls.columns.duplicated()].tolist()
    if repeated:
        raise ValueError(f"Expected every column of `controls` once, found {repeated} repeated. Rename or drop them.")
    numeric = [name for name in controls.columns if _is_number(controls[name])]
    if regions is None:
        return [name for name in numeric if str(name).lower() not in NOT_REGIONS]
    missing = [name for name in regions if name not in controls.columns]
    if missing:
        raise ValueError(f"Expected every one of `regions` among the columns of `controls`, {missing} are not there.")
    text = [name for name in regions if name not in numeric]
    if text:
        raise ValueError(f"Expected numbers in the region columns, found other values in {text}. Correct or drop them.")
    return list(dict.fromkeys(regions))


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _check_people(controls: pd.DataFrame) -> None:
    if "participant_id" not in controls.columns:
        return
    ids = controls["participant_id"]
    bad = ids[ids.isna() | ids.duplicated()].tolist()
    if bad:
        found = list(dict.fromkeys("an empty cell" if pd.isna(one) else repr(one) for one in bad))[:5]
        raise ValueError(
            f"Expected one row per person in `controls`, found participant_id missing or repeated: {', '.join(found)}. "
            "Keep one row each, or drop the column to have people numbered."
        )


def _check_volumes(volumes: pd.DataFrame) -> None:
    # Atrophy takes a share of the volume: in scaled values such as z-scores it would have no meaning. A volume of zero
    # stays zero, and a missing one missing; both are left to the user's own analysis.
    values = volumes.to_numpy(dtype=float, na_value=np.nan)
    wrong = (values < 0) | np.isinf(values)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"Expected no negative volumes in `controls`, found {values[row, column]:g} in column "
            f"{volumes.columns[column]!r}, row {row + 2}. Give raw volumes, not scaled ones, correct or leave out such "
            "people, and name the region columns with `regions` where others are taken for them."
        )


def _split_sizes(n_rows: int, n_controls: int | None, n_patients: int | None) -> tuple[int, int]:
    if n_controls is None:
        n_controls = n_rows // 3 if n_patients is None else n_rows - n_patients
    if n_patients is None:
        n_patients = n_rows - n_controls
    if n_controls + n_patients > n_rows or min(n_controls, n_patients) < 1:
        raise ValueError(
            f"Expected at least 1 control and 1 patient, and no more people than the {n_rows} rows of `controls`, "
            f"found {n_controls} controls and {n_patients} patients. Ask for fewer people or give a longer table."
        )
    return n_controls, n_patients


def _check_sizes(n_controls: int, n_patients: int) -> None:
    for name, n in (("n_controls", n_controls), ("n_patients", n_patients)):
        if n < 1:
            raise ValueError(f"Expected {name} to be at least 1, found {n}. Ask for a positive number of people.")
        if n > _MOST_PEOPLE:
            raise ValueError(f"Expected {name} to be at most {_MOST_PEOPLE:,}, found {n:,}. Ask for fewer people.")
