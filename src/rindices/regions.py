"""Names of regions: their side, their twin on the other side, and what atlases, programs and studies mean by them.

The meaning of a name is read from ``region_dictionaries``, one file per source, which starts with its origin. An atlas
(``atlas_*.csv``) lists regions with all their names. A program or study lists its own columns: regions by the atlas's
name, and totals, head size and quality. Names that only one of them uses, such as ``ST29SV``, are in `known_columns`.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "region_dictionaries"
ATLAS = "atlas_"  # prefix of the file names of atlases
_MUSE = re.compile(r"(?:(?:h|dl|raw)_)*(?:dl)?muse_(?:volume_|vol_)?(\d+(?:\+\d+)*)(?:[ _].*)?", re.IGNORECASE)
# Column names that studies extend; the group is the part that is in the dictionary.
_WRITTEN = {
    "uk_biobank": re.compile(r"(?:f\.|n_|x)?(\d{2,5})(?:-\d\.\d+|_\d_\d+|\.\d\.\d+)|p(\d{2,5})(?:_i\d(?:_a\d+)?)?"),
    "adni": re.compile(r"(st\d+(?:cv|sv|sa|ta|ts))(?:_ucsf.*)?"),
    "nichart_dlmuse": re.compile(r"(?:(?:h|dl|raw)_)*(?:dl)?(muse_volume_\d+)"),
}
_UNITS = {"volume": "mm3", "area": "mm2", "thickness": "mm"}


class KnownColumn(NamedTuple):
    """Meaning of a column of a known program, study or atlas.

    Attributes
    ----------
    kind
        ``region``, ``total`` (of regions that are or could be in the table), ``head size``, ``spread`` (the standard
        deviation of a region), ``quality``, ``id``, ``visit``, ``date``, ``scan``, ``age``, ``sex`` or ``site``.
    what
        In words, without the side: ``hippocampus``.
    atlas
        Of a region: ``dk`` (Desikan and Killiany), ``destrieux`` or ``muse``; ``aseg`` for non-cortical regions.
    outlines
        Outlines to draw a region with: its names in FreeSurfer or MUSE, without the side.
    side
        ``left``, ``right``, or empty for both or neither.
    midline
        Whether it is on neither side.
    measure
        ``volume``, ``area``, ``thickness`` or ``ratio``; empty if the name does not say.
    source
        The dictionary that contains it: an atlas, a program or a study.
    """

    kind: str
    what: str
    atlas: str
    outlines: tuple[str, ...]
    side: str
    midline: bool
    measure: str
    source: str

    @property
    def title(self) -> str:
        """In words: ``left hippocampus``."""
        both = self.kind == "region" and not self.side and not self.midline
        return f"{self.side} {self.what}{', both sides' if both else ''}".strip()

    @property
    def sides(self) -> tuple[str, ...]:
        """``left``, ``right`` or both."""
        return (self.side,) if self.side else ("left", "right")

    @property
    def unit(self) -> str:
        """Unit of the measure in the programs' tables: ``mm3``; empty if it is unknown."""
        return _UNITS.get(self.measure, "")


def plain_name(name: str) -> str:
    """Return the letters, in lower case, and digits of a name."""
    return "".join(re.findall(r"[a-z0-9]+", name.casefold().replace("&", "and")))


def muse_numbers(name: str) -> list[int]:
    """Return the numbers in a MUSE name, such as ``MUSE_47+48 hippocampus``; none for other names."""
    match = _MUSE.fullmatch(name.strip())
    return [int(number) for number in match[1].split("+")] if match else []


@cache
def atlas_meanings(atlas: str) -> dict[str | int | tuple[str, str], KnownColumn]:
    """Return the regions of a cortical atlas and of aseg, by code (lHip), MUSE number, and side with name."""
    meanings: dict[str | int | tuple[str, str], KnownColumn] = {}
    for own in (atlas, "aseg"):
        for row in _read(FOLDER / f"{ATLAS}{own}.csv"):
            middle = row["midline"] == "yes"
            one = KnownColumn("region", row["name"], own, _outlines(row), "", middle, "", ATLAS + own)
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
def source_meanings(source: str) -> dict[str, KnownColumn]:
    """Return the columns of a program or study, by name in lower case."""
    titles = {
        (path.stem.removeprefix(ATLAS), row["region"]): (row["name"], row["midline"] == "yes")
        for path in sorted(FOLDER.glob(f"{ATLAS}*.csv"))
        for row in _read(path)
    }
    meanings = {}
    for row in _read(FOLDER / f"{source}.csv"):
        title, middle = (row["name"], not row["side"]) if row["name"] else titles[row["atlas"], row["region"]]
        meanings[row["column"].casefold()] = KnownColumn(
            row["kind"], title, row["atlas"], _outlines(row), row["side"], middle, row["measure"], source
        )
    return meanings


@cache
def sources() -> tuple[str, ...]:
    """Return the programs and studies whose columns are known."""
    return tuple(path.stem for path in sorted(FOLDER.glob("*.csv")) if not path.stem.startswith(ATLAS))


@lru_cache(maxsize=20_000)
def source_columns(name: str) -> list[KnownColumn]:
    """Return what a column means in the programs and studies that use its name.

    Examples
    --------
    >>> [(one.source, one.title) for one in source_columns("ST29SV")]
    [('adni', 'left hippocampus')]
    """
    meanings, small = [], name.strip().casefold()
    for source in sources():
        written = _WRITTEN[source].fullmatch(small) if source in _WRITTEN else None
        key = next(filter(None, written.groups())) if written else small
        columns = source_meanings(source)
        # A number that the dictionary does not have may be in a form that it has.
        meaning = columns.get(key) or columns.get(re.sub(r"\d+", "*", key))
        if meaning and (written or not key.isdigit()):
            meanings.append(meaning)
    return meanings


def _outlines(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(filter(None, row["region"].split(";")))


@cache
def _read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")))


ATLASES = ("dk", "muse", "destrieux")  # of the cortex; ties go to the first. FreeSurfer's aseg goes with each
_WORDS = "left|right|lh|rh"
_BETWEEN = r"[-_. ]+"
# From the clearest to the most ambiguous: the first that matches counts.
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"^(?P<before>)(?i:(?P<side>{_WORDS}|l|r)){_BETWEEN}(?P<after>.+)$",
        rf"^(?P<before>.+?){_BETWEEN}(?i:(?P<side>{_WORDS}|l|r))(?P<after>)$",
        rf"^(?P<before>.+?) *[(\[](?i:(?P<side>{_WORDS}|l|r))[)\]](?P<after>)$",
        # Inside a name, a lower-case l or r may mean anything.
        rf"^(?P<before>.+?{_BETWEEN})(?P<side>(?i:{_WORDS})|L|R){_BETWEEN}(?P<after>.+)$",
        r"^(?P<before>)(?P<side>[lL]eft|[rR]ight|lh|rh|l|r)(?P<after>[A-Z].*)$",
        r"^(?P<before>.*[a-z])(?P<side>[LR]|LH|RH|Left|Right)(?P<after>)$",
    )
)
_MEASURES = "gray ?vol(?:ume)?|volume|vol|thickness|thickavg|thick|surface ?area|surfavg|area"
_MEASURE = re.compile(
    rf"(?i:^(?P<before>{_MEASURES}){_BETWEEN}(?=.)|(?<=.){_BETWEEN}(?P<after>{_MEASURES})$)|(?<=[a-z])(?P<end>Vol)$"
)
_CORTEX = re.compile(rf"^ctx{_BETWEEN}", re.IGNORECASE)
_COMPANY = 5  # regions of a source that are needed for its names without a measure to count
_BESIDE_ATLASES = ("freesurfer", "synthseg", "enigma", "cat12", "nichart_dlmuse")  # with names of atlases
_SUM, _COVERED = 5, 0.8  # least number of outlines of a sum, and least share of them that its parts cover
_MUSE_REGIONS, _MUSE_SHARE = 40, 0.9  # least number of bare MUSE numbers, and least share of all bare numbers
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")  # of eTIV, lhCortexVol, age_at_scan
MEASURES: dict[str, str] = {
    **dict.fromkeys(("vol", "vols", "volume", "volumes", "gmv", "wmv", "grayvol", "grayvolume"), "volume"),
    **dict.fromkeys(("thick", "thickness", "thk", "ct", "thickavg"), "thickness"),
    **dict.fromkeys(("area", "surfarea", "surfacearea", "sa", "surfavg"), "area"),
}


def words_of(name: str) -> list[str]:
    """Return the words that make up a name.

    Examples
    --------
    >>> words_of("lhCortexVol"), words_of("ctx-rh-insula")
    (['lh', 'cortex', 'vol'], ['ctx', 'rh', 'insula'])
    """
    return [word.casefold() for word in _WORD.findall(name)]


def measure_of(words: Sequence[str]) -> str:
    """Return what the words of a name say is measured; empty if they do not say.

    Examples
    --------
    >>> measure_of(words_of("lh_cuneus_area")), measure_of(words_of("Left-Accumbens-area"))
    ('area', '')
    """
    measure = next((MEASURES[word] for word in reversed(words) if word in MEASURES), "")
    return "" if measure == "area" and "accumbens" in words else measure  # which has "area" as part of its name


def split_side(name: str) -> tuple[str, str]:
    """Return the side in a name, ``"left"``, ``"right"`` or ``""``, and the name without it.

    Examples
    --------
    >>> split_side("lh_G_cuneus_volume"), split_side("rHip"), split_side("ctx-rh-insula")
    (('left', 'G_cuneus_volume'), ('right', 'Hip'), ('right', 'ctx-insula'))
    >>> split_side("Brain stem")
    ('', 'Brain stem')
    """
    for form in _FORMS:
        if match := form.match(name):
            side = "left" if match["side"][0] in "lL" else "right"
            return side, match["before"] + match["after"]
    return "", name


def pair_sides(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return side and common name of the regions that have a twin on the other side; others are omitted.

    Examples
    --------
    >>> pair_sides(["lHip", "rHip", "lAmy", "Vermis"])
    {'lHip': ('left', 'Hip'), 'rHip': ('right', 'Hip')}
    """
    every = list(names)
    written, numbered = _with_muse_numbers(every), atlas_meanings("muse")
    # The side of a number, or of a study's name, is in a dictionary; what remains is its title for the region.
    meanings = {
        name: one
        for name in every
        for one in (*map(numbered.get, muse_numbers(written[name])[:1]), *source_columns(written[name]))
        if one and one.kind == "region" and one.side
    }
    several = len({one.measure for one in meanings.values()}) > 1
    titles = {name: (one.side, one.what + f", {one.measure}" * several) for name, one in meanings.items()}
    sided = [titles[name] if name in titles and not split_side(name)[0] else split_side(name) for name in every]
    counts = Counter(sided)
    # Two lefts, or a region with the name of the pair, would make the common name ambiguous.
    return {
        name: (side, base)
        for name, (side, base) in zip(every, sided, strict=True)
        if side and counts["left", base] == counts["right", base] == 1 and base not in every
    }


def pairs_of_sides(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the regions present on both sides, as pairs of names, left and right.

    Examples
    --------
    >>> pairs_of_sides(["Lthal", "Rthal", "ctx-lh-insula", "ctx-rh-insula", "vermis"])
    [('Lthal', 'Rthal'), ('ctx-lh-insula', 'ctx-rh-insula')]
    """
    name_of = {sided: name for name, sided in pair_sides(names).items()}
    return [(name_of["left", base], name_of["right", base]) for base in dict.fromkeys(base for _, base in name_of)]


def known_regions(names: Iterable[str]) -> dict[str, KnownColumn]:
    """Return the regions whose names are known, by name.

    Known are FreeSurfer's names (``lh_bankssts_thickness``, ``ctx-lh-bankssts``, ``lh_G_cuneus_volume``,
    ``Left-Hippocampus``), those of MUSE (``MUSE_Volume_47``, ``MUSE_47+48 hippocampus``, ``Right Hippocampus``), of
    CAT12 and the simulated cohorts (``rHip``), and what ENIGMA, ADNI, ABCD and UK Biobank call them. The cortical
    atlas that recognises most of the names is used.

    Examples
    --------
    >>> known_regions(["lh_bankssts_thickness", "Left-Hippocampus", "age"])["Left-Hippocampus"].title
    'left hippocampus'
    >>> known_regions(["MUSE_47+48 hippocampus"])["MUSE_47+48 hippocampus"].sides
    ('left', 'right')
    """
    every = list(dict.fromkeys(map(str, names)))
    written = _with_muse_numbers(every)
    return max(
        ({name: region for name in every if (region := _region(written[name], atlas))} for atlas in ATLASES), key=len
    )


def known_columns(names: Iterable[str]) -> dict[str, KnownColumn]:
    """Return the meaning of columns that a known program or study writes, by name.

    Common names, such as ``sex`` or ``STATUS``, count only alongside five regions of the same source. Bare MUSE numbers
    count if nearly all columns named by a number are MUSE's.

    Examples
    --------
    >>> known_columns(["DL_MUSE_Volume_702", "DL_MUSE_Volume_47"])["DL_MUSE_Volume_702"].kind
    'head size'
    >>> known_columns(["ST29SV"])["ST29SV"].title
    'left hippocampus'
    """
    every = list(dict.fromkeys(map(str, names)))
    written, regions = _with_muse_numbers(every), known_regions(every)
    meant = {name: source_columns(written[name]) for name in every}
    beside = Counter(one.source for meanings in meant.values() for one in meanings if one.kind == "region")
    n_of_atlas = sum(not meant[name] for name in regions)
    columns = {}
    for name in every:
        usual = [
            one
            for one in meant[name]
            if one.measure or beside[one.source] + n_of_atlas * (one.source in _BESIDE_ATLASES) >= _COMPANY
        ]
        if name in regions and not any(one.kind == "spread" for one in usual):
            kind = "total" if _is_sum(regions[name], regions.values()) else "region"
            said = "volume" if muse_numbers(written[name]) else measure_of(words_of(name))
            one = usual[0] if usual else regions[name]._replace(measure=said)
            columns[name] = regions[name]._replace(kind=kind, measure=one.measure, source=one.source)
        elif usual:
            columns[name] = usual[0]
    return columns


def split_measure(name: str) -> tuple[str, str]:
    """Return a name without its measure, and the measure in lower case.

    Examples
    --------
    >>> split_measure("lh_bankssts_thickness"), split_measure("Left-Hippocampus")
    (('lh_bankssts', 'thickness'), ('Left-Hippocampus', ''))
    """
    match = _MEASURE.search(name)
    measure = match["before"] or match["after"] or match["end"] if match else ""
    return _MEASURE.sub("", name, count=1), measure.casefold()


def _is_sum(region: KnownColumn, regions: Iterable[KnownColumn]) -> bool:
    """Return whether a region is the sum of other regions of the table, such as the cortex beside its parcels."""
    if len(region.outlines) < _SUM:
        return False
    parts = {
        outline
        for other in regions
        if len(other.outlines) < len(region.outlines) and {*other.sides} & {*region.sides}
        for outline in other.outlines
    }
    return len(parts & {*region.outlines}) >= _COVERED * len(region.outlines)


def _with_muse_numbers(names: Iterable[str]) -> dict[str, str]:
    """Return names as they are looked up; bare numbers become MUSE names if nearly all are numbers of MUSE."""
    every = {name: name for name in names}
    bare = [name for name in every if name.isdecimal()]
    numbers = {f"{key}" for key in atlas_meanings("muse") if isinstance(key, int)} | {
        key.removeprefix("muse_volume_") for key in source_meanings("nichart_dlmuse")
    }
    muse = [name for name in bare if name in numbers]
    if len(muse) >= _MUSE_REGIONS and len(muse) >= _MUSE_SHARE * len(bare):
        every |= {name: f"MUSE_Volume_{name}" for name in muse}
    return every


def _region(written: str, atlas: str) -> KnownColumn | None:
    """Return what a name means in an atlas; None if it is unknown or a sum of different regions."""
    meanings = _meanings(written, atlas)
    # One region, on one side or on both.
    whats = {one and one._replace(side="") for one in meanings}
    what = whats.pop() if len(whats) == 1 else None
    sides = {one.side for one in meanings if one}
    return what and what._replace(side=sides.pop() if len(sides) == 1 else "")


@lru_cache(maxsize=20_000)
def _meanings(name: str, atlas: str) -> Sequence[KnownColumn | None]:
    meanings = atlas_meanings(atlas)
    # Codes are case-sensitive: lAcc is the accumbens, but ACC often the anterior cingulate.
    if name in meanings:
        return [meanings[name]]
    if of_study := [one for one in source_columns(name) if one.measure]:
        return [one for one in of_study if one.kind == "region" and one.atlas in (atlas, "aseg")][:1]
    if numbers := muse_numbers(name):
        return [meanings.get(number) for number in numbers]
    for written in (name, split_measure(name)[0]):
        side, base = split_side(written.strip())
        if meaning := meanings.get((side, plain_name(_CORTEX.sub("", base)))):
            return [meaning]
    return []
