"""Output of other programs: subject folders of FreeSurfer and FastSurfer, and volumes from DLMUSE, SynthSeg and CAT12.

A ``SUBJECTS_DIR`` has a ``stats`` folder for each person. Volumes of structures are in ``aseg.stats``, measures of
cortical regions in ``lh.aparc.stats`` and the like; FastSurfer without surfaces has both in ``aseg+DKT.stats``.
Columns are named as by ``asegstats2table`` and ``aparcstats2table``. Sums of other columns are not copied.

NiChart DLMUSE and SynthSeg write tables of volumes, SynthSeg with a quality file; CAT12 writes one ``catROI_*.xml`` per
scan: grey matter in the regions of Neuromorphometrics, in mL.
"""

import csv
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple, TypeVar

from rindices.problems import InputError, Remedy, check_choice, counted, listed
from rindices.regions import known_columns, known_regions
from rindices.settings import GatherSettings

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Measured:
    """One person, or one scan of a person.

    Attributes
    ----------
    person
        The id.
    where
        The file or folder.
    values
        Measures by column: regions, head size and quality.
    program
        The program that wrote them, with its version if known.
    problem
        Why the person should not be used as is; empty if there is no problem.
    missing
        Files that are missing.
    session
        The visit, in longitudinal folders.
    """

    person: str
    where: Path
    values: Mapping[str, float] = field(default_factory=dict)
    program: str = ""
    problem: str = ""
    missing: tuple[str, ...] = ()
    session: str = ""


@dataclass(frozen=True)
class Found:
    """Everyone in a folder, the unit of volumes, and notes about them."""

    people: tuple[Measured, ...]
    unit: str
    notes: tuple[str, ...] = field(default=())


def each(read: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> list[Result]:
    """Read several files concurrently: network drives respond slowly, so threads help while processors are idle."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(read, items))


# Folders that FreeSurfer places beside those of people.
TEMPLATES = ("fsaverage*", "?h.EC_average", "cvs_avg35*", "V1_average")
PARCELLATIONS = {
    "dk": ("aparc",),
    "dkt": ("aparc.DKTatlas", "aparc.DKTatlas40", "aparc.DKTatlas.mapped"),
    "destrieux": ("aparc.a2009s",),
}
MEASURES = {"thickness": "ThickAvg", "volume": "GrayVol", "area": "SurfArea"}
_SEGMENTED = ("aseg", "aseg+DKT.VINN", "aseg+DKT")  # the last two from FastSurfer without surfaces, with the cortex
_HOLES = ("lhSurfaceHoles", "rhSurfaceHoles")
_VERSION = re.compile(r"(?:^|[-v])(\d+\.\d+(?:\.\d+)?)(?=[-_+ ]|$)")
_BASE = "base-tps"  # the file that marks a template of one person's visits


class Stats(NamedTuple):
    """A statistics file: its header, a row for each structure, and what is wrong with it."""

    said: dict[str, str]
    measures: dict[str, float]
    rows: dict[str, dict[str, str]]
    problem: str


def read_freesurfer(folder: Path, settings: GatherSettings) -> Found | None:
    """Return everyone in a ``SUBJECTS_DIR``; None if it has no ``stats`` folder."""
    subjects = list(_subjects(folder))
    if not any((one.where / "stats").is_dir() for one in subjects):
        return None
    templates = [one.person for one in subjects if any(fnmatch(one.person, form) for form in TEMPLATES)]
    people = [one for one in subjects if one.person not in templates]
    notes = [f"These folders are FreeSurfer templates and were ignored: {listed(templates)}."] if templates else []
    if settings.longitudinal:
        people = [one for one in people if ".long." in one.person]
    else:
        people = [
            replace(one, problem=one.problem or "it belongs to the longitudinal stream")
            if ".long." in one.person or (one.where / _BASE).is_file()
            else one
            for one in people
        ]
    stems = _parcellation(people, settings.atlas)
    found = each(lambda one: _freesurfer_person(one, stems, settings.measures), people, settings.jobs)
    if not stems:
        read = dict.fromkeys(f"{_first(one.where / 'stats', _SEGMENTED)}.stats" for one in people if not one.problem)
        notes.append(f"No folder contains a cortical parcellation, so only these files were read: {listed(read)}.")
    elif settings.atlas is None and stems != PARCELLATIONS["dk"]:
        notes.append(f"No folder contains aparc.stats files, so the cortical regions come from {stems[0]}.")
    return Found(tuple(found), "mm3", tuple(notes))


def _subjects(folder: Path) -> Iterator[Measured]:
    """Yield people's folders, also one level deeper if sessions have folders of their own."""
    seen: dict[Path, str] = {}
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_symlink(), path.name)):  # links are the copies
        inner = [] if (path / "stats").is_dir() or not path.is_dir() else sorted(path.glob("*/stats"))
        for place in [one.parent for one in inner] or [path]:
            name = "_".join(place.relative_to(folder).parts)
            if place.is_symlink() and not place.exists():
                yield Measured(name, place, problem="it is a broken link")
            elif place.is_dir() and any((place / one).is_dir() for one in ("stats", "mri", "surf")):
                real = place.resolve()
                twice = f"it is the same folder as {seen[real]}" if real in seen else ""
                seen.setdefault(real, name)
                empty = "" if (place / "stats").is_dir() else "it has no stats folder"
                yield Measured(name, place, problem=twice or empty)


def _parcellation(people: list[Measured], atlas: str | None) -> tuple[str, ...]:
    """Return the possible names of a parcellation's files; empty if there are no such files."""
    if atlas is not None:
        check_choice(Remedy("atlas"), atlas, PARCELLATIONS)
    for key in (atlas,) if atlas else PARCELLATIONS:
        stems = PARCELLATIONS[key]
        if any((one.where / "stats" / f"lh.{stem}.stats").is_file() for one in people for stem in stems):
            return stems
    if atlas:
        raise InputError(
            f"No folder contains files for the {atlas} atlas, such as lh.{PARCELLATIONS[atlas][0]}.stats.\n"
            "Choose another atlas with ",
            Remedy("atlas"),
            f": {listed(PARCELLATIONS)}.",
        )
    return ()


def _freesurfer_person(subject: Measured, stems: tuple[str, ...], measures: Iterable[str]) -> Measured:
    """Return a person's folder with what its files contain."""
    stats, problems, missing = subject.where / "stats", [subject.problem] * bool(subject.problem), []
    values: dict[str, float] = {}
    program = ""
    aseg = "aseg" if stems else _first(stats, _SEGMENTED)
    names = [aseg, *(_first(stats, [f"{side}.{stem}" for stem in stems]) for side in ("lh", "rh") if stems)]
    for name in names:
        path = stats / f"{name}.stats"
        if not path.is_file():
            missing.append(path.name)
            continue
        try:
            content = read_stats(path)
            if content.problem:
                problems.append(f"{path.name} {content.problem}")
            elif name == aseg:
                program = _program(subject.where, content)
                values |= _of_aseg(content)
            else:
                values |= {
                    f"{name[:2]}_{region}_{measure}": float(row[MEASURES[measure]])
                    for measure in measures
                    for region, row in content.rows.items()
                }
        except (KeyError, ValueError, IndexError):
            problems.append(f"{path.name} is damaged: a number or a column is missing")
    person, _, template = subject.person.partition(".long.")
    return Measured(
        template or person,
        subject.where,
        values,
        program,
        "; ".join(problems),
        tuple(missing) if not problems else (),
        person if template else "",
    )


def _of_aseg(content: Stats) -> dict[str, float]:
    """Return volumes, head size, and the numbers of holes and Euler numbers of the surfaces."""
    values = {region: float(row["Volume_mm3"]) for region, row in content.rows.items()}
    values |= {key: content.measures[key] for key in ("eTIV", *_HOLES) if key in content.measures}
    return values | {f"{key[:2]}EulerNumber": 2 - 2 * values[key] for key in _HOLES if key in values}  # for n handles


def _first(stats: Path, names: Sequence[str]) -> str:
    """Return the first of several names of a file that a folder has."""
    return next((name for name in names if (stats / f"{name}.stats").is_file()), names[0])


def read_stats(path: Path) -> Stats:
    """Read a statistics file: lines that start with ``#`` are its header, the others are a table."""
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    header = [line.removeprefix("# ").partition(" ")[::2] for line in lines if line.startswith("#")]
    said = {key: rest.strip() for key, rest in reversed(header) if key != "Measure"}  # the first of each counts
    # Cortex, CortexVol, its meaning, 527104.25, mm^3; old versions omit the comma before the meaning.
    parts = [rest.split(", ") for key, rest in header if key == "Measure"]
    columns = said.get("ColHeaders", "").split()
    cells = [line.split() for line in lines if not line.startswith("#")]
    complete = [dict(zip(columns, row, strict=True)) for row in cells if len(row) == len(columns)]
    rows = {row.get("StructName", ""): row for row in complete}
    expected = int(said.get("NRows") or len(rows))
    problems = (
        (not rows, "has no rows"),
        (len(rows) < expected, f"has only {len(rows)} of {counted(expected, 'row')}"),
        (not text.endswith("\n"), "ends in the middle of a line"),
        (len(complete) < len(cells), "has a truncated row"),
    )
    return Stats(
        said,
        {part[1].split()[0]: float(part[-2]) for part in parts},
        rows,
        next((problem for applies, problem in problems if applies), ""),
    )


def _program(folder: Path, aseg: Stats) -> str:
    """Return program and version; FreeSurfer leaves a build stamp, and FastSurfer its own parcellations."""
    if by_itself := _VERSION.search(aseg.said.get("FastSurfer_version", "")):
        return f"FastSurfer {by_itself[1]}"
    name = "FastSurfer with FreeSurfer" if any((folder / "stats").glob("*.mapped.stats")) else "FreeSurfer"
    stamp = folder / "scripts" / "build-stamp.txt"
    said = stamp.read_text(encoding="utf-8", errors="replace") if stamp.is_file() else aseg.said.get("cvs_version", "")
    if version := _VERSION.search(said.strip()):
        return f"{name} {version[1]}"
    program = re.search(r"(mri_segstats)\.c,v (\S+)", said)
    return f"{name} ({program[1]} {program[2]})" if program else name


_MUSE_REGIONS = 55  # of 145, the fewest that identify a MUSE table; some have the same names in aseg
_HEAD, _QUALITY = "total intracranial", "general white matter"  # columns that identify SynthSeg's two kinds of table
_LARGEST = 1_000_000  # characters of the first line; files with longer ones are not tables


class Rows(NamedTuple):
    """A table: its file, its columns, and its rows."""

    file: Path
    columns: list[str]
    rows: list[list[str]]


Quality = Mapping[str, tuple[Rows, list[str]]]  # of each person: a table with names of quality, and the person's cells


def read_dlmuse(folder: Path, settings: GatherSettings) -> Found | None:
    """Return everyone in the tables of NiChart DLMUSE below a folder; None if there are none."""
    return _found([table for table in _tables(folder, settings) if _n_muse(table) >= _MUSE_REGIONS], "DLMUSE", {})


def read_synthseg(folder: Path, settings: GatherSettings) -> Found | None:
    """Return everyone in SynthSeg's tables below a folder; None if there are none."""
    tables = list(_tables(folder, settings))
    quality = {
        row[0]: (table._replace(columns=[f"qc {name}" for name in table.columns]), row[1:])
        for table in tables
        if _QUALITY in table.columns
        for row in table.rows
        if len(row) == len(table.columns)
    }
    return _found([table for table in tables if _HEAD in table.columns], "SynthSeg", quality)


def _found(tables: list[Rows], program: str, quality: Quality) -> Found | None:
    """Return the people in tables, without sums of other columns."""
    sums = [
        name
        for name, one in known_columns(name for table in tables for name in table.columns).items()
        if one.kind == "total"
    ]
    people = [person for table in tables for person in _people(table, sums, program, quality)]
    notes = [f"Sums of regions were not copied: {listed(sums, limit=2)}."] if sums else []
    return Found(tuple(people), "mm3", tuple(notes)) if tables else None


def _n_muse(table: Rows) -> int:
    return [(one.kind, one.source) for one in known_columns(table.columns).values()].count(("region", "atlas_muse"))


def _tables(folder: Path, settings: GatherSettings) -> Iterator[Rows]:
    yield from filter(None, each(_read, sorted(filter(Path.is_file, folder.rglob("*.csv"))), settings.jobs))


def _read(path: Path) -> Rows | None:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        columns = [name.strip() for name in next(csv.reader([file.readline(_LARGEST)]), [])]
        return Rows(path, columns, [row for row in csv.reader(file) if row]) if len(columns) > 1 else None


def _people(table: Rows, sums: list[str], program: str, quality: Quality) -> Iterator[Measured]:
    for person, *cells in table.rows:
        values, problem = dict[str, float](), ""
        if len(cells) + 1 != len(table.columns):
            problem = f"the row for {person} has {counted(len(cells) + 1, 'cell')} instead of {len(table.columns)}"
        for source, row in ((table, cells), *([quality[person]] if person in quality else [])):
            try:
                values |= {
                    name: float(cell)
                    for name, cell in zip(source.columns[1:], row, strict=False)
                    if name not in sums and cell.strip()
                }
            except ValueError as error:
                problem = f"a value for {person} in {source.file.name} is not a number ({error})"
        yield Measured(person, table.file, values, program, problem)


_ATLAS, _GREY_MATTER = "neuromorphometrics", "Vgm"
_FLUID = ("ventricle", "cerebrospinal fluid")


def read_cat12(folder: Path, settings: GatherSettings) -> Found | None:
    """Return everyone in CAT12's files below a folder; None if there are none."""
    files = sorted(folder.rglob("catROI_*.xml"))
    return Found(tuple(each(_cat12_person, files, settings.jobs)), "mL") if files else None


def _cat12_person(path: Path) -> Measured:
    person = path.stem.removeprefix("catROI_")
    try:
        content = ET.parse(path).getroot()
        names = [str(item.text) for item in content.iterfind(f"{_ATLAS}/names/item")]
        numbers = content.findtext(f"{_ATLAS}/data/{_GREY_MATTER}", "").strip("[] \n").split(";")
        volumes = [float(number) for number in numbers if number.strip()]
    except (ET.ParseError, ValueError) as error:
        return Measured(person, path, {}, "CAT12", f"{path.name} cannot be read: {error}")
    if not names or len(names) != len(volumes):
        return Measured(
            person,
            path,
            {},
            "CAT12",
            f"{path.name} does not contain exactly one grey-matter volume ({_GREY_MATTER}) for each region of the "
            f"{_ATLAS} atlas",
        )
    fluid = {name for name, one in known_regions(names).items() if one.title.endswith(_FLUID)}
    values = {name: volume for name, volume in zip(names, volumes, strict=True) if name not in fluid}
    revision = content.findtext(f"{_ATLAS}/version", "")
    return Measured(person, path, values, f"CAT12 r{revision}" if revision else "CAT12")
