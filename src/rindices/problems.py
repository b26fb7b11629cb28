"""Problems as data (what is wrong, where, and what would help), and the phrases that messages share.

A message never names a command-line option. It consists of text and remedies, and the interface that shows it decides
how a remedy is written: ``drop_missing=True`` in Python, an option on the command line, a button on the page.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, NoReturn

_MENTION = re.compile(r"\s*\(participants? (?:[^()\n]|\([^()\n]*\))*\)", re.IGNORECASE)
_EDGE = r"(?:(?<![^\W_])|(?![^\W_]))"  # not within a word
_SHORTEST_NUMBER = 5  # a shorter number in a text is more likely a count or a setting than an id
Value = bool | int | float | str | tuple[str, ...] | None


class Blank(str):
    """A placeholder, such as ``COLUMN``, for a value that only the user knows."""


class _NotText:
    """Something that is not yet text: the interface words it, and an f-string would do so too soon."""

    def __format__(self, _: str) -> NoReturn:
        raise TypeError(f"{self!r} cannot be formatted as text; make it part of a Message.")


class Remedy(_NotText, NamedTuple("Remedy", [("setting", str), ("value", Value)])):
    """A setting that a message mentions, and the value that would help; None if there is no particular one."""

    def __new__(cls, setting: str, value: Value | list[str] = None) -> Remedy:  # noqa: D102
        return super().__new__(cls, setting, tuple(value) if isinstance(value, list) else value)


class Command(_NotText, NamedTuple("Command", [("typed", str), ("in_python", str)])):
    """An action, as it is typed on the command line and as it is called in Python."""


ADAPT = Command("rindices adapt", "`SurrealGAN.adapt`")


class Message(_NotText, tuple[str | Remedy | Command, ...]):
    """Text that contains remedies; messages among its parts are flattened.

    Examples
    --------
    >>> leave_out = Message("leave them out with ", Remedy("drop_missing", True))
    >>> str(Message("Fill in the cells, or ", leave_out, "."))
    'Fill in the cells, or leave them out with drop_missing=True.'
    """

    def __new__(cls, *parts: Text) -> Message:  # noqa: D102
        return super().__new__(cls, (one for part in parts for one in (part if isinstance(part, Message) else (part,))))

    def __getnewargs__(self) -> tuple[str | Remedy | Command, ...]:
        return tuple(self)  # errors are passed between processes

    def __str__(self) -> str:
        return worded(self)


Text = str | Remedy | Command | Message
Wording = Callable[[Remedy], str]  # how an interface writes a remedy


def in_python(remedy: Remedy) -> str:
    """Return a setting as an argument of a Python function."""
    name, value = remedy
    return f"`{name}`" if value is None else f"{name}={list(value) if isinstance(value, tuple) else value!r}"


def worded(text: Text, wording: Wording = in_python) -> str:
    """Return a text with every setting and command as one interface writes it."""

    def said(part: str | Remedy | Command) -> str:
        if isinstance(part, Command):
            return part.in_python if wording is in_python else part.typed
        return part if isinstance(part, str) else wording(part)

    return "".join(map(said, Message(text)))


def joined(texts: Iterable[Text], joiner: str) -> Message:
    """Return texts as one message, with a joiner between them."""
    return Message(*[part for text in texts for part in (joiner, text)][1:])


class Problem(NamedTuple):
    """Something that is wrong with a table.

    Attributes
    ----------
    what
        What is wrong: column, row, value.
    remedies
        What would help, each a phrase such as "fill in the cells".
    where
        The columns that it concerns.
    """

    what: Text
    remedies: tuple[Text, ...] = ()
    where: tuple[str, ...] = ()


class InputError(ValueError):
    """An error in the user's input, such as a table, a column name or a label.

    The message is a few lines of plain text: what was expected, what was found, and what to do. As text, it refers to
    settings by their Python names; `worded` can express `message` in other terms.

    Parameters
    ----------
    parts
        The message: text, and the settings it mentions.
    problems, remedies
        For a table: each problem, and what would help.
    sheets
        For a workbook of which one sheet has to be chosen: what names each, such as "people.xlsx#Baseline".

    Examples
    --------
    >>> str(InputError("The table has no column 'age'. Give another with ", Remedy("covariates"), "."))
    "The table has no column 'age'. Give another with `covariates`."
    """

    def __init__(
        self,
        *parts: Text,
        problems: Sequence[Problem] = (),
        remedies: Sequence[Text] = (),
        sheets: Sequence[str] = (),
    ) -> None:
        self.message, self.sheets = Message(*parts), tuple(sheets)
        super().__init__(str(self.message))
        self.problems, self.remedies = tuple(problems) or (Problem(self.message),), tuple(remedies)


def remedies_in(texts: Iterable[Text]) -> tuple[Remedy, ...]:
    """Return the settings that texts mention with a value that would help, each once."""
    remedies = [part for text in texts for part in Message(text) if isinstance(part, Remedy)]
    return tuple(dict.fromkeys(one for one in remedies if one.value and not isinstance(one.value, Blank)))


def refusal(problems: Sequence[Problem], *more: Text) -> InputError:
    """Return the error that lists all problems, followed by their remedies and any further ones.

    Examples
    --------
    >>> print(refusal([Problem("Missing values in age.", ("fill in the cells",))], "remove these people"))
    Missing values in age.
    Fill in the cells, or remove these people.
    """
    remedies = list(dict.fromkeys([remedy for problem in problems for remedy in problem.remedies] + list(more)))
    lines = [problem.what for problem in problems]
    if remedies:
        several = (joined(remedies[:-1], ", "), ", or ") if len(remedies) > 1 else ()
        first, *others = Message(*several, remedies[-1], ".")
        lines.append(Message(f"{first[0].upper()}{first[1:]}", *others))
    return InputError(joined(lines, "\n"), problems=problems, remedies=remedies)


class OutsideTraining(UserWarning):
    """People differ from those in training more than those differ from one another."""


class LostWorkers(RuntimeError):
    """Workers died repeatedly, and nothing could be trained in between."""


def quoted(word: str) -> str:
    """Return a word as typed in a terminal, quoted if needed; Windows knows only double quotation marks.

    Examples
    --------
    >>> quoted("people.csv"), quoted("left amygdala")
    ('people.csv', "'left amygdala'")
    """
    typed = shlex.quote(word)
    return f'"{word}"' if os.name == "nt" and typed != word and '"' not in word else typed


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


def listed_rows(rows: Collection[int], limit: int = 6) -> str:
    """Return the first few rows of a table and how many were left out.

    Examples
    --------
    >>> listed_rows([4]), listed_rows([4, 7, 9], limit=2)
    ('row 4', 'rows 4, 7 and 1 more')
    """
    return f"row{'' if len(rows) == 1 else 's'} {listed(rows, limit)}"


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun in the right form.

    Examples
    --------
    >>> counted(1, "row"), counted(2, "row"), counted(2000, "person", "people")
    ('1 row', '2 rows', '2,000 people')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def duration(seconds: float | None) -> str:
    """Return a time in hours, minutes and seconds.

    Examples
    --------
    >>> duration(3725)
    '1 h 2 min 5 s'
    """
    minutes, rest = divmod(round(seconds or 0), 60)
    parts = [(minutes // 60, "h"), (minutes % 60, "min"), (rest, "s")]
    return " ".join(f"{value} {unit}" for value, unit in parts if value)


def roughly(seconds: float) -> str:
    """Return an approximate time: ``1 minute``, ``20 minutes``, ``1.5 hours``.

    Examples
    --------
    >>> roughly(20), roughly(400), roughly(1900), roughly(6000)
    ('1 minute', '7 minutes', '30 minutes', '1.5 hours')
    """
    minutes = max(1, round(seconds / 60))
    if minutes >= 90:
        return f"{round(minutes / 30) / 2:g} hours"
    return counted(minutes if minutes < 10 else 5 * round(minutes / 5), "minute")


def did_you_mean(name: str, options: Sequence[str]) -> str:
    """Return a suggestion such as `` Did you mean 'age'?``, or nothing if no option is similar.

    Examples
    --------
    >>> did_you_mean("Age", ["age", "sex"]), did_you_mean("site", ["visit"])
    (" Did you mean 'age'?", '')
    """
    by_folded = {option.casefold(): option for option in reversed(options)}
    near = difflib.get_close_matches(name.casefold(), list(by_folded), n=2, cutoff=0.7)
    return f" Did you mean {' or '.join(repr(by_folded[match]) for match in near)}?" if near else ""


def check_choice(what: Text, value: object, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices.

    Examples
    --------
    >>> check_choice(Remedy("new_sites"), "refused", ("refuse", "uncorrected"))
    Traceback (most recent call last):
        ...
    rindices.problems.InputError: `new_sites` should be 'refuse' or 'uncorrected', but got 'refused'. \
Did you mean 'refuse'?
    """
    *others, last = options = [*choices]
    if value not in options:
        said = f" should be {', '.join(map(repr, others))} or {last!r}, but got {value!r}."
        raise InputError(what, said + did_you_mean(str(value), options))


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


def one_line(text: object) -> str:
    """Return at most one line of untrusted text, without control characters.

    Never pass untrusted containers: shared parts can make the text of a small one endless.
    """
    return ascii(str(text))[1:-1][:80]


def without_people(text: str) -> str:
    """Return a sentence without the people named in brackets, for all text that is stored.

    Examples
    --------
    >>> without_people("2 rows not found (participants sub-01, sub (2)).")
    '2 rows not found.'
    """
    return _MENTION.sub("", text)


class Curtain:
    """Hides ids in free text: only whole ids are hidden, so "sub-1" does not hide a part of "sub-12".

    Parameters
    ----------
    ids
        The ids to hide; without any, only mentions marked as participants are hidden.
    active
        Whether to hide at all.

    Examples
    --------
    >>> Curtain(["sub-01"])("sub-01.csv: row 3 (participant sub-01) is odd; sub-012 is not.")
    '[id].csv: row 3 is odd; sub-012 is not.'
    """

    def __init__(self, ids: Iterable[str], *, active: bool = True) -> None:
        self._active = active
        telling = {one for one in ids if one.strip() and not (one.isdecimal() and len(one) < _SHORTEST_NUMBER)}
        self._ids = sorted(telling, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text without ids."""
        if not self._active or not text:
            return text
        text = without_people(text)
        for one in self._ids:
            if one in text:
                text = re.sub(f"{_EDGE}{re.escape(one)}{_EDGE}", "[id]", text)
        return text


def without_data(error: BaseException) -> str:
    """Return what a log or a record may contain about an error: its type, and where it arose.

    Messages of most errors may quote ids and cells of a table, so they are for the user's terminal only. Messages from
    the system and the device are kept.

    Examples
    --------
    >>> without_data(RuntimeError("the device went away")), without_data(KeyError("sub-01"))
    ('RuntimeError: the device went away', 'KeyError')
    """
    kind = type(error).__name__
    if isinstance(error, OSError):  # its message may contain a file name, and that an id
        return f"{kind}: {os.strerror(error.errno)}" if error.errno else kind
    if isinstance(error, RuntimeError | MemoryError) and str(error):
        return f"{kind}: {error}"
    here = os.path.dirname(__file__)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(here)]
    return f"{kind} in {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else kind
