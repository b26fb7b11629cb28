"""Tables in Parquet files, where the package pyarrow is installed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from rindices.files import plain_cells
from rindices.schema.cells import numbers_of
from rindices.tables.text import CELLS, named_columns

__all__ = ["ParquetFile"]


class ParquetFile:
    """A table in a Parquet file; see `rindices.tables.text.TextFile`."""

    decimal_comma = False

    def __init__(self, path: Path, text_columns: Collection[str]) -> None:
        from pyarrow import parquet

        self._text_columns = text_columns
        self._file = parquet.ParquetFile(path, memory_map=True)
        header = _with_index(self._file.schema_arrow.empty_table().to_pandas())
        self.names = named_columns([str(name) for name in header.columns], path)

    def frames(self) -> Iterator[tuple[float, pd.DataFrame]]:
        """Yield some rows at a time, and the share of the file that was read up to there."""
        start = 0
        for batch in self._file.iter_batches(max(1, CELLS // max(1, len(self.names)))):
            batch.validate(full=True)  # damaged text would be found only where it is used
            given = _with_index(batch.to_pandas()).set_axis(self.names, axis=1)
            given.index = pd.RangeIndex(start, start + len(given))
            frame = pd.DataFrame({name: _cells(given[name], name in self._text_columns) for name in self.names})
            start += len(given)
            yield start / max(1, self._file.metadata.num_rows), plain_cells(frame.dropna(how="all"))


def _cells(column: pd.Series, as_text: bool) -> pd.Series:
    if is_numeric_dtype(column) and not is_bool_dtype(column) and not as_text:
        return pd.Series(numbers_of(column), index=column.index)
    cells = zip(column.isna(), column, strict=True)
    return pd.Series([np.nan if gap else str(cell).strip() or np.nan for gap, cell in cells], column.index, object)


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(level=named) if named else frame
