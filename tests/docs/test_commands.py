"""Whatever the pages call exists: commands, options, make targets, scripts, extras, links."""

import ast
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer
from PIL import Image

from rindices.cli import app
from rindices.settings import OutputSettings, SearchSettings, TableSettings
from rindices.value_kinds import settings_of
from tests.docs import pages

COMMANDS = {
    name: {word for one in command.params for word in (*one.opts, *one.secondary_opts)} | {"--help"}
    for name, command in typer.main.get_command(app).commands.items()
}
OPTIONS = {option for options in COMMANDS.values() for option in options} | {"--version"}
# These pages name options of scripts, too.
_OF_SCRIPTS = ("docs/results.md", "docs/reproduction.md", "docs/peers.md")
_OTHER_TOOLS = ("python", "make", "pip", "pytest", "mkdocs", "…", "#SBATCH", "--seg_only", "--tal_reg")


def _lists_in(code):
    """Return the commands that Python code has as lists of words."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.List) and node.elts and isinstance(node.elts[0], ast.Constant):
            words = [str(one.value) for one in node.elts if isinstance(one, ast.Constant)]
            if words[0] == "rindices":
                yield words


def called(page):
    """Return every call of rindices on a page, as words, wherever it stands."""
    found = []
    for block in pages.blocks_of(page):
        if block.language == "bash":
            found += [shlex.split(line, comments=True) for line in pages.commands_in(block.code)]
        elif block.language == "python":
            found += list(_lists_in(block.code))
    calls = [code for code in pages.inline_code_of(page) if code.startswith(("rindices ", ".venv/bin/rindices "))]
    found += [shlex.split(code.replace("[", " ").replace("]", " ")) for code in calls]
    for words in found:
        place = [number for number, word in enumerate(words) if Path(word).name == "rindices"]
        if place:
            yield words[place[0] + 1 :]


@pytest.mark.parametrize("page", pages.PAGES)
def test_commands_and_options_exist(page):
    for words in called(page):
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        names = [word for word in words[:1] if not word.startswith("-")]
        for name in names:
            assert name in COMMANDS, f"{page}: there is no command rindices {name}"
        known = COMMANDS[names[0]] if names else OPTIONS
        assert options <= known, f"{page}: rindices {' '.join(words)}: {', '.join(sorted(options - known))}"


@pytest.mark.parametrize("page", [page for page in pages.PAGES if page not in _OF_SCRIPTS])
def test_options_in_the_text_exist(page):
    for code in pages.inline_code_of(page):
        if not code.startswith(_OTHER_TOOLS):
            assert not set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", code)) - OPTIONS, f"{page}: {code}"


def test_make_targets_scripts_and_extras_exist():
    targets = set(re.findall(r"^([a-z][a-z-]*):", (pages.ROOT / "Makefile").read_text(), re.MULTILINE))
    project = tomllib.loads((pages.ROOT / "pyproject.toml").read_text())["project"]
    for page in pages.PAGES:
        shell = [
            line for block in pages.blocks_of(page) if block.language == "bash" for line in block.code.splitlines()
        ]
        for code in [*pages.inline_code_of(page), *shell]:
            words = code.partition("#")[0].split()
            if words[:1] == ["make"]:
                assert {word for word in words[1:] if "=" not in word} <= targets, f"{page}: {code}"
            for script in re.findall(r"(?<![\w/])(?:benchmarks|experiments|docs)/[\w/-]+\.py", code):
                assert (pages.ROOT / script).is_file(), f"{page}: {code}"
            for extras in re.findall(r"rindices\[([\w,]+)\]", code):
                assert set(extras.split(",")) <= set(project["optional-dependencies"]), f"{page}: {code}"


def test_links_of_the_readme_lead_somewhere():
    text = pages.text_of("README.md")
    links = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    assert links
    for link in links:
        assert (pages.ROOT / link.partition("#")[0]).is_file(), link
    assert len(text.splitlines()) <= 60


def test_files_that_contributors_are_sent_to_exist():
    words = pages.inline_code_of("CONTRIBUTING.md")
    places = [word for word in words if re.fullmatch(r"\.?[\w-]+(/[\w.-]*)+|[\w-]+\.(py|md|cff|toml)", word)]
    assert len(places) > 25
    missing = [
        one for one in places if not any((base / one).exists() for base in (pages.ROOT, pages.ROOT / "src/rindices"))
    ]
    assert {*missing} <= {"site/", "run.toml"}  # made by commands


def test_picture_of_the_readme_is_that_of_the_demonstration():
    """The picture carries the verdict of its run; the tutorial prints that of the demonstration."""
    told = pages.text_of("docs/tutorials/simulated-cohort.md")
    for name in ("report-first-screen.png", "report-first-screen-dark.png"):
        assert name in pages.text_of("README.md")
        with Image.open(pages.ROOT / "docs" / "pictures" / name) as picture:
            assert picture.text["Verdict"] in " ".join(told.split())
            assert picture.text["Verdict"].startswith(
                "At least 3 patterns are reproducible. Models of two separate halves"
            )
            assert picture.width >= 1600  # sharp on fine screens


def test_settings_that_are_not_named_like_their_options_are_listed():
    every = [one for kind in (TableSettings, SearchSettings, OutputSettings) for one in settings_of(kind)]
    others = [(one.name, one.option) for one in every if one.option != one.name.replace("_", "-")]
    assert re.findall(r"`(\w+)` \(`--([\w-]+)`\)", pages.text_of("docs/how-to/python.md")) == others
