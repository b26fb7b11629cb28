"""Checks of plain JSON data that a file brought back: nonsense is a ValueError."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import fields

__all__ = ["check_entries", "known_numbers_from", "numbers_from", "texts_from"]


def check_entries(data: object, kind: type, optional: Collection[str] = ()) -> None:
    """Refuse data whose entries are not the fields of the dataclass ``kind``; ``optional`` ones may be absent."""
    expected = {field.name for field in fields(kind)}
    if not isinstance(data, Mapping) or set(data) | set(optional) != expected:
        found = sorted(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
        raise ValueError(f"{kind.__name__}: expected the entries {sorted(expected)}, found {found}")


def numbers_from(values: object, name: str) -> tuple[float, ...]:
    """Return a list of finite numbers as a tuple.

    Examples
    --------
    >>> numbers_from([1, 2.5], "minimum")
    (1.0, 2.5)
    """
    if isinstance(values, list) and all(map(_is_number, values)):
        return tuple(float(value) for value in values)
    raise ValueError(f"{name!r} should hold finite numbers, found {values!r:.80}")


def _is_number(value: object) -> bool:
    # A whole number may have more digits than a float can hold.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def known_numbers_from(values: object, name: str) -> tuple[float | None, ...]:
    """Return a list of finite numbers as a tuple; None stands for what is not known.

    Examples
    --------
    >>> known_numbers_from([1, None], "minimum")
    (1.0, None)
    """
    if not isinstance(values, list):
        raise ValueError(f"{name!r} should hold finite numbers, found {values!r:.80}")
    known = iter(numbers_from([value for value in values if value is not None], name))
    return tuple(None if value is None else next(known) for value in values)


def texts_from(values: object, name: str) -> tuple[str, ...]:
    """Return a list of texts as a tuple.

    Examples
    --------
    >>> texts_from(["lHip"], "features")
    ('lHip',)
    """
    if isinstance(values, list) and all(map(_is_text, values)):
        return tuple(values)
    raise ValueError(f"{name!r} should hold text, found {values!r:.80}")


def _is_text(value: object) -> bool:
    # JSON can spell halves of characters, which nothing can print or write.
    return isinstance(value, str) and not any("\ud800" <= sign <= "\udfff" for sign in value)
