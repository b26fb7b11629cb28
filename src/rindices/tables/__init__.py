"""Files as tables of cells with row numbers, read once and in batches, and the output of other programs."""

from rindices.tables.dictionary import Column, Dictionary, apply_dictionary, unit_of, with_missing_codes
from rindices.tables.several_tables import id_column_of, join_by_id
from rindices.tables.source import Source, read_source, table_in_memory, with_notes
from rindices.tables.table import Part, Table, files_of, labelled_parts, path_of_tables, read_table, require_column

__all__ = [
    "Column",
    "Dictionary",
    "Part",
    "Source",
    "Table",
    "apply_dictionary",
    "files_of",
    "id_column_of",
    "join_by_id",
    "labelled_parts",
    "path_of_tables",
    "read_source",
    "read_table",
    "require_column",
    "table_in_memory",
    "unit_of",
    "with_missing_codes",
    "with_notes",
]
