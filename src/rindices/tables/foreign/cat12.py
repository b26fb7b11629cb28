"""CAT12: ``label/catROI_*.xml``, a file per scan; grey matter in the regions of Neuromorphometrics, in mL."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from rindices.regions import known_regions
from rindices.settings import GatherSettings
from rindices.tables.foreign.measured import Found, Measured, each

_ATLAS, _GREY_MATTER = "neuromorphometrics", "Vgm"
_FLUID = ("ventricle", "cerebrospinal fluid")


def read_cat12(folder: Path, settings: GatherSettings) -> Found | None:
    """Return everybody in the files of CAT12 below a folder; None if there are none."""
    files = sorted(folder.rglob("catROI_*.xml"))
    return Found(tuple(each(_person, files, settings.jobs)), "mL") if files else None


def _person(path: Path) -> Measured:
    person = path.stem.removeprefix("catROI_")
    try:
        atlas = ET.parse(path).getroot().find(_ATLAS)
    except ET.ParseError as error:
        return Measured(person, {}, "CAT12", path, f"{path.name} cannot be read: {error}")
    names = [str(item.text) for item in atlas.iterfind("names/item")] if atlas is not None else []
    numbers = (atlas.findtext(f"data/{_GREY_MATTER}") or "") if atlas is not None else ""
    volumes = [float(number) for number in numbers.strip("[] \n").split(";") if number.strip()]
    if not names or len(names) != len(volumes):
        return Measured(person, {}, "CAT12", path, f"{path.name} has no {_GREY_MATTER} of {_ATLAS}")
    fluid = {name for name, one in known_regions(names).items() if one.title.endswith(_FLUID)}
    values = {name: volume for name, volume in zip(names, volumes, strict=True) if name not in fluid}
    revision = (atlas.findtext("version") or "") if atlas is not None else ""
    return Measured(person, values, f"CAT12 {f'r{revision}' if revision else ''}".strip(), path)
