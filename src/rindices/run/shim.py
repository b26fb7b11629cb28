"""Doors of `rindices.cohort` as they will be, on those that are there; to be removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from rindices import cohort as rooms
from rindices.cohort import Cohort, Contract, People
from rindices.errors import InputError
from rindices.settings import ApplySettings, Names, TableSettings


@dataclass(frozen=True, eq=False, repr=False)
class _Cohort(Cohort):
    settings: TableSettings = field(default_factory=TableSettings)
    doi: str | None = None


def _names(text: Names) -> tuple[str, ...]:
    from rindices.cohort.columns import wanted_names

    return wanted_names(text)


def without_codes(frame: pd.DataFrame, missing: Names) -> pd.DataFrame:
    """Return a table in which codes for missing values are gaps."""
    for code in _names(missing):
        column, equals, value = code.rpartition("=")
        names = [column] if equals else [str(name) for name in frame]
        for name in names:
            same = pd.to_numeric(frame[name], errors="coerce") == float(value)
            frame = frame.assign(**{name: frame[name].mask(same)}) if same.any() else frame
    return frame


def read_cohort(
    path: str | Path, settings: TableSettings, *, prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None
) -> _Cohort:
    """Read a cohort."""
    smooth, join = _names(settings.smooth), tuple(map(str, settings.join or ()))  # type: ignore[arg-type]
    pairs = _names(settings.interactions)
    for pair in pairs:
        parts = [name.strip() for name in pair.split(":")]
        if len(parts) != 2 or not all(parts) or parts[0] == parts[1]:
            raise InputError(f"--interactions should be pairs of covariates such as age:sex, found {pair!r}.")
    others = [name for pair in pairs for name in pair.split(":")] + (
        [settings.proportion] if settings.proportion else []
    )
    covariates = tuple(dict.fromkeys([*_names(settings.covariates), *smooth, *others]))
    taken = {settings.id, settings.diagnosis, settings.site, settings.visit, *covariates} - {None}
    clinical = settings.clinical
    if isinstance(clinical, str) and clinical.partition("#")[0].casefold().removesuffix(".gz").endswith(
        (".csv", ".tsv", ".xlsx", ".xlsm", ".parquet")
    ):
        from rindices.cohort.columns import NON_REGION_NAMES

        columns = [str(name) for name in rooms.read_table(clinical, text_columns=(settings.id,))]
        join, table = (*join, clinical), clinical
        clinical = [name for name in columns if name not in taken and name.casefold() not in NON_REGION_NAMES]
        if not clinical:
            raise InputError(f"{table} has no clinical scores: all its columns have another role.")
    resolved = replace(
        settings,
        covariates=covariates,
        smooth=smooth,
        interactions=pairs,
        clinical=_names(clinical),
        join=join,
        missing=_names(settings.missing),
    )
    given: dict[str, Any] = {
        one.name: getattr(resolved, one.name)
        for one in fields(TableSettings)
        if one.name not in ("smooth", "interactions", "unit", "missing")
    }
    if resolved.missing:
        before = prepare or (lambda frame: frame)
        prepare = lambda frame: before(without_codes(frame, resolved.missing))  # noqa: E731
    made = rooms.read_cohort(path, **given, prepare=prepare)
    return _Cohort(**{one.name: getattr(made, one.name) for one in fields(Cohort)}, settings=resolved)


def read_people(
    path: str | Path,
    contract: Contract,
    settings: ApplySettings,
    *,
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[People]:
    """Read new people."""
    if settings.id is not None:
        contract = replace(contract, id_column=settings.id)
    if settings.missing:
        before = prepare or (lambda frame: frame)
        prepare = lambda frame: before(without_codes(frame, settings.missing))  # noqa: E731
    roles: dict[str, Any] = {"exclude": settings.exclude, "new_sites": settings.new_sites}
    whole = settings.visit is not None or settings.clinical or settings.join or settings.drop_missing or prepare
    if not whole:
        yield from rooms.people_in_blocks(path, contract, **roles, progress=progress)
        return
    roles |= {"clinical": settings.clinical, "visit": settings.visit, "drop_missing": settings.drop_missing}
    roles |= {"join": tuple(map(str, settings.join or ()))}  # type: ignore[arg-type]
    yield rooms.read_people(path, contract, **roles, prepare=prepare)
