"""Files into cells of text with their row numbers, once, in batches; nothing here knows of brains."""

from rindices.tables.dictionary import Column, Dictionary, apply_dictionary, read_dictionary, unit_of
from rindices.tables.source import Source, digest_of, join_by_id, read_source
from rindices.tables.table import Table, read_table
from rindices.tables.workbook import file_and_sheet

__all__ = [
    "Column",
    "Dictionary",
    "Source",
    "Table",
    "apply_dictionary",
    "digest_of",
    "file_and_sheet",
    "join_by_id",
    "read_dictionary",
    "read_source",
    "read_table",
    "unit_of",
]
