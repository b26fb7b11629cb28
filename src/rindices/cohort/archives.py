"""Is a file an Excel workbook, and one that can be opened without fear? Asked before anything in it is unpacked."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from rindices.errors import InputError

__all__ = ["LARGEST_RATIO", "check_workbook", "has_formulas"]

_OLD_OR_LOCKED = b"\xd0\xcf\x11\xe0"  # of .xls files, and of workbooks with a password
_SHEETS = "xl/worksheets/"
_SAVE_AGAIN = "Open it in the spreadsheet program and save it again, or save the table as 'CSV UTF-8'."
# Sheets are read row by row; all else, such as the list of texts, is held in memory. Excel's own files are far smaller.
_MOST_IN_SHEETS, _MOST_ELSEWHERE = 1_000_000_000, 100_000_000
_LARGE = 10_000_000
# Tables of measures pack to a half or a tenth, parts of workbooks to a fiftieth: the rest was made to fill a memory.
LARGEST_RATIO = 200


def check_workbook(path: Path) -> None:
    """Refuse what is no workbook, or one that unpacks to more than any table of people."""
    with path.open("rb") as file:
        first = file.read(4)
    if first == _OLD_OR_LOCKED:
        raise InputError(
            f"{path.name} is protected by a password, or of Excel's old format (.xls).\n"
            "In the spreadsheet program remove the password, and save it as 'Excel workbook (.xlsx)'."
        )
    if first[:2] != b"PK":
        text = first and not any(sign < 9 for sign in first)
        raise InputError(
            f"{path.name} is no Excel workbook{', but looks like text' if text else ''}.\n"
            + ("Give it the extension of its kind: .csv, .tsv or .txt." if text else _SAVE_AGAIN)
        )
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path.name} is no complete Excel workbook: {error}.\n{_SAVE_AGAIN}") from error
    names = {part.filename for part in parts}
    if not any(name.startswith("xl/") for name in names):
        raise InputError(
            f"{path.name} is an archive, but no Excel workbook.\n"
            "Unpack it, or save the table as .xlsx or 'CSV UTF-8' in the spreadsheet program."
        )
    sheets = sum(part.file_size for part in parts if part.filename.startswith(_SHEETS))
    others = sum(part.file_size for part in parts) - sheets
    packed = [part.file_size > max(_LARGE, LARGEST_RATIO * part.compress_size) for part in parts]
    if sheets > _MOST_IN_SHEETS or others > _MOST_ELSEWHERE or any(packed):
        raise InputError(
            f"{path.name} unpacks to {(sheets + others) / 1e6:,.0f} MB, more than a table of people should need.\n"
            "Leave out pictures and other sheets, or save the table as 'CSV UTF-8' in the spreadsheet program."
        )


def has_formulas(path: Path) -> bool:
    """Tell whether any sheet has a formula."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith(_SHEETS) and name.endswith(".xml"):
                with archive.open(name) as sheet:
                    before = b""
                    while piece := sheet.read(1 << 20):
                        if re.search(rb"<(?:\w{1,20}:)?f[\s/>]", before[-30:] + piece):
                            return True
                        before = piece
    return False
