"""Ids of people stay out of the report unless they are asked for."""

import re
from collections.abc import Iterable

from rindices.problems import without_people
from rindices.record import Summary

_EDGE = r"(?:(?<![^\W_])|(?![^\W_]))"  # not within a word
_SHORTEST_NUMBER = 5  # a shorter number in a text is rather a count or a setting than a person


class Curtain:
    """Hides ids in free text: each stands for itself only, so "sub-1" does not hide a part of "sub-12".

    Parameters
    ----------
    ids
        The ids to hide; none hides nothing but what is marked as a participant.
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

    def summary(self, summary: Summary) -> Summary:
        """Return a summary whose free texts are without ids."""
        texts = {name: self(getattr(summary, name)) for name in ("failure", "reliable_reason", "source")}
        model = {name: self(text) for name, text in summary.model.items()}
        return summary.updated(**texts, model=model, warnings=[*map(self, summary.warnings)])
