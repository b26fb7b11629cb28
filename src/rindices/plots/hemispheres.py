"""Which side of the brain a region lies on, told from its name."""

import re
from collections import defaultdict
from collections.abc import Iterable

_WORDS = "left|right|lh|rh"
_BETWEEN = r"[-_. ]+"
# From the plainest to the most easily mistaken: the first that fits counts.
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"^(?P<before>)(?i:(?P<side>{_WORDS}|l|r)){_BETWEEN}(?P<after>.+)$",
        rf"^(?P<before>.+?){_BETWEEN}(?i:(?P<side>{_WORDS}|l|r))(?P<after>)$",
        rf"^(?P<before>.+?) *[(\[](?i:(?P<side>{_WORDS}|l|r))[)\]](?P<after>)$",
        # Inside a name a small l or r may be anything.
        rf"^(?P<before>.+?{_BETWEEN})(?P<side>(?i:{_WORDS})|L|R){_BETWEEN}(?P<after>.+)$",
        r"^(?P<before>)(?P<side>[lL]eft|[rR]ight|lh|rh|l|r)(?P<after>[A-Z].*)$",
    )
)


def split_side(name: str) -> tuple[str, str]:
    """Return the side that a name tells, ``"left"``, ``"right"`` or ``""``, and the name without it.

    Examples
    --------
    >>> split_side("lh_G_cuneus_volume")
    ('left', 'G_cuneus_volume')
    >>> split_side("rHip")
    ('right', 'Hip')
    >>> split_side("ctx-rh-insula")
    ('right', 'ctx-insula')
    >>> split_side("Brain stem")
    ('', 'Brain stem')
    """
    for form in _FORMS:
        found = form.match(name)
        if found:
            side = "left" if found["side"][0] in "lL" else "right"
            return side, found["before"] + found["after"]
    return "", name


def pair_sides(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return side and common name of the regions that have a twin on the other side; the rest is left out.

    Examples
    --------
    >>> pair_sides(["lHip", "rHip", "lAmy", "Vermis"])
    {'lHip': ('left', 'Hip'), 'rHip': ('right', 'Hip')}
    """
    every = list(names)
    sides: dict[str, dict[str, list[str]]] = defaultdict(lambda: {"left": [], "right": []})
    for name in every:
        side, base = split_side(name)
        if side:
            sides[base][side].append(name)
    pairs: dict[str, tuple[str, str]] = {}
    for base, found in sides.items():
        # Two lefts, or a region that is called like the pair, would make the common name ambiguous.
        if len(found["left"]) == len(found["right"]) == 1 and base not in every:
            pairs |= {names_of[0]: (side, base) for side, names_of in found.items()}
    return pairs
