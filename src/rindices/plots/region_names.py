"""What names of regions say: the side, the twin on the other side, and which region of a known atlas they mean."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import pandas as pd

__all__ = ["Region", "known_regions", "pair_sides", "region_label", "split_measure", "split_side"]

ATLASES = ("dk", "muse", "destrieux")  # of the cortex, the first that fits best; FreeSurfer's aseg goes with each

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
_MEASURES = "gray ?vol(?:ume)?|volume|vol|thickness|thickavg|thick|surface ?area|surfavg|area"
_MEASURE = re.compile(
    rf"(?i:^(?P<before>{_MEASURES}){_BETWEEN}(?=.)|(?<=.){_BETWEEN}(?P<after>{_MEASURES})$)|(?<=[a-z])(?P<end>Vol)$"
)
_Key = str | int | tuple[str, str]
_CORTEX = re.compile(rf"^ctx{_BETWEEN}", re.IGNORECASE)


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


class Region(NamedTuple):
    """A region of a known atlas.

    Attributes
    ----------
    name
        As the table calls it.
    title
        In words: ``left hippocampus``.
    atlas
        ``dk`` (Desikan and Killiany), ``destrieux`` or ``muse``; ``aseg`` for what is no cortex.
    sides
        ``left``, ``right`` or both.
    outlines
        What it may be drawn with: what FreeSurfer or MUSE calls it, without its side.
    """

    name: str
    title: str
    atlas: str
    sides: tuple[str, ...]
    outlines: tuple[str, ...]


def known_regions(names: Iterable[str]) -> dict[str, Region]:
    """Return the regions whose names are known, by name.

    Known are FreeSurfer's names (``lh_bankssts_thickness``, ``ctx-lh-bankssts``, ``lh_G_cuneus_volume``,
    ``Left-Hippocampus``), those of MUSE (``MUSE_Volume_47``, ``MUSE_47+48 hippocampus``, ``Right Hippocampus``) and of
    the simulated cohorts (``rHip``). Of the atlases of the cortex the one counts that knows most of the names.

    Examples
    --------
    >>> known_regions(["lh_bankssts_thickness", "Left-Hippocampus", "age"])["Left-Hippocampus"].title
    'left hippocampus'
    >>> known_regions(["MUSE_47+48 hippocampus"])["MUSE_47+48 hippocampus"].sides
    ('left', 'right')
    """
    every = list(dict.fromkeys(map(str, names)))
    found = [{name: region for name in every if (region := _region(name, atlas))} for atlas in ATLASES]
    return max(found, key=len)


def region_label(short: str, pairs: Mapping[str, tuple[str, str]], names: Mapping[str, str]) -> tuple[str, str]:
    """Return the full name of a region, or of both sides together, and the table's name to stand beside it.

    Where no full name is known, the table's name comes alone.

    Examples
    --------
    >>> region_label("Hip", pair_sides(["lHip", "rHip"]), {"lHip": "left hippocampus", "rHip": "right hippocampus"})
    ('hippocampus', 'Hip')
    """
    sided = next((region for region, (_, base) in pairs.items() if base == short), None)
    full = names.get(short if sided is None else sided, "")
    if sided is not None:
        full = full.removeprefix(f"{pairs[sided][0]} ")
    return (full, split_measure(short)[0]) if full and full not in (short, sided) else (short, "")


def split_measure(name: str) -> tuple[str, str]:
    """Return a name without its measure, and the measure in small letters.

    Examples
    --------
    >>> split_measure("lh_bankssts_thickness")
    ('lh_bankssts', 'thickness')
    >>> split_measure("Left-Hippocampus")
    ('Left-Hippocampus', '')
    """
    found = _MEASURE.search(name)
    measure = found["before"] or found["after"] or found["end"] if found else ""
    return _MEASURE.sub("", name, count=1), measure.casefold()


def _plain(name: str) -> str:
    return "".join(re.findall(r"[a-z0-9]+", name.casefold().replace("&", "and")))


def _region(name: str, atlas: str) -> Region | None:
    """Return what a name means in an atlas; None where it is unknown, or a sum of different regions."""
    found = _meanings(name, _known(atlas))
    rows, sides = {one[0] for one in found if one}, {one[1] for one in found if one}
    if len(rows) != 1 or None in found:
        return None
    [row], side = rows, sides.pop() if len(sides) == 1 else ""
    both = "" if row.midline or side else ", both sides"
    words = f"{side} {row.title}{both}".strip()
    return Region(name, words, row.atlas, (side,) if side else ("left", "right"), row.outlines)


def _meanings(name: str, known: Mapping[_Key, tuple[_Row, str]]) -> list[tuple[_Row, str] | None]:
    # Codes are told apart by their letters' case: lAcc is the accumbens, but ACC often the anterior cingulate.
    if name in known:
        return [known[name]]
    if numbered := _MUSE.fullmatch(name.strip()):
        return [known.get(int(number)) for number in numbered[1].split("+")]
    for written in (name, split_measure(name)[0]):
        side, base = split_side(written.strip())
        if meaning := known.get((side, _plain(_CORTEX.sub("", base)))):
            return [meaning]
    return []


class _Row(NamedTuple):
    title: str
    atlas: str
    outlines: tuple[str, ...]
    midline: bool


@cache
def _known(atlas: str) -> dict[_Key, tuple[_Row, str]]:
    """Return regions of an atlas and their sides by code (lHip), by number of MUSE, and by side and name."""
    path = Path(__file__).with_name("region_names.csv")
    table = pd.read_csv(path, keep_default_na=False, dtype=str)
    known: dict[_Key, tuple[_Row, str]] = {}
    for row in table[table["atlas"].isin([atlas, "aseg"])].to_dict("records"):
        middle = row["midline"] == "yes"
        entry = _Row(row["name"], row["atlas"], tuple(filter(None, row["region"].split(";"))), middle)
        for side in ("left", "right"):
            if row["code"]:
                known[side[0] + row["code"]] = entry, side
            if row[f"muse_{side}"]:
                known[int(row[f"muse_{side}"])] = entry, "" if middle else side
        names = [word for word in (row["name"], row["region"], *row["synonyms"].split(";")) if word]
        names += map(" ".join, permutations(names, 2))
        for side in ("left", "right", ""):
            # Abbreviations without a side may stand for anything.
            words = names if side or middle or row["atlas"] != "muse" else names[:1]
            known |= {(side, _plain(word)): (entry, side) for word in words}
    return known
