"""The pieces that sections are made of: pictures, numbers and lists in words."""

import base64
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from rindices import plots
from rindices.files import atomic_file

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Picture(NamedTuple):
    """An image inside the page, and the same in words."""

    source: str
    alt: str


class Gallery:
    """All figures of a report in their order, so that they can be saved as files too."""

    def __init__(self) -> None:
        self.figures: list[tuple[str, Figure, str]] = []

    def draw(self, name: str, figure: Figure, alt: str) -> Picture:
        """Keep a figure under a name, and return it as an image that lies in the page itself."""
        text = plots.figure_svg(figure)
        self.figures.append((name, figure, text))
        code = base64.b64encode(text.encode("utf-8")).decode("ascii")
        return Picture(f"data:image/svg+xml;base64,{code}", alt)

    def save(self, folder: Path) -> list[Path]:
        """Write each figure as SVG and PNG, ``01_r_indices.svg`` and so on, and return the paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for place, (name, figure, text) in enumerate(self.figures, start=1):
            path = folder / f"{place:02d}_{name}.svg"
            with atomic_file(path) as beside:
                beside.write_bytes(text.encode("utf-8", errors="replace"))
            with atomic_file(path.with_suffix(".png")) as beside:
                plots.figure_png(figure, beside)
            paths += [path, path.with_suffix(".png")]
        return paths


def number(value: Any, digits: int = 2, sign: str = "") -> str:
    """Return a number with so many digits, a dash where there is none."""
    if pd.isna(value):
        return "–"
    # Adding zero turns a rounded "-0.00" into "0.00"; the true minus is read aloud, a hyphen may not be.
    return f"{round(value, digits) + 0.0:{sign}.{digits}f}".replace("-", "−")


def interval(low: Any, high: Any, digits: int = 3) -> str:
    """Return an interval in words, nothing where it is unknown."""
    if pd.isna(low) or pd.isna(high):
        return ""
    # A dash beside a minus sign is hard to read.
    between = "–" if low >= 0 else " to "
    return between.join(number(limit, digits) for limit in (low, high))


def p_value(value: Any) -> str:
    """Return a p value as it is written in a paper, a dash where there is none."""
    return "< 0.001" if not pd.isna(value) and value < 0.001 else number(value, 3)


def p_words(letter: str, value: Any) -> str:
    """Return a p or q value as an equation: ``q = 0.012`` or ``q < 0.001``."""
    text = p_value(value)
    return f"{letter} {text}" if text.startswith("<") else f"{letter} = {text}"


def joined(values: Any) -> str:
    """Return a list as text with commas, a single value as it is."""
    return ", ".join(str(value) for value in values) if isinstance(values, list) else str(values or "")


def listed(names: list[str]) -> str:
    """Return names as they stand in a sentence: ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def counted(value: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: ``1 person``, ``2,000 people``."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def in_words(value: int) -> str:
    """Return a small number as a word."""
    return _WORDS[value] if 0 <= value < len(_WORDS) else str(value)


def duration(seconds: float | None) -> str:
    """Return a time in hours, minutes and seconds."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{value} {unit}" for value, unit in parts if value) or "under 1 s"
