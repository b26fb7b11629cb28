"""The one error for users' mistakes and its one renderer, and the few phrases that messages share.

A message never names an option of the command line. It mentions a setting by `setting`, and whoever shows the message
says how that is written: ``drop_missing=True`` in Python, as an option on the command line.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

__all__ = [
    "InputError",
    "LostWorkers",
    "OutsideTraining",
    "Problem",
    "Value",
    "counted",
    "did_you_mean",
    "in_python",
    "listed",
    "refusal",
    "setting",
    "shown",
    "without_data",
    "worded",
]

Value = bool | int | float | str | list[str] | None
_MENTION = re.compile("\ue000(\\w+)\ue001([^\ue002]*)\ue002")


def setting(name: str, value: Value = None) -> str:
    """Return a mention of a setting, with the value it should have, for a message.

    Examples
    --------
    >>> worded(f"Leave them out with {setting('drop_missing', True)} or {setting('exclude', ['lHip'])}.")
    "Leave them out with drop_missing=True or exclude=['lHip']."
    """
    return f"\ue000{name}\ue001{json.dumps(value)}\ue002"


def in_python(name: str, value: Value) -> str:
    """Write a setting as an argument of a Python function."""
    return f"`{name}`" if value is None else f"{name}={value!r}"


def worded(message: str, wording: Callable[[str, Value], str] = in_python) -> str:
    """Return a message in which every mention of a setting is written in one way."""
    return _MENTION.sub(lambda found: wording(found[1], json.loads(found[2])), message)


class Problem(NamedTuple):
    """Something that is wrong with a table.

    Attributes
    ----------
    text
        What is wrong, and where: column, row, value.
    remedies
        What would help, each a phrase such as "fill in the cells".
    columns
        The columns that it concerns.
    """

    text: str
    remedies: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


class InputError(ValueError):
    """A mistake in what the user gave: a table, a column name, a label.

    The message is a few lines of plain text: what was expected, what was found, what to do. As text it speaks of
    settings as Python does; `message` is what `worded` can say otherwise.

    Parameters
    ----------
    message
        The message; mentions of settings are made by `setting`.
    problems, remedies
        What is wrong and what would help, as data, where it is a table.

    Examples
    --------
    >>> str(InputError(f"The table has no column 'age'. Give another with {setting('covariates')}."))
    "The table has no column 'age'. Give another with `covariates`."
    """

    def __init__(self, message: str, problems: Sequence[Problem] = (), remedies: Sequence[str] = ()) -> None:
        super().__init__(worded(message))
        self.message, self.problems, self.remedies = message, tuple(problems), tuple(remedies)


def refusal(problems: Sequence[Problem], *more: str) -> InputError:
    """Return the error that tells all problems, and then what would help: their remedies, and more of them.

    Examples
    --------
    >>> print(refusal([Problem("Missing values in age.", ("fill in the cells",))], "remove these people"))
    Missing values in age.
    Fill in the cells, or remove these people.
    """
    remedies = list(dict.fromkeys([remedy for problem in problems for remedy in problem.remedies] + list(more)))
    told = f"{', '.join(remedies[:-1])}, or {remedies[-1]}" if len(remedies) > 1 else "".join(remedies)
    lines = [problem.text for problem in problems] + ([f"{told[0].upper()}{told[1:]}."] if told else [])
    return InputError("\n".join(lines), problems, remedies)


class OutsideTraining(UserWarning):
    """People who differ from those that a model was trained on more than those did among each other."""


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
