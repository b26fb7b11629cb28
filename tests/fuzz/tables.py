"""The reader of tables: no value that was not touched changes, and nothing but an `InputError` comes of nonsense."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from rindices.cohort import make_cohort
from rindices.problems import InputError
from rindices.tables import text_and_workbook
from rindices.tables.table import read_table
from tests.fuzz.binary_tables import write_parquet, write_workbook
from tests.fuzz.engine import Case, Failure
from tests.fuzz.grids import REGIONS, TEXT_COLUMNS, Grid, change_cells, change_structure, compare, draw_grid, written
from tests.fuzz.mutations import chance, damaged, pick
from tests.schema.contracts import check_people, contract_of

OPTIONS = {"control": "CN", "patients": "AD", "covariates": "age,sex", "site": "site"}


class Tables:
    """Text tables, Parquet files and workbooks, valid and otherwise."""

    n_systematic = 0

    def __init__(self) -> None:
        grid = draw_grid(np.random.default_rng(0))
        content = "\n".join(",".join(cells) for cells in [grid.header, *grid.rows]).encode()
        frame = pd.read_csv(io.BytesIO(content), dtype=dict.fromkeys(TEXT_COLUMNS, str))
        self.contract = contract_of(make_cohort(frame, **OPTIONS))

    def make(self, number: int, rng: np.random.Generator) -> Case:
        """Draw a table, and what happens to it."""
        grid = draw_grid(rng)
        kind = pick(rng, ["neutral", "cells", "cells", "cells", "structure", "bytes", "bytes", "bytes"])
        if kind in ("cells", "bytes") and (kind == "cells" or chance(rng, 0.3)):
            change_cells(grid, rng)
        if kind == "structure":
            change_structure(grid, rng)
        elif chance(rng, 0.25):
            ending, write = pick(rng, [(".xlsx", write_workbook), (".parquet", write_parquet)])
            content = write(grid, rng, harm=kind == "bytes")
            return Case(f"table{ending}", content, tuple(grid.notes), grid if kind != "bytes" else None)
        name, content = written(grid, rng)
        if kind == "bytes":
            content, words = damaged(content, rng)
            if name.endswith(".gz") and chance(rng, 0.5):
                content = gzip.compress(content, 1, mtime=0)
            grid.note(words)
        return Case(name, content, tuple(grid.notes), grid if kind != "bytes" else None)

    def judge(self, case: Case, path: Path) -> str:
        """Read the table, compare what was read, and make a cohort or new people of it."""
        grid: Grid | None = case.expected
        frame = _accepted(grid, read_table, path)
        if frame is None:
            return "refused"
        if grid is not None and grid.exact:
            compare(grid, frame)
        if path.suffix in (".csv", ".tsv", ".txt") and len(case.content) % 4 == 0 and len(frame.columns) < 20:
            _compare_batches(frame, path)
        uses = (lambda frame: make_cohort(frame, **OPTIONS), lambda frame: check_people(frame, self.contract))
        people = _accepted(grid, uses[len(case.content) % 2], frame)
        if people is None:
            return "refused"
        if np.isinf(people.features.to_numpy()).any():
            raise Failure("people with infinite numbers were accepted")
        for name in (name for name in REGIONS if name in people.features):
            read = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float)
            if not np.array_equal(people.features[name].to_numpy(), read, equal_nan=True):
                raise Failure(f"column {name} changed on the way to the people")
        return "read"


def _accepted(grid: Grid | None, use: Callable, given: object) -> Any:
    """Return what is made of a file or table; nothing where it is refused, which a valid one must not be."""
    try:
        return use(given)
    except InputError as error:
        if grid is not None and grid.sound:
            raise Failure(f"a valid table was refused: {error}") from error
        return None


def _compare_batches(frame: pd.DataFrame, path: Path) -> None:
    """Read the table a few rows at a time: this must not change a value or a kind."""
    with mock.patch.object(text_and_workbook, "CELLS", 100):
        pieces = read_table(path)
    if np.isinf(frame.select_dtypes(float)).to_numpy().any():
        return  # numbers of hundreds of digits: infinite or text, they are refused as regions either way
    if not (pieces.equals(frame) and pieces.dtypes.equals(frame.dtypes)):
        raise Failure("read in batches, the table has other values")
