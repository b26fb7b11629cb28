"""Sources of a table: a file, a BIDS dataset, or several tables of the same people joined by their ids."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from rindices.problems import Blank, InputError, Message, Problem, Remedy, Text, joined, listed
from rindices.schema.role_guesses import id_by_name
from rindices.settings import TableSettings
from rindices.tables.dictionary import Dictionary, read_dictionary
from rindices.tables.several_tables import a_row_each_visit, id_column_of, join_by_id, stacked
from rindices.tables.table import Table, file_and_sheet, labelled_parts
from rindices.tables.text_and_workbook import KINDS_OF_FILES

_PARTICIPANTS, _PHENOTYPE, _SESSION = "participants.tsv", "phenotype", "session_id"


class Source(NamedTuple):
    """A table, what is known about its columns, and the files that were read.

    Attributes
    ----------
    frame
        The table, as returned by `read_table`; empty if it is yet to be read.
    table
        The table that is yet to be read; None if it was read.
    dictionary
        Descriptions of the columns, from JSON files beside the tables and from a data dictionary.
    files
        All files that were read, the main table first.
    notes
        Messages for the user: who was not found in joined tables, how ids were found.
    doi
        DOI of a BIDS dataset, if it has one.
    id_column
        The column with the ids: the one requested, or the table's own.
    """

    frame: pd.DataFrame
    table: Table | None
    dictionary: Dictionary
    files: tuple[Path, ...]
    notes: tuple[Text, ...] = ()
    doi: str | None = None
    id_column: str = TableSettings.id

    @property
    def sha256(self) -> str:
        """SHA-256 of the file, or of several files' digests."""
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files]
        return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


@contextmanager
def with_notes(notes: Sequence[Text]) -> Iterator[None]:
    """Add the notes from joining tables to any error: people who are missing from one of the tables have gaps."""
    try:
        yield
    except InputError as error:
        raise InputError(
            joined([error.message, *notes], "\n"),
            problems=[*error.problems, *map(Problem, notes)],
            remedies=error.remedies,
        ) from error


def table_in_memory(frame: pd.DataFrame, id_column: str) -> pd.DataFrame:
    """Return a table as if it had been read: ids in a column, unique column names as text, at least one row.

    Raises
    ------
    InputError
        If column names are repeated, or the table is empty.
    """
    frame = frame.reset_index() if frame.index.name == id_column and id_column not in frame.columns else frame
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    repeated = frame.columns[frame.columns.duplicated()].unique()
    if len(repeated):
        raise InputError(
            f"Column names must be unique, but these are repeated: {listed(map(repr, repeated))}.\n"
            "Rename or remove the repeated columns."
        )
    if frame.empty:
        raise InputError("The table contains no people.\nIt should have one row per person.")
    return frame


def read_source(
    path: str | Path,
    *,
    id_column: str = TableSettings.id,
    visit_column: str | None = None,
    join: Sequence[str | Path] = (),
    dictionary: str | Path | None = None,
    whole: bool = True,
    diagnosis_column: str = TableSettings.diagnosis,
) -> Source:
    r"""Read a table of people from a file or from a BIDS dataset.

    From a BIDS dataset, `participants.tsv` and all tables in `phenotype/` are read with their JSON files and joined
    by `participant_id`. A phenotype table with several sessions per person needs `visit_column`; if
    `participants.tsv` has one row per person, each session becomes a row.

    Parameters
    ----------
    path
        A table; the folder of a BIDS dataset; its `participants.tsv`; or several labelled tables:
        ``CN=controls.csv,SCZ=patients.csv``. A JSON file of the same name beside a .tsv file is its dictionary.
    id_column, visit_column
        Columns by which tables are joined.
    join
        Further tables of the same people.
    dictionary
        A data dictionary, which takes precedence on the meaning of columns.
    whole
        Whether a single file is read at once; otherwise it is returned as a `Table`, unless something is to be joined.
    diagnosis_column
        Column with the labels, or for those of several tables; like the ids, they stay text.

    Raises
    ------
    InputError
        If a file cannot be read, or does not fit the others.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "phenotype").mkdir()
    ...     _ = Path(folder, "participants.tsv").write_text("participant_id\tage\nsub-01\t61\nsub-02\tn/a\n")
    ...     _ = Path(folder, "phenotype", "mmse.tsv").write_text("participant_id\tmmse\nsub-02\t28\nsub-01\t30\n")
    ...     read_source(folder).frame.to_numpy().tolist()
    [['sub-01', 61.0, 30.0], ['sub-02', nan, 28.0]]
    """
    path, parts = Path(path), labelled_parts(path)
    root = None if parts else _bids_root(path)
    if not whole and root is None and not join and not parts and _sidecar(path) is None:
        later = Table(path, text_columns=(id_column, diagnosis_column))
        guessed = id_column == TableSettings.id and id_column not in later.columns
        by_name = (id_by_name(later.columns) if guessed else None) or id_column
        return Source(pd.DataFrame(), later, Dictionary(), (later.file,), _ids_note(by_name, id_column), None, by_name)
    phenotype = [] if root is None else sorted((root / _PHENOTYPE).glob("[!.]*.tsv"))
    names = {table: f"{_PHENOTYPE}/{table.name}" for table in phenotype} | {Path(one): Path(one).name for one in join}
    main = [part.path for part in parts] or [path if root is None else root / _PARTICIPANTS]
    people = [_read(table, (id_column, diagnosis_column)) for table in main]
    others = {table: _read(table, (id_column, diagnosis_column)) for table in names}
    frame = people[0].frame
    own = id_column_of(frame, id_column) if id_column == TableSettings.id else id_column
    notes: list[Text] = [*(note for one in people for note in one.notes), *_ids_note(own, id_column)]
    if parts:
        frame, said = stacked(parts, [one.frame for one in people], own, diagnosis_column)
        notes += said
    if visit_column is not None and visit_column not in frame.columns and others and own in frame.columns:
        keys = [own, visit_column]
        of_visits = {names[table]: others[table].frame for table in phenotype if {*keys} <= {*others[table].frame}}
        frame, repeated = a_row_each_visit(frame, of_visits, keys, main[0].name)
        notes += repeated
    for table, other in others.items():
        by = next((name for name in (visit_column, _SESSION) if name in other.frame.columns), None)
        frame, said = join_by_id(frame, other.frame, own, by, source=names[table])
        notes += [*other.notes, *said]
    every = [*people, *others.values()]
    described = Dictionary({name: one for read in reversed(every) for name, one in read.dictionary.items()})
    files = tuple(file for read in every for file in read.files)
    if dictionary is not None:
        described, files = Dictionary(described | read_dictionary(dictionary)), (*files, file_and_sheet(dictionary)[0])
    return Source(frame, None, described, files, tuple(notes), _doi(root), own)


def _ids_note(found: str, asked: str) -> tuple[Text, ...]:
    """Report which column has the ids, if it is not the one requested."""
    note = Message(f"Ids are read from column {found!r}; to use another, specify ", Remedy("id", Blank("COLUMN")), ".")
    return () if found == asked else (note,)


def _bids_root(path: Path) -> Path | None:
    """Return the folder of the BIDS dataset that a path refers to; None for any other table."""
    if path.is_dir() and not (path / _PARTICIPANTS).is_file():
        raise InputError(
            f"The folder {path} has no {_PARTICIPANTS}, so it is not a BIDS dataset.\n"
            f"Provide a {KINDS_OF_FILES} file, or the folder of a BIDS dataset. If this folder contains the output of "
            "FreeSurfer, SynthSeg or another program, convert that output to a table with rindices gather."
        )
    is_table = path.name == _PARTICIPANTS and path.is_file()
    return path if path.is_dir() else path.parent if is_table else None


def _read(path: Path, text_columns: Sequence[str]) -> Source:
    """Return a table with the dictionary beside it, the files that were read, and notes about its rows."""
    table, sidecar = Table(path, text_columns=text_columns), _sidecar(path)
    asked = TableSettings.id in text_columns and TableSettings.id not in table.columns
    ids = id_by_name(table.columns) if asked else None  # such as MRID, which stays text, too: 1.10 is not 1.1
    frame = table.read(() if ids is None else (ids,))
    dictionary = Dictionary() if sidecar is None else read_dictionary(sidecar)
    return Source(frame, None, dictionary, tuple(filter(None, (table.file, sidecar))), table.notes)


def _sidecar(path: Path) -> Path | None:
    """Return the JSON file of the same name beside a .tsv file, if it contains an object; a list is unrelated."""
    sidecar = path.with_suffix(".json")
    beside = path.suffix.lower() == ".tsv" and sidecar.is_file()
    return sidecar if beside and sidecar.read_bytes().lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else None


def _doi(root: Path | None) -> str | None:
    file = None if root is None else root / "dataset_description.json"
    text = "" if file is None or not file.is_file() else file.read_text(encoding="utf-8-sig", errors="replace")
    doi = re.search(r'"DatasetDOI"\s*:\s*"([^"]+)"', text)
    return None if doi is None else doi[1]
