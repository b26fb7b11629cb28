"""Tables in Parquet files, where the package pyarrow is installed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from rindices.files import plain_cells
from rindices.schema.cells import numbers_of, text_of
from rindices.tables.text import CELLS, named_columns


class ParquetFile:
    """A table in a Parquet file; see `rindices.tables.text.TextFile`."""

    decimal_comma = False

    def __init__(self, path: Path, text_columns: Collection[str]) -> None:
        from pyarrow import parquet

        self._file, self._text_columns = parquet.ParquetFile(path, memory_map=True), text_columns
        # pandas stores the index as columns; one that has no name is none of the table's.
        self._stored = [name for name in self._file.schema_arrow.names if not name.startswith("__index_level_")]
        self.names = named_columns(self._stored, path)

    def frames(self) -> Iterator[tuple[float, pd.DataFrame]]:
        """Yield some rows at a time, and the share of the file that was read up to there."""
        start = 0
        for batch in self._file.iter_batches(max(1, CELLS // max(1, len(self.names))), columns=self._stored):
            batch.validate(full=True)  # damaged text would be found only where it is used
            given = batch.to_pandas(ignore_metadata=True).set_axis(self.names, axis=1)
            given.index = pd.RangeIndex(start, start + len(given))
            frame = pd.DataFrame({name: self._cells(given[name]) for name in self.names})
            start += len(given)
            yield start / max(1, self._file.metadata.num_rows), plain_cells(frame.dropna(how="all"))

    def _cells(self, column: pd.Series) -> pd.Series:
        is_text = column.name in self._text_columns or is_bool_dtype(column) or not is_numeric_dtype(column)
        return text_of(column) if is_text else pd.Series(numbers_of(column), index=column.index)
