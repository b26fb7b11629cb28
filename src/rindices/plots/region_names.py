"""What names of regions say: the side, the twin on the other side, and about where in the brain they lie."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

__all__ = ["Placed", "full_name", "pair_sides", "place_regions", "region_label", "split_side"]

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
_MUSE = re.compile(r"(?:(?:h|dl|raw)_)*(?:dl)?muse_(?:volume_|vol_)?(\d+(?:\+\d+)*)(?:[ _].*)?", re.IGNORECASE)
_MEASURE = re.compile(r"[-_. ](?:volume|vol|thickness)$", re.IGNORECASE)
_SHORTEST_WORD = 6  # without a side, an abbreviation may stand for anything
_Points = tuple[tuple[float, float, float], ...]


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
    found = [(name, *split_side(name)) for name in names]
    every, counts = {name for name, *_ in found}, Counter((side, base) for _, side, base in found)
    # Two lefts, or a region that is called like the pair, would make the common name ambiguous.
    return {
        name: (side, base)
        for name, side, base in found
        if side and counts["left", base] == counts["right", base] == 1 and base not in every
    }


class Placed(NamedTuple):
    """Where regions lie, and the names that nothing is known of."""

    centres: pd.DataFrame
    missing: list[str]


def place_regions(names: Iterable[str]) -> Placed:
    """Return the approximate centres of regions in MNI space.

    Known are the regions of the embedded population (``lHip``), those of MUSE (``MUSE_Volume_47``,
    ``MUSE_47+48 hippocampus``, ``Right Hippocampus``), and FreeSurfer's names of the same structures
    (``Left-Hippocampus``, ``lh_G_cuneus_volume``). A region of both sides has a centre on each.

    Returns
    -------
    Placed
        ``centres`` has the columns region, x, y and z (millimetres; left is negative), ``missing`` the other names.

    Examples
    --------
    >>> placed = place_regions(["lHip", "Right-Amygdala", "lh_S_central_volume"])
    >>> placed.centres.to_numpy().tolist()
    [['lHip', -27.0, -21.0, -15.0], ['Right-Amygdala', 23.0, -4.0, -19.0]]
    >>> placed.missing
    ['lh_S_central_volume']
    """
    found = {name: _points(name) for name in dict.fromkeys(map(str, names))}
    rows = [(name, *map(float, point)) for name, points in found.items() for point in points]
    centres = pd.DataFrame(rows, columns=["region", "x", "y", "z"])
    return Placed(centres, [name for name, points in found.items() if not points])


def _plain(name: str) -> str:
    return "".join(re.findall(r"[a-z0-9]+", name.casefold()))


def _points(name: str) -> _Points:
    """Return the centres of a region, none where the name is unknown."""
    known = _known()
    # Codes are told apart by their letters' case: lAcc is the accumbens, but ACC often the anterior cingulate.
    if name in known:
        return known[name]
    if numbered := _MUSE.fullmatch(name.strip()):
        parts = [known.get(int(number), ()) for number in numbered[1].split("+")]
        return sum(parts, ()) if all(parts) else ()
    for written in (name, _MEASURE.sub("", name)):
        side, base = split_side(written.strip())
        if points := known.get((side, _plain(base.removeprefix("ctx-")))):
            return points
    return ()


@cache
def _known() -> dict[str | int | tuple[str, str], _Points]:
    """Return the centres of regions by code (lHip), by number of MUSE, and by side and name."""
    path = Path(__file__).with_name("region_centres.csv")
    table = pd.read_csv(path, keep_default_na=False, dtype={"muse_left": str, "muse_right": str})
    known: dict[str | int | tuple[str, str], _Points] = {}
    for row in table.to_dict("records"):
        left, right = ((sign * row["x"], row["y"], row["z"]) for sign in (-1, 1))
        middle = row["midline"] == "yes"
        points: dict[str, _Points] = {"left": (left,), "right": (right,), "": (left, right)}
        if middle:
            points[""] = ((0.0, row["y"], row["z"]),)
        for side in ("left", "right"):
            if row["code"]:
                known[side[0] + row["code"]] = points[side]
            if row[f"muse_{side}"]:
                known[int(row[f"muse_{side}"])] = points["" if middle else side]
        others = [word for word in row["synonyms"].split(";") if word]
        names = [row["region"], *others, *(f"{word} {row['region']}" for word in others)]
        for side, places in points.items():
            # Abbreviations without a side may stand for anything.
            known |= {(side, _plain(word)): places for word in (names if side or middle else names[:1])}
    return known


def region_label(short: str, pairs: Mapping[str, tuple[str, str]], names: Mapping[str, str]) -> tuple[str, str]:
    """Return the full name of a region, or of both sides together, and the table's name to stand beside it.

    Where no full name is known, the table's name comes alone.
    """
    sided = next((region for region, (_, base) in pairs.items() if base == short), None)
    full = names.get(short if sided is None else sided, "")
    if sided is not None:
        full = full.removeprefix(f"{pairs[sided][0]} ")
    return (full, short) if full and full not in (short, sided) else (short, "")


def full_name(name: str) -> str:
    """Return the full name of a region with its side, as far as the atlas of the name is known, else the name itself.

    Examples
    --------
    >>> [full_name(name) for name in ("lHip", "Right-Amygdala", "lh_G_front_inf-Opercular_volume", "my region")]
    ['left hippocampus', 'right amygdala', 'left inferior frontal gyrus, opercular part', 'my region']
    """
    known = _full_names()
    if numbered := _MUSE.fullmatch(name.strip()):
        parts = [known.get(number, "") for number in numbered[1].split("+")]
        if len({part.removeprefix("left ").removeprefix("right ") for part in parts}) == 1 and parts[0]:
            return parts[0] if len(parts) == 1 else parts[0].removeprefix("left ").removeprefix("right ")
    if name in known:
        return known[name]
    for written in (name, _MEASURE.sub("", name)):
        side, base = split_side(written.strip())
        found = known.get(_plain(base.removeprefix("ctx-")), "")
        if found and (side or len(base) >= _SHORTEST_WORD):
            return f"{side} {found}".strip()
    return name


@cache
def _full_names() -> dict[str, str]:
    """Return full names: with their side by code (lHip) and by number of MUSE, without it by name."""
    centres = pd.read_csv(Path(__file__).with_name("region_centres.csv"), keep_default_na=False, dtype=str)
    atlases = pd.read_csv(Path(__file__).with_name("region_full_names.csv"), keep_default_na=False)
    known: dict[str, str] = {}
    for row in centres.to_dict("records"):
        known |= {_plain(word): row["region"] for word in (row["region"], *row["synonyms"].split(";")) if word}
        for side in ("left", "right"):
            name = row["region"] if row["midline"] == "yes" else f"{side} {row['region']}"
            known |= {key: name for key in (row["code"] and side[0] + row["code"], row[f"muse_{side}"]) if key}
    return known | {_plain(row["name"]): row["full_name"] for row in atlases.to_dict("records")}
