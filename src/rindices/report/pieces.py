"""The pieces that sections are made of: pictures, numbers and lists in words."""

import base64
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from rindices import plots


class Picture(NamedTuple):
    """An image inside the page, and the same in words."""

    source: str
    alt: str


def picture(figure: Figure, alt: str) -> Picture:
    """Return a figure as an image that lies in the page itself."""
    code = base64.b64encode(plots.figure_svg(figure).encode("utf-8")).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{code}", alt)


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


def joined(values: Any) -> str:
    """Return a list as text with commas, a single value as it is."""
    return ", ".join(str(value) for value in values) if isinstance(values, list) else str(values or "")


def duration(seconds: float | None) -> str:
    """Return a time in hours, minutes and seconds."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{value} {unit}" for value, unit in parts if value) or "under 1 s"
