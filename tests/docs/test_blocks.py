"""Every block of code in README and docs is run, or says why it cannot be."""

import ast
import doctest
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.conftest import rindices
from tests.docs.given import provide

LANGUAGES = {"bash", "python", "pycon", "text", "json", "toml"}
SLOW = "docs/tutorials/simulated-study.md"  # three numbers of patterns in 128 regions: three programs to compile
WITH_CODE = [
    pytest.param(page, marks=pytest.mark.slow) if page == SLOW else page
    for page in pages.PAGES
    if any(block.language in LANGUAGES for block in pages.blocks_of(page))
]
BLOCKS = [block for page in pages.PAGES for block in pages.blocks_of(page)]


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
        """Compare what the page shows with what was printed, figures apart: trainings are shorter here."""
        if block.comment != "output":
            return
        printed = iter([_without_figures(line) for line in self.printed.splitlines()])
        for line in block.code.splitlines():
            if line != "...":
                assert _without_figures(line) in printed, f"{block}: not printed: {line}\n{self.printed}"


def _without_figures(line):
    return re.sub(r"\d[\d.,]*", "0", line.strip())


@pytest.mark.filterwarnings("ignore::UserWarning")  # trainings as short as these are warned of
@pytest.mark.usefixtures("short_trainings")
@pytest.mark.parametrize("page", WITH_CODE)
def test_a_reader_can_follow(page, tmp_path, monkeypatch, request):
    names, reader = pages.given_of(page), Page()
    run = request.getfixturevalue("finished_run") if "run" in names else None
    monkeypatch.chdir(tmp_path)
    for name in names:
        provide(name, tmp_path, run)
    for block in pages.blocks_of(page):
        reader.follow(block)


def test_what_is_given_is_used():
    for page in pages.PAGES:
        used = " ".join(block.code for block in pages.blocks_of(page) if not block.not_run)
        for name in pages.given_of(page):
            assert name in used, f"{page} takes {name} for granted, but does not use it"


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_blocks_have_a_language_and_those_not_run_parse(block):
    assert block.language in LANGUAGES, f"{block}: name one of {', '.join(sorted(LANGUAGES))}"
    assert block.not_run or not block.comment.startswith("not run"), f"{block}: say why"
    if block.not_run and block.language == "python":
        ast.parse(block.code)
    elif block.not_run and block.language == "bash":
        bash = shutil.which("bash") or pytest.skip("there is no bash")
        checked = subprocess.run([bash, "-n"], input=block.code, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, f"{block}: {checked.stderr}"


def test_a_wrong_figure_and_a_wrong_command_would_be_noticed():
    reader = Page()
    with pytest.raises(AssertionError, match="Expected"):
        reader.follow(pages.Block("page", 1, "pycon", ">>> 1 + 1\n3", ""))
    with pytest.raises(AssertionError, match="no-such-option"):
        reader.follow(pages.Block("page", 1, "bash", "rindices describe x --no-such-option", ""))
    reader.printed = "Scored 12 people."
    with pytest.raises(AssertionError, match="not printed"):
        reader.follow(pages.Block("page", 1, "text", "Scored 100 patients.", "output"))
    reader.follow(pages.Block("page", 1, "text", "Scored 100 people.", "output"))
