"""What all readers of a run folder share: an error that names the file, the trouble and the remedy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

REMEDY = "Give the folder of a finished run, or make the run again with `rindices fit ... --overwrite`."
NUMBER = (int, float)
MAYBE_NUMBER = (int, float, type(None))

Kinds = Mapping[str, type | tuple[type, ...]]


def damaged(path: Path, trouble: str) -> ValueError:
    """Return the error for a file that is there but cannot be used."""
    return ValueError(f"{path.name} in {path.parent} cannot be used: {trouble}. {REMEDY}")


def read_text(path: Path) -> str:
    """Return the text of a file; one that is missing or not UTF-8 is a ``ValueError``."""
    if not path.is_file():
        raise ValueError(f"{path.name} is missing in {path.parent}. {REMEDY}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise damaged(path, f"it is not UTF-8 text (byte {error.start})") from error


def check_values(path: Path, values: Mapping[str, Any], kinds: Kinds, *, required: bool, of: str = "") -> None:
    """Refuse named values that are of another kind than expected, or missing where `required`.

    Parameters
    ----------
    path
        The file they come from.
    values
        What was found.
    kinds
        The types of each name. ``None`` is the same as missing where `required` is false.
    required
        Whether every name must be there.
    of
        The name of the part of the file, for the message.
    """
    suffix = f" of {of!r}" if of else ""
    for name, kind in kinds.items():
        value = values.get(name)
        if value is None and not required:
            continue
        if name not in values:
            raise damaged(path, f"{name!r}{suffix} is missing")
        allowed = kind if isinstance(kind, tuple) else (kind,)
        # In Python a truth value counts as a whole number; in a file it does not.
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise damaged(path, f"{name!r}{suffix} has the unexpected value {value!r}")


def check_rows(path: Path, rows: Any, kinds: Kinds, *, of: str) -> None:
    """Refuse a list whose entries are not objects with the named values, all of them required."""
    for row in rows or []:
        if not isinstance(row, dict):
            raise damaged(path, f"{of!r} has the unexpected entry {row!r}")
        check_values(path, row, kinds, required=True, of=of)
