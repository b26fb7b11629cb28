"""Every block of code in README and docs is run, and everything that the pages call or list exists."""

import ast
import doctest
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import typer
from safetensors import safe_open

from rindices.cli import app
from rindices.presets import blind, fast, linear, official, paper
from rindices.settings import OutputSettings, SearchSettings, TableSettings
from rindices.value_kinds import settings_of
from tests.docs import pages
from tests.docs.conftest import rindices
from tests.docs.given import REGIONS, provide
from tests.docs.pages import ROOT, text_of
from tests.pages.page import missing

# Everything that the pages call exists: commands, options, make targets, scripts, extras, links.


COMMANDS = {
    name: {word for one in command.params for word in (*one.opts, *one.secondary_opts)} | {"--help"}
    for name, command in typer.main.get_command(app).commands.items()
}
OPTIONS = {option for options in COMMANDS.values() for option in options} | {"--version"}
# These pages also name options of scripts.
_OF_SCRIPTS = ("docs/results.md", "docs/reproduction.md", "docs/peers.md")
_OTHER_TOOLS = ("python", "make", "pip", "pytest", "mkdocs", "…", "#SBATCH", "--seg_only", "--tal_reg")


def called(page):
    """Yield every call of rindices on a page, in blocks and in the text, as words."""
    lines = [
        line for block in pages.blocks_of(page) if block.language == "bash" for line in pages.commands_in(block.code)
    ]
    calls = [code for code in pages.inline_code_of(page) if code.startswith(("rindices ", ".venv/bin/rindices "))]
    lines += [code.replace("[", " ").replace("]", " ") for code in calls]
    for words in (shlex.split(line, comments=True) for line in lines):
        names = [Path(word).name for word in words]
        if "rindices" in names:
            yield words[names.index("rindices") + 1 :]


@pytest.mark.parametrize("page", pages.PAGES)
def test_commands_and_options_exist(page):
    for words in called(page):
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        names = [word for word in words[:1] if not word.startswith("-")]
        assert [f"{page}: there is no command rindices {name}" for name in names if name not in COMMANDS] == []
        known = COMMANDS[names[0]] if names else OPTIONS
        assert options <= known, f"{page}: rindices {' '.join(words)}: {', '.join(sorted(options - known))}"


@pytest.mark.parametrize("page", [page for page in pages.PAGES if page not in _OF_SCRIPTS])
def test_options_in_the_text_exist(page):
    for code in pages.inline_code_of(page):
        if not code.startswith(_OTHER_TOOLS):
            assert not set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", code)) - OPTIONS, f"{page}: {code}"


def test_make_targets_scripts_and_extras_exist():
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    known = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    for page in pages.PAGES:
        shell = [block.code for block in pages.blocks_of(page) if block.language == "bash"]
        for code in [*pages.inline_code_of(page), *"\n".join(shell).splitlines()]:
            words = code.partition("#")[0].split()
            asked = {word for word in words[1:] if "=" not in word} if words[:1] == ["make"] else set()
            scripts = re.findall(r"(?<![\w/])(?:benchmarks|experiments|docs)/[\w/-]+\.py", code)
            extras = {name for names in re.findall(r"rindices\[([\w,]+)\]", code) for name in names.split(",")}
            absent = [script for script in scripts if not (ROOT / script).is_file()]
            assert (asked - targets, absent, extras - known) == (set(), [], set()), f"{page}: {code}"


def test_links_of_the_readme_lead_somewhere():
    text = text_of("README.md")
    links = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    assert [link for link in links if not (ROOT / link.partition("#")[0]).is_file()] == []


def test_settings_that_are_not_named_like_their_options_are_listed():
    every = [one for kind in (TableSettings, SearchSettings, OutputSettings) for one in settings_of(kind)]
    others = [(one.name, one.option) for one in every if one.option != one.name.replace("_", "-")]
    assert re.findall(r"`(\w+)` \(`--([\w-]+)`\)", text_of("docs/how-to/python.md")) == others


# Every block of code in README and docs is run, or says why it cannot be.


LANGUAGES = {"bash", "python", "pycon", "text", "json", "toml"}


class Page:
    """A reader who follows a page from the top: one folder, one Python session."""

    def __init__(self):
        self.names, self.printed = {"__name__": "__main__"}, ""

    def follow(self, block):
        if not block.not_run:
            getattr(self, f"_{block.language}", lambda block: None)(block)

    def _bash(self, block):
        self.printed = ""
        for line in pages.commands_in(block.code):
            command, *words = shlex.split(line, comments=True)
            assert Path(command).name == "rindices", f"{block}: say why this is not run: {line}"
            self.printed += rindices(*words, code=2 if block.comment == "refused" else 0)

    def _python(self, block):
        exec(compile("\n" * block.line + block.code, block.page, "exec"), self.names)

    def _pycon(self, block):
        test = doctest.DocTestParser().get_doctest(block.code + "\n", self.names, block.page, block.page, block.line)
        told = []
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append, clear_globs=False)
        assert not told, "".join(told)
        self.names |= test.globs

    def _text(self, block):
        """Compare the output on the page with the output here, except for numbers: trainings are shorter here."""
        if block.comment != "output":
            return
        printed, shown = (
            [re.sub(r"\d[\d.,]*", "0", line.strip()) for line in text.splitlines()]
            for text in (self.printed, block.code)
        )
        following = iter(printed)
        absent = [line for line in shown if line != "..." and line not in following]
        assert absent == [], f"{block}: not printed\n{self.printed}"


@pytest.mark.filterwarnings("ignore::UserWarning")  # for trainings as short as these
@pytest.mark.usefixtures("short_trainings")
@pytest.mark.parametrize(
    "page",
    [
        # The study has three numbers of patterns in 128 regions: three programs to compile.
        pytest.param(page, marks=pytest.mark.slow) if page == "docs/tutorials/simulated-study.md" else page
        for page in pages.PAGES
        if any(block.language in LANGUAGES for block in pages.blocks_of(page))
    ],
)
def test_a_reader_can_follow(page, tmp_path, monkeypatch, request):
    names, reader = pages.given_of(page), Page()
    run = request.getfixturevalue("finished_run") if "run" in names else None
    monkeypatch.chdir(tmp_path)
    for name in names:
        provide(name, tmp_path, run)
    for block in pages.blocks_of(page):
        reader.follow(block)


@pytest.mark.parametrize(
    "block",
    [block for page in pages.PAGES for block in pages.blocks_of(page)],
    ids=lambda block: f"{block.page}:{block.line}",
)
def test_blocks_have_a_language_and_those_not_run_parse(block):
    assert block.language in LANGUAGES, f"{block}: name one of {', '.join(sorted(LANGUAGES))}"
    assert block.not_run or not block.comment.startswith("not run"), f"{block}: say why"
    if block.not_run and block.language == "python":
        ast.parse(block.code)
    elif block.not_run and block.language == "bash":
        bash = shutil.which("bash") or pytest.skip("there is no bash")
        subprocess.run([bash, "-n"], input=block.code, text=True, check=True)


# The page on file formats lists everything that a run writes, and nothing else.


# Tables whose columns include a user's own names.
_OWN = {"z_scores.csv": set(REGIONS), "analysis/flow.csv": {"impossible value"}}
# Columns that need three repetitions.
_MORE = {"r_indices.csv": {"strangeness"} | {f"severity{k}_{end}" for k in "1M" for end in ("low", "high")}}
_SOMETIMES = {"failure", "recovery"}  # keys of failed runs and of demonstrations


def section(title):
    """Return the lines of the page below a heading, up to the next one."""
    page = text_of("docs/reference/file-formats.md")
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)
    return found[1].splitlines()


def named(title):
    """Return the names before the colon in the list of a section."""
    rows = [line for line in section(title) if line.startswith("- `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.partition(": ")[0])}


def test_every_table_and_column_is_told(finished_run):
    found = {path.relative_to(finished_run).as_posix(): set(pd.read_csv(path)) for path in finished_run.rglob("*.csv")}
    assert len(found) > 12
    for name, columns in found.items():
        own = columns - {"participant_id", "visit"} if name == "variables.csv" else _OWN.get(name, set())
        # The scores of all patterns but the first are called M on the page.
        general = {re.sub(r"^(r|severity|centile)[2-9](?=$|_)", r"\1M", str(column)) for column in columns - own}
        assert general | _MORE.get(name, set()) == named(f"`{name}`"), name


def test_every_file_key_and_section_is_told(finished_run):
    written = {path.name + "/" * path.is_dir() for path in finished_run.iterdir()}
    assert named("The run folder") ^ written == {"truth.csv", "figures/", "brain/", "voxelwise/", "journal/"}
    summary = json.loads((finished_run / "summary.json").read_text())
    assert named("`summary.json`") - _SOMETIMES == set(summary)
    assert not missing(" ".join(section("`summary.json`")), *(f"`{key}`" for key in summary["evidence"]))
    sections = set(tomllib.loads((finished_run / "run.toml").read_text()))
    assert set(re.findall(r"`\[(\w+)\]`", " ".join(section("`run.toml`")))) == sections
    with safe_open(finished_run / "model.safetensors", framework="numpy") as file:
        metadata, arrays = file.metadata(), list(file.keys())
    assert named("`model.safetensors`") == set(json.loads(metadata["header"]))
    words = [f"`{word}`" for word in (*metadata, *(f"{array.partition('.')[0]}.*" for array in arrays))]
    assert not missing(" ".join(section("`model.safetensors`")), *words, f"| {metadata['format_version']} |")


# Every function and test that experiments/paper/README.md names exists.


SOURCE = "\n".join(
    text_of(path) for folder in ("src/rindices", "experiments") for path in sorted((ROOT / folder).rglob("*.py"))
)


@pytest.mark.parametrize(
    "row",
    [
        [cell.strip() for cell in line.strip("|\n").split(" | ")]
        for line in text_of("experiments/paper/README.md").splitlines()
        if line.startswith("| ") and not line.startswith(("| ---", "| paper "))
    ],
    ids=lambda row: row[0],
)
def test_what_a_row_names_is_there(row):
    _, functions, tests, said = row
    for name in re.findall("`([^`]+)`", functions):
        there = [*(ROOT / "experiments").rglob(name)] if name.endswith(".py") else []
        assert there or re.search(rf"^ *(def|class) {name.rpartition('.')[2]}\b", SOURCE, re.MULTILINE), name
    named = [test.partition("::") for test in re.findall("`([^`]+)`", tests)]
    assert named
    assert [test for test in named if test[1] and f"\ndef {test[2]}(" not in text_of(test[0])] == []
    assert [path for path, *_ in named if not (ROOT / path).is_file()] == []
    assert said


# No template mark is left unrendered, and numbers of steps in texts are those of the settings.


SRC = ROOT / "src" / "rindices"
STEPS = re.compile(r"(\d{1,3}(?:,\d{3})+|\d{3,6}) (?:training )?steps")


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.j2")), ids=lambda path: path.name)
def test_no_mark_stands_inside_another(path):
    """A mark in a string inside another mark would be printed literally."""
    assert re.findall(r"\{\{(?:(?!\}\}).)*(?:\{\{|\{%)", path.read_text(encoding="utf-8"), re.DOTALL) == []


def test_numbers_of_steps_are_those_of_the_presets():
    schedules = [preset().schedule for preset in (fast, linear, blind, paper, official)]  # never patched by other tests
    known = {of for schedule in schedules for of in (schedule.min_steps, schedule.max_steps)}
    texts = [ROOT / "README.md", *(ROOT / "docs" / "how-to").glob("*.md"), ROOT / "docs/explanation/method.md"]
    texts += [SRC / "estimator.py", SRC / "search.py", SRC / "settings.py"]
    said = {path.name: STEPS.findall(path.read_text(encoding="utf-8")) for path in texts}
    assert {name: words for name, words in said.items() if {int(one.replace(",", "")) for one in words} - known} == {}
