"""No mark is left unrendered, and numbers of steps in texts are those of the settings."""

import re
from pathlib import Path

import pytest

import rindices
from rindices.presets import blind, fast, linear, official, paper
from tests.docs.pages import ROOT

SRC = Path(rindices.__file__).parent
STEPS = re.compile(r"(\d{1,3}(?:,\d{3})+|\d{3,6}) (?:training )?steps")


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.j2")), ids=lambda path: path.name)
def test_no_mark_stands_inside_another(path):
    """A mark within a text of a mark is printed as it is."""
    assert re.findall(r"\{\{(?:(?!\}\}).)*(?:\{\{|\{%)", path.read_text(encoding="utf-8"), re.DOTALL) == []


def test_numbers_of_steps_are_those_of_the_presets():
    schedules = [preset().schedule for preset in (fast, linear, blind, paper, official)]  # whatever other tests patch
    known = {of for schedule in schedules for of in (schedule.min_steps, schedule.max_steps)}
    pages = [ROOT / "README.md", *(ROOT / "docs" / "how-to").glob("*.md"), ROOT / "docs/explanation/method.md"]
    assert [
        (path.name, words)
        for path in [*pages, SRC / "estimator.py", SRC / "search.py", SRC / "settings.py"]
        for words in STEPS.findall(path.read_text(encoding="utf-8"))
        if int(words.replace(",", "")) not in known
    ] == []
