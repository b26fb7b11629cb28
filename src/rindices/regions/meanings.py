"""What a column's name means in a known atlas, program or study: read from ``dictionaries``, one file a source.

An atlas (``atlas_*.csv``) lists regions with all their names. A program or study lists its own columns: regions by the
atlas's name, and totals, head size, quality and the like. Each file starts with where it is from.
"""

import csv
import re
from functools import cache, lru_cache
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "dictionaries"
ATLAS = "atlas_"  # what the names of atlases' files start with
_MUSE = re.compile(r"(?:(?:h|dl|raw)_)*(?:dl)?muse_(?:volume_|vol_)?(\d+(?:\+\d+)*)(?:[ _].*)?", re.IGNORECASE)
# How studies write their columns with more than the name: which part of it the dictionary has.
_WRITTEN = {
    "uk_biobank": re.compile(r"(?:f\.|n_|x)?(\d{2,5})(?:-\d\.\d+|_\d_\d+|\.\d\.\d+)|p(\d{2,5})(?:_i\d(?:_a\d+)?)?"),
    "adni": re.compile(r"(st\d+(?:cv|sv|sa|ta|ts))(?:_ucsf.*)?"),
    "nichart_dlmuse": re.compile(r"(?:(?:h|dl|raw)_)*(?:dl)?(muse_volume_\d+)"),
}


class Meaning(NamedTuple):
    """What a name means.

    Attributes
    ----------
    kind
        ``region``, or what else it is: ``total``, ``head size``, ``spread`` (a region's standard deviation),
        ``quality``, ``id``, ``visit``, ``date``, ``scan``, ``age``, ``sex`` or ``site``.
    title
        In words, without its side.
    atlas
        Of a region: ``aseg``, ``dk``, ``destrieux`` or ``muse``.
    outlines
        What the region may be drawn with.
    side
        ``left``, ``right`` or nothing.
    midline
        Whether the region has no sides.
    measure
        ``volume``, ``area``, ``thickness``, ``ratio``, or nothing where the name does not say.
    source
        The dictionary.
    """

    kind: str
    title: str
    atlas: str
    outlines: tuple[str, ...]
    side: str
    midline: bool
    measure: str
    source: str


def plain_name(name: str) -> str:
    """Return small letters and digits of a name."""
    return "".join(re.findall(r"[a-z0-9]+", name.casefold().replace("&", "and")))


def muse_numbers(name: str) -> list[int]:
    """Return the numbers in a name that MUSE gives: ``MUSE_47+48 hippocampus``; none for other names."""
    match = _MUSE.fullmatch(name.strip())
    return [int(number) for number in match[1].split("+")] if match else []


@cache
def atlas_meanings(atlas: str) -> dict[str | int | tuple[str, str], Meaning]:
    """Return regions of an atlas of the cortex and of aseg by code (lHip), number of MUSE, and side with name."""
    meanings: dict[str | int | tuple[str, str], Meaning] = {}
    for own in (atlas, "aseg"):
        for row in _read(FOLDER / f"{ATLAS}{own}.csv"):
            middle = row["midline"] == "yes"
            one = Meaning("region", row["name"], own, _outlines(row), "", middle, "", ATLAS + own)
            left_right = {side: one._replace(side=side) for side in ("left", "right")}
            for side, sided in left_right.items():
                if row["code"]:
                    meanings[side[0] + row["code"]] = sided
                if row[f"muse_{side}"]:
                    meanings[int(row[f"muse_{side}"])] = one if middle else sided
            names = [word for word in (row["name"], row["region"], *row["synonyms"].split(";")) if word]
            names += map(" ".join, permutations(names, 2))
            for side, sided in {**left_right, "": one}.items():
                # Abbreviations without a side may stand for anything.
                words = names if side or middle or own != "muse" else names[:1]
                meanings |= {(side, plain_name(word)): sided for word in words}
    return meanings


@cache
def source_meanings(source: str) -> dict[str, Meaning]:
    """Return the columns of a program or study, in small letters."""
    titles = {
        (path.stem.removeprefix(ATLAS), row["region"]): (row["name"], row["midline"] == "yes")
        for path in sorted(FOLDER.glob(f"{ATLAS}*.csv"))
        for row in _read(path)
    }
    meanings = {}
    for row in _read(FOLDER / f"{source}.csv"):
        title, middle = (row["name"], not row["side"]) if row["name"] else titles[row["atlas"], row["region"]]
        meanings[row["column"].casefold()] = Meaning(
            row["kind"], title, row["atlas"], _outlines(row), row["side"], middle, row["measure"], source
        )
    return meanings


@cache
def sources() -> tuple[str, ...]:
    """Return the programs and studies whose columns are known."""
    return tuple(path.stem for path in sorted(FOLDER.glob("*.csv")) if not path.stem.startswith(ATLAS))


@lru_cache(maxsize=20_000)
def source_columns(name: str) -> list[Meaning]:
    """Return what a column means in the programs and studies that use its name.

    Examples
    --------
    >>> [(one.source, one.side, one.title) for one in source_columns("ST29SV")]
    [('adni', 'left', 'hippocampus')]
    """
    meanings, small = [], name.strip().casefold()
    for source in sources():
        written = _WRITTEN[source].fullmatch(small) if source in _WRITTEN else None
        key = next(filter(None, written.groups())) if written else small
        columns = source_meanings(source)
        other = re.sub(r"\d+", "*", key)  # a number that the dictionary does not have, in a form that it has
        if (meaning := columns.get(key) or columns.get(other)) and (written or not key.isdigit()):
            meanings.append(meaning)
    return meanings


def _outlines(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(filter(None, row["region"].split(";")))


@cache
def _read(path: Path) -> list[dict[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
