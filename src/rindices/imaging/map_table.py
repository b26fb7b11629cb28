"""The table that says which image belongs to whom."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices.files import plain
from rindices.problems import InputError, Remedy, counted, did_you_mean, listed

_ID, _VISIT, _PATH = "participant_id", "visit", "path"
_OTHER_NAMES = {"map": _PATH, "file": _PATH}
_MISSING = {"", "na", "n/a", "nan", "none"}


class MapTable(NamedTuple):
    """A checked table of people and their maps, and how messages call it."""

    table: pd.DataFrame
    name: str

    def file(self, position: int) -> tuple[Path, str]:
        """Return the path in a row, and what messages call that row."""
        return Path(self.table[_PATH].iloc[position]), f"Row {self.table.index[position]} of {self.name}"


def read_map_table(path: str | Path) -> pd.DataFrame:
    r"""Read a table of people and their maps from a .csv or .tsv file.

    Parameters
    ----------
    path
        Its columns: ``participant_id``, ``visit`` (optional) and ``path`` (also called ``map`` or ``file``), relative
        to the folder of the table. Others are ignored.

    Returns
    -------
    DataFrame
        ``participant_id``, ``visit`` (where there is one) and ``path``, as text; "" for people without a map. The index
        says in which row of the file, the header being row 1.

    Raises
    ------
    InputError
        If the file or a column is missing, or a person has two maps.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "maps.csv")
    ...     _ = table.write_text("participant_id;map\n007;grey/007.nii.gz\n")
    ...     found = read_map_table(table)
    >>> found["participant_id"].tolist(), Path(found["path"][2]).name
    (['007'], '007.nii.gz')
    """
    path = Path(path)
    try:
        header = path.read_text(encoding="utf-8-sig").partition("\n")[0]
        separator = max(",", ";", "\t", key=header.count)
        table = plain(pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as a table of images.\nCheck the name given with ", Remedy("maps"), ", a .csv file."
        ) from error
    return _checked(table, path.parent, path.name)


def map_table(maps: pd.DataFrame | str | Path) -> MapTable:
    """Return the table of a file, or check one that is given; its paths are relative to the working folder."""
    if isinstance(maps, pd.DataFrame):
        return MapTable(_checked(maps, Path(), "maps"), "maps")
    return MapTable(read_map_table(maps), Path(maps).name)


def _checked(table: pd.DataFrame, folder: Path, name: str) -> pd.DataFrame:
    names = {str(column): _OTHER_NAMES.get(str(column).strip().lower(), str(column).strip()) for column in table}
    problem = "" if len(table) else "has a header but no rows."
    for needed in (_ID, _PATH):
        columns = [column for column, meaning in names.items() if meaning == needed]
        if not columns:
            problem = f"has no column {needed!r}.{did_you_mean(needed, list(names))}"
        elif len(columns) > 1:
            problem = f"has {listed(map(repr, columns))}."
    if problem:
        raise InputError(
            f"{name} should have one column {_ID!r} and one column {_PATH!r}; it {problem}\n"
            "Each row assigns an image to a person."
        )
    renamed = table.set_axis(list(names.values()), axis=1)
    columns = [column for column in (_ID, _VISIT, _PATH) if column in renamed]
    checked = pd.DataFrame({column: as_text(renamed[column]) for column in columns}, index=range(2, len(table) + 2))
    repeated = checked.duplicated(columns[:-1], keep=False)
    if repeated.any():
        rows = checked.index[repeated & (checked[_ID] == checked.loc[repeated, _ID].iloc[0])]
        raise InputError(
            f"{name} should have one map per person{' and visit' if _VISIT in columns else ''}, but rows "
            f"{listed(rows, joiner=' and ')} belong to {checked[_ID][rows[0]]!r}.\nKeep one of them."
        )
    missing = checked[_PATH].str.lower().isin(_MISSING)
    checked[_PATH] = ["" if none else str(folder / cell) for cell, none in zip(checked[_PATH], missing, strict=True)]
    paths = checked[_PATH][~missing]
    if paths.duplicated().any():
        rows = paths.index[paths == paths[paths.duplicated()].iloc[0]]
        raise InputError(
            f"{name} gives the same image to rows {listed(rows, joiner=' and ')}: {paths[rows[0]]}.\n"
            "Every person should have a separate image."
        )
    return checked


def rows_of(maps: MapTable, people: pd.DataFrame) -> np.ndarray:
    """Return for each person the position of their row in a checked table of maps; −1 for who has no map.

    Parameters
    ----------
    maps
        From `map_table`.
    people
        ``participant_id`` and, where there are visits, ``visit``; one row per person.

    Raises
    ------
    InputError
        If nobody has a map, or a person has several and the visit is not known.
    """
    table, name = maps
    by = [column for column in (_ID, _VISIT) if column in table and column in people]
    twice = table.loc[table.duplicated(by), _ID]
    if len(twice):
        raise InputError(
            f"{name} has maps of several visits of {counted(twice.nunique(), 'person', 'people')}, such as "
            f"{twice.iloc[0]!r}, but the run has no visits.\nKeep only the visit used in the run."
        )
    wanted = pd.MultiIndex.from_frame(pd.DataFrame({column: as_text(people[column]) for column in by}))
    rows = pd.MultiIndex.from_frame(table[by]).get_indexer(wanted)
    rows[(rows >= 0) & (table[_PATH].to_numpy()[rows] == "")] = -1
    if (rows < 0).all():
        keys = [repr("/".join(map(str, key))) for key in (table[by].iloc[0], wanted[0])]
        raise InputError(
            f"{name} has no map of anyone in the run: its ids look like {keys[0]}, those of the run like {keys[1]}.\n"
            f"Make the columns {listed(by, joiner=' and ')} the same in both."
        )
    return rows


def as_text(values: pd.Series) -> list[str]:
    """Return identifiers as text without spaces around; a visit 1.0 is the visit 1."""
    whole = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    return ["" if pd.isna(value) else str(value).strip() for value in whole]
