"""The pages of the documentation, taken apart: blocks of code, inline code, and comments."""

import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
]
_COMMENT, _FENCE = re.compile(r"<!--\s*(.*?)\s*-->"), re.compile(r"^ *```\w*\s*$", re.MULTILINE)
_BLOCK = re.compile(
    r"(?:^ *<!--[ \t]*(?P<comment>[^\n]*?)[ \t]*-->\s*?\n\s*?)?"
    r"^(?P<indent> *)```(?P<language>\w*)[ \t]*\n(?P<code>.*?)^ *```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A block of code: its place, its language, and the comment right before it."""

    page: str
    line: int
    language: str
    code: str
    comment: str

    @property
    def not_run(self):
        """Why it cannot be run here; empty if it can."""
        return self.comment.removeprefix("not run:").strip() if self.comment.startswith("not run:") else ""

    def __str__(self):
        return f"{self.page}, line {self.line}"


def script(path):
    """Import a script outside the package as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page):
    """Return the blocks of a page in order."""
    text, found = text_of(page), []
    for block in _BLOCK.finditer(text):
        code = "\n".join(line[len(block["indent"]) :] for line in block["code"].splitlines())
        line = 1 + text.count("\n", 0, block.start("indent"))
        found.append(Block(page, line, block["language"], code, block["comment"] or ""))
    assert len(_FENCE.findall(text)) == 2 * len(found), f"{page}: a block of code is never closed"
    return found


def inline_code_of(page):
    """Return the inline code of a page, outside its blocks of code."""
    prose = _COMMENT.sub("", _BLOCK.sub("", text_of(page)))
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]


def given_of(page):
    """Return the files that a page takes for granted."""
    said = [comment.removeprefix("given:") for comment in _COMMENT.findall(text_of(page)) if comment[:6] == "given:"]
    return [name.strip() for names in said for name in names.split(",")]


def commands_in(code):
    """Return the command lines of a shell block; a backslash at the end continues a line."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
