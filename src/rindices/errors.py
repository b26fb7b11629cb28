"""The one error for users' mistakes, the one for lost workers, and the few phrases that messages share."""

from __future__ import annotations

import difflib
import os
import shlex
import traceback
from collections.abc import Iterable, Sequence

__all__ = ["InputError", "LostWorkers", "counted", "did_you_mean", "excluding", "listed", "shown", "without_data"]


class InputError(ValueError):
    """A mistake in what the user gave: a table, a column name, a label.

    The message is one to four lines of plain text: what was expected, what was found, what to do.

    Examples
    --------
    >>> str(InputError("The table has no column 'age'."))
    "The table has no column 'age'."
    """


class LostWorkers(RuntimeError):
    """Workers died again and again, and nothing could be trained in between."""


def listed(names: Iterable[object], limit: int = 6, joiner: str = ", ") -> str:
    """Return the first few names and how many were left out.

    Examples
    --------
    >>> listed(["a", "b", "c", "d"], limit=2)
    'a, b and 2 more'
    """
    words = [str(name) for name in names]
    left_out = len(words) - limit
    return joiner.join(words[:limit]) + (f" and {left_out} more" if left_out > 0 else "")


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun in the right form.

    Examples
    --------
    >>> counted(1, "row"), counted(2, "row"), counted(2, "person", "people")
    ('1 row', '2 rows', '2 people')
    """
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def did_you_mean(name: str, options: Sequence[str]) -> str:
    """Return a suggestion such as `` Did you mean 'age'?``, or nothing when no option is near.

    Examples
    --------
    >>> did_you_mean("Age", ["age", "sex"])
    " Did you mean 'age'?"
    """
    by_folded = {option.casefold(): option for option in reversed(options)}
    near = difflib.get_close_matches(name.casefold(), list(by_folded), n=2, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(by_folded[match]) for match in near)}?" if near else ""


def excluding(names: Sequence[str], limit: int = 20, *, option: str = "--exclude") -> str:
    """Return the option that leaves columns out, or another one that names columns, as it is to be typed.

    Examples
    --------
    >>> excluding(["lHip", "rHip"]), excluding(["Left Hippocampus"])
    ('--exclude lHip,rHip', "--exclude 'Left Hippocampus'")
    >>> excluding(["Hippocampus, left"])
    "--exclude (first rename 'Hippocampus, left': a comma parts two names there)"
    """
    apart = [name for name in names if "," in name]
    if apart:
        return f"{option} (first rename {listed(map(repr, apart), 2)}: a comma parts two names there)"
    return f"{option} {shlex.quote(','.join(names[:limit]))}"


def shown(value: object) -> str:
    """Return a value as a person would write it: ``61``, ``0.25``, ``1975510``.

    Examples
    --------
    >>> shown(61.0), shown(0.123456), shown(1975510.4), shown("AD")
    ('61', '0.1235', '1975510', 'AD')
    """
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def without_data(error: BaseException) -> str:
    """Return what a log or a record may say about an error: of what kind it is, and where it arose.

    Messages of most errors may quote ids and cells of a table, so they are for the user's terminal only. What the
    system and the device say of themselves is kept.

    Examples
    --------
    >>> without_data(RuntimeError("the device went away")), without_data(KeyError("sub-01"))
    ('RuntimeError: the device went away', 'KeyError')
    """
    kind = type(error).__name__
    if isinstance(error, OSError):  # its message may have the name of a file, and that an id
        return f"{kind}: {os.strerror(error.errno)}" if error.errno else kind
    if isinstance(error, RuntimeError | MemoryError) and str(error):
        return f"{kind}: {error}"
    here = os.path.dirname(__file__)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(here)]
    return f"{kind} in {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else kind
