"""Ids of people stay out of the report unless they are asked for."""

import re
from collections.abc import Iterable
from typing import Any

HIDDEN = "[id]"
_MENTION = re.compile(r"\s*\(participants? [^()\n]*\)", re.IGNORECASE)
_FREE_TEXTS = ("warnings", "failure", "reliable_reason", "source", "model")
_LONGEST = 200
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
        telling = (one for one in ids if one.strip() and not (one.isdecimal() and len(one) < _SHORTEST_NUMBER))
        self._ids = {one for one in telling if len(one) <= _LONGEST}
        self._lengths = sorted({len(one) for one in self._ids}, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text without ids."""
        return self._without_ids(_MENTION.sub("", text)) if self._active else text

    def summary(self, summary: dict[str, Any]) -> dict[str, Any]:
        """Return a summary whose free texts are without ids."""
        return summary | {name: self._everywhere(summary[name]) for name in _FREE_TEXTS if name in summary}

    def _everywhere(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self._everywhere(one) for one in value]
        return {key: self._everywhere(one) for key, one in value.items()} if isinstance(value, dict) else value

    def _without_ids(self, text: str) -> str:
        kept, place = [], 0
        while place < len(text):
            length = self._id_at(text, place)
            kept.append(HIDDEN if length else text[place])
            place += length or 1
        return "".join(kept)

    def _id_at(self, text: str, place: int) -> int:
        """Return the length of the id that begins here, 0 where none does."""
        if _within_word(text, place):
            return 0
        for length in self._lengths:
            end = place + length
            if end <= len(text) and text[place:end] in self._ids and not _within_word(text, end):
                return length
        return 0


def _within_word(text: str, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()
