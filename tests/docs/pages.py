"""The pages of the documentation, taken apart: blocks of code, words of code in a line, links."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->")
_FENCE = re.compile(r"^( *)```(\w*)\s*$")


class Block(NamedTuple):
    """A block of code: where it begins, its language, and the comment right before it."""

    page: str
    line: int
    language: str
    code: str
    comment: str

    @property
    def not_run(self):
        """Why it cannot be run here; nothing where it can."""
        return self.comment.removeprefix("not run:").strip() if self.comment.startswith("not run:") else ""

    def __str__(self):
        return f"{self.page}, line {self.line}"


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page):
    """Return the blocks of a page in their order."""
    found, comment, opened, lines = [], "", None, []
    for number, line in enumerate(text_of(page).splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, lines = (number, fence[2], len(fence[1]), comment), []
        elif opened and fence:
            first, language, indent, said = opened
            found.append(Block(page, first, language, "\n".join(one[indent:] for one in lines), said))
            opened, comment = None, ""
        elif opened:
            lines.append(line)
        elif line.strip():
            said = _COMMENT.fullmatch(line.strip())
            comment = said[1] if said else ""
    assert opened is None, f"{page}: a block of code is never closed"
    return found


def prose_of(page):
    """Return a page without its blocks of code."""
    text = re.sub(r"^( *)```\w*\s*$.*?^\1```\s*$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return _COMMENT.sub("", text)


def inline_code_of(page):
    """Return what stands in backticks in the text of a page."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose_of(page))]


def given_of(page):
    """Return the files that a page takes for granted."""
    said = [comment.removeprefix("given:") for comment in _COMMENT.findall(text_of(page)) if comment[:6] == "given:"]
    return [name.strip() for names in said for name in names.split(",")]


def commands_in(code):
    """Return the command lines of a shell block; lines that end in a backslash go on."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
