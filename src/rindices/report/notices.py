"""Warnings, each where it belongs: with the section it is about, or at the top."""

import re
from collections.abc import Collection

# The first that fits counts. What fits none, or whose section is not there, stands at the top.
_PLACES = (
    ("repetitions", re.compile(r"^Repetitions left out")),
    ("verdict", re.compile(r"^Patients and controls differ in|outside the controls' range|controls' R\d")),
    ("change", re.compile(r"per year|visits?\b", re.IGNORECASE)),
    ("people", re.compile(r"\brows? \d|outlier|impossible|taken as missing|left out|without enough|neither control")),
)


def sort_warnings(warnings: list[str], sections: Collection[str]) -> dict[str, list[str]]:
    """Return the warnings of each section, general ones under an empty name.

    Examples
    --------
    >>> sort_warnings(["Only 9 controls.", "Patients and controls differ in age."], {"verdict"})
    {'': ['Only 9 controls.'], 'verdict': ['Patients and controls differ in age.']}
    """
    sorted_warnings: dict[str, list[str]] = {"": []}
    for warning in dict.fromkeys(warnings):
        fitting = (name for name, words in _PLACES if name in sections and words.search(warning))
        sorted_warnings.setdefault(next(fitting, ""), []).append(warning)
    return sorted_warnings
