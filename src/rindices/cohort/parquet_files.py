"""Tables in Parquet files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from rindices.cohort.headers import named_columns
from rindices.errors import InputError

__all__ = ["ParquetFile"]

CELLS = 2_000_000  # at a time


class ParquetFile:
    """A table in a Parquet file; the attributes are those of `rindices.cohort.kinds.RowSource`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _failures_told(path):
            header = self._frame(self._open().schema_arrow.empty_table())
        self.names, _ = named_columns([str(name).strip() for name in header.columns], path)
        self.unnamed, self.zeros, self.decimal_comma = list[str](), list[str](), False
        self.has_commas, self.is_text = False, False

    def frames(self, columns: Collection[str] | None = None, as_text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """Yield the rows, block after block; what is a number in the file is one, also in `as_text`."""
        start = 0
        with _failures_told(self.path):
            for batch in self._open().iter_batches(max(1, CELLS // max(1, len(self.names)))):
                batch.validate(full=True)  # damaged text would be found only where it is used
                frame = self._frame(batch).set_axis(self.names, axis=1)
                frame.index = pd.RangeIndex(start, start + len(frame))
                start += len(frame)
                yield frame if columns is None else frame[list(columns)]

    def _open(self) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(self.path, memory_map=True)

    @staticmethod
    def _frame(batch: Any) -> pd.DataFrame:
        frame = batch.to_pandas()
        named = [name for name in frame.index.names if name is not None and name not in frame.columns]
        return frame.reset_index(level=named) if named else frame


@contextmanager
def _failures_told(path: Path) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"Reading {path.name} needs the package pyarrow, which is not installed.\n"
            "Install it with: pip install 'rindices[parquet]', or save the table as .csv."
        ) from error
    except InputError:
        raise
    except (ValueError, OSError, NotImplementedError) as error:
        raise InputError(
            f"{path.name} is not a readable Parquet file.\nSave it again, or save the table as .csv."
        ) from error
