"""MUSE volumes: the regions of the atlas, and the 72 inputs of the authors' published models.

The inputs are the five single regions 35, 71, 72, 73 and 95, then the sums of left and right of all paired regions in
ascending order (23+30, 31+32, 36+37, ...). The ventricles (4, 11, 49 to 52) are left out. Volumes are in mm³.

A sum is named after its numbers and the region, ``MUSE_47+48 hippocampus``, as is a single region: ``MUSE_35 brain
stem``.
"""

import re
from collections import defaultdict

import numpy as np
import pandas as pd

from rindices.problems import InputError, Remedy, counted, listed, listed_rows, shown
from rindices.regions import KnownColumn, atlas_meanings, plain_name, split_side
from rindices.schema import MOST_MISSING
from rindices.schema.cells import spreadsheet_rows, typed
from rindices.value_kinds import Names, expand_names, wanted_names

MUSE72 = "muse72"  # the word that stands for the recipe on the command line
HEAD_SIZE = "MUSE_Volume_702"  # the intracranial volume
UNIT = "mm3"
# The 72 regions together are the brain without ventricles: 0.7 to 1.8 litres in adults, with room for small heads.
_LEAST_BRAIN, _LARGEST_BRAIN = 4e5, 3e6
_ML = 1000.0
_LARGEST_HEAD = 3e6  # mm³
# MUSE_Volume_47, H_MUSE_Volume_47 (harmonised), DL_MUSE_Volume_47 (DLMUSE), MUSE_47, 47; not residuals and the like.
_NUMBERED = re.compile(r"(?:(?:h_|dl_|raw_)*(?:dl)?muse_(?:volume_|vol_)?)?(\d{1,3})")
# The regions of the atlas by number, and their numbers.
MUSE_REGIONS = dict(sorted((key, region) for key, region in atlas_meanings("muse").items() if isinstance(key, int)))
_NUMBER_OF: dict[KnownColumn | None, int] = {region: number for number, region in MUSE_REGIONS.items()}
# Names of inputs are MUSE's own, which differ from those of the atlas here.
_AS_IN_MUSE = {
    "nucleus accumbens": "accumbens area",
    "cerebellar cortex": "cerebellum exterior",
    "cerebellar white matter": "cerebellum white matter",
    "thalamus": "thalamus proper",
}


def _recipe() -> dict[str, tuple[int, ...]]:
    numbers = defaultdict(list)
    for number, region in MUSE_REGIONS.items():
        if "ventricle" not in region.what:
            numbers[_AS_IN_MUSE.get(region.what, region.what)].append(number)
    ordered = sorted(numbers.items(), key=lambda item: (len(item[1]), item[1]))
    return {f"MUSE_{'+'.join(map(str, group))} {name}": tuple(group) for name, group in ordered}


_RECIPE = _recipe()
MUSE72_NAMES = tuple(_RECIPE)


def muse72(table: pd.DataFrame, *, complete: bool = True) -> pd.DataFrame:
    """Return the 72 inputs of the published models from a table of MUSE or DLMUSE volumes.

    Parameters
    ----------
    table
        One row per person. Columns are called ``MUSE_Volume_47``, ``H_MUSE_Volume_47``, ``DL_MUSE_Volume_47``, ``47``
        or ``Right Hippocampus``; case, spaces, points and underscores do not matter. Other columns are ignored.
    complete
        Whether all regions are required; if not, up to a fifth of the 72 may be missing, as in another segmentation.

    Returns
    -------
    DataFrame
        The 72 regions, or those that are available, in order, in mm³, with the table's index. Volumes in mL are
        converted.

    Raises
    ------
    InputError
        If regions are missing or duplicated, or the values are not volumes in mm³ or mL.

    Examples
    --------
    >>> table = pd.DataFrame({f"MUSE_Volume_{number}": [8500.0] for number in MUSE_REGIONS})
    >>> muse72(table)["MUSE_47+48 hippocampus"].tolist()
    [17000.0]
    """
    column_of = _find(table)
    inputs = {name: group for name, group in _RECIPE.items() if {*group} <= column_of.keys()}
    n_missing, wanted = len(_RECIPE) - len(inputs), sorted(number for group in _RECIPE.values() for number in group)
    if n_missing > (0 if complete else MOST_MISSING * len(_RECIPE)):
        missing = [f"{number} ({MUSE_REGIONS[number].title})" for number in wanted if number not in column_of]
        seen = (
            f"MUSE columns found: {listed(column_of.values(), limit=2)}."
            if column_of
            else "No column looks like a MUSE region."
        )
        most = (
            ""
            if complete
            else f" As a result, {n_missing} of the {len(_RECIPE)} inputs are missing, more than a fifth of the total."
        )
        raise InputError(
            f"The table lacks {len(missing)} of {len(wanted)} MUSE regions: {listed(missing, limit=10)}.{most}\n"
            f"{seen}\nUse column names such as MUSE_Volume_47, H_MUSE_Volume_47, 47 or Right Hippocampus."
        )
    wanted = sorted(number for group in inputs.values() for number in group)
    volumes = typed(table[[column_of[number] for number in wanted]])
    _refuse_text(volumes)
    by_number = dict(zip(wanted, volumes.to_numpy(np.float64).T, strict=True))
    sums = np.stack([np.sum([by_number[number] for number in group], axis=0) for group in inputs.values()], axis=1)
    return pd.DataFrame(sums * _factor(sums, table), index=table.index, columns=list(inputs))


def with_muse72(
    table: pd.DataFrame, exclude: Names = (), *, complete: bool = False, covariates: Names = ()
) -> pd.DataFrame:
    """Return the table with its MUSE columns replaced by the 72 inputs; other columns stay.

    Sums of regions that MUSE also writes (``MUSE_Volume_601`` and the like) are dropped with the rest, except for the
    intracranial volume (702) if it is a covariate; like the regions, it is converted if it is in mL.

    Parameters
    ----------
    table
        As for `muse72`. A table that already has the 72 inputs is returned as it is.
    exclude
        Columns to leave out first: names, patterns or a file with names.
    complete
        As for `muse72`.
    covariates
        Names of covariates. If one of them is MUSE's intracranial volume, the table's column with it is kept under that
        name.
    """
    columns = [str(name) for name in table.columns]
    table = table.set_axis(columns, axis=1).drop(columns=list(expand_names(exclude, columns, source="exclude")))
    if set(MUSE72_NAMES) <= set(table.columns):
        return table
    rest = table[[name for name in table.columns if _number(name) is None]]
    for wanted in filter(is_head_size, wanted_names(covariates)):
        heads = [name for name in table.columns if is_head_size(name)]
        if wanted in heads or len(heads) == 1:
            sizes = pd.to_numeric(table[wanted if wanted in heads else heads[0]], errors="coerce")
            rest = rest.assign(**{wanted: sizes * (_ML if sizes.median() * _ML <= _LARGEST_HEAD else 1.0)})
    return pd.concat([rest, muse72(table, complete=complete)], axis=1)


def is_head_size(column: str) -> bool:
    """Return whether a column holds MUSE's intracranial volume.

    Examples
    --------
    >>> is_head_size("DL_MUSE_Volume_702"), is_head_size("MUSE_Volume_701")
    (True, False)
    """
    return _number(column) == _number(HEAD_SIZE)


def _number(column: str) -> int | None:
    """Return the number of the region that a column holds, or of a sum of regions; None for other columns."""
    tidy = re.sub(r"[\s.\-]+", "_", column.strip().casefold())
    if numbered := _NUMBERED.fullmatch(tidy):
        return int(numbered[1])
    side, name = split_side(re.sub(r" volume$", "", " ".join(re.findall(r"[a-z0-9]+", column.casefold()))))
    return _NUMBER_OF.get(atlas_meanings("muse").get((side, plain_name(name))))


def _find(table: pd.DataFrame) -> dict[int, str]:
    columns_of = defaultdict(list)
    for column in table.columns:
        if (number := _number(str(column))) is not None:
            columns_of[number].append(column)
    for number in (number for group in _RECIPE.values() for number in group):
        if len(columns_of[number]) > 1:
            raise InputError(
                f"MUSE region {number} ({MUSE_REGIONS[number].title}) is in {len(columns_of[number])} columns: "
                f"{listed(columns_of[number])}.\n"
                "Keep either the raw or the harmonised volumes, and exclude the others with ",
                Remedy("exclude"),
                ".",
            )
    return {number: columns[0] for number, columns in columns_of.items() if columns}


def _refuse_text(volumes: pd.DataFrame) -> None:
    for name, column in volumes.items():
        if column.dtype.kind != "f" and column.notna().any():
            row = int(np.flatnonzero(column.notna() & pd.to_numeric(column, errors="coerce").isna())[0])
            raise InputError(
                f"Column {name!r} should contain volumes, but row {spreadsheet_rows(volumes)[row]} contains the text "
                f"{column.iloc[row]!r}.\nCorrect the cell."
            )


def _factor(sums: np.ndarray, table: pd.DataFrame) -> float:
    """Return the factor that converts the volumes to mm³; the size of the whole brain reveals the unit."""
    brains = sums.sum(axis=1)
    if np.isnan(brains).all():
        return 1.0  # missing values are reported later, by column and person
    typical = float(np.nanmedian(brains))
    factor = next((factor for factor in (1.0, _ML) if _LEAST_BRAIN <= typical * factor <= _LARGEST_BRAIN), None)
    if factor is None:
        raise InputError(
            f"The median total volume of the 72 MUSE regions is {shown(typical)}, but that of a whole brain is about "
            "1,100,000 mm³ or 1,100 mL.\n"
            "Provide uncorrected, unscaled volumes in mm³ or mL as written by MUSE, not voxel counts."
        )
    in_other_unit = brains * (_ML if factor == 1.0 else 1.0)
    strange = (in_other_unit >= _LEAST_BRAIN) & (in_other_unit <= _LARGEST_BRAIN)
    if strange.any():
        raise InputError(
            f"Most people's volumes are in {'mm³' if factor == 1.0 else 'mL'}, but those of "
            f"{counted(int(strange.sum()), 'person', 'people')} are in a different unit: "
            f"{listed_rows(spreadsheet_rows(table)[strange])}.\n"
            "Use the same unit for everyone."
        )
    return factor
