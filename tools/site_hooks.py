"""Hooks of the site's build: insert the commands, the changelog, figures, drawings and sample reports."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import typer
from markdown.extensions.toc import slugify
from mkdocs.structure.files import File

from rindices.cli import app
from rindices.pages import report
from rindices.pages.elements import for_page
from rindices.plots.style import PALETTE

ROOT = Path(__file__).resolve().parents[1]
_DRAWING = re.compile(r'<img alt="([^"]*)" class="drawing" src="[^"]*pictures/([\w-]+\.svg)" ?/?>')
_FIGURE = re.compile(r'<img alt="([^"]*)" src="[^"]*(figures|pictures(?:/gallery)?)/([\w-]+\.svg)" ?/?>')
_SCREEN = re.compile(r'<img alt="([^"]*)" src="([^"]*pictures/)([\w-]+)\.png" ?/?>')
_LETTERS = re.compile(r"font(?:-size)?: ([\d.]+)px")  # in units of the view box
_LEAST = 10  # pixels; size of the smallest text in a figure
_OPTION = re.compile(r"<code>[^<]*</code>")
_SECTION = re.compile(r"^## (.*?)\n.*?!\[([^\]]*)\]\((pictures/gallery/[\w.]+)\)", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the figures in `results`, and write the sample reports."""
    for path in sorted([*(ROOT / "results").glob("*.svg"), *(ROOT / "results").glob("*.png")]):
        files.append(File.generated(config, f"figures/{path.name}", abs_src_path=str(path)))
    for path in sorted((ROOT / "docs" / "samples").glob("*.zip")):
        files.append(File.generated(config, f"samples/{path.stem}.html", content=_sample(path)))
    return files


def _sample(archive: Path) -> str:
    """Return the report of an archived run."""
    with tempfile.TemporaryDirectory() as run:
        shutil.unpack_archive(archive, run)
        return report.write_report(Path(run)).read_text(encoding="utf-8")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace placeholders by text that has its source elsewhere."""
    if "<!-- thumbnails -->" in markdown:
        return markdown.replace("<!-- thumbnails -->", thumbnails(markdown))
    if page.file.src_uri in ("reproduction.md", "results.md"):
        return markdown.replace("](../results/", "](figures/")
    if "<!-- commands -->" in markdown:
        return markdown.replace("<!-- commands -->", command_line())
    if "<!-- changelog -->" in markdown:
        text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        return markdown.replace("<!-- changelog -->", text.partition("\n")[2].strip())
    return markdown


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Inline drawings and figures, so that their colours follow the page, and keep options on one line."""
    drawn = _DRAWING.sub(lambda found: _drawing(found[1], found[2]), html)
    drawn = _FIGURE.sub(lambda found: _figure(found[1], _folder(found[2]) / found[3]), drawn)
    drawn = _SCREEN.sub(_both_schemes, drawn)
    kept = _OPTION.sub(lambda found: re.sub(r"--[a-z][a-z-]+", r'<span class="option">\g<0></span>', found[0]), drawn)
    return kept if drawn == html else _palette() + kept


def thumbnails(markdown: str) -> str:
    """Return a thumbnail of each section of the gallery, linked to it."""
    parts = [f"## {part}" for part in markdown.split("\n## ")[1:]]
    found = [match for part in parts if (match := _SECTION.match(part))]
    links = [
        f"[![{words}]({path}){{ loading=lazy }}<span>{title}</span>](#{_anchor(title)})"
        for title, words, path in map(re.Match.groups, found)
    ]
    return '<div class="thumbnails" markdown>\n' + "\n".join(links) + "\n</div>"


def _anchor(title: str) -> str:
    return slugify(title, "-")


def _folder(name: str) -> Path:
    return ROOT / ("results" if name == "figures" else f"docs/{name}")


def _figure(words: str, path: Path) -> str:
    """Return a figure in the colours of the page, wide enough for legible text; on a phone it scrolls sideways."""
    svg = path.read_text(encoding="utf-8")
    svg = svg[svg.index("<svg") :]
    least = min(map(float, _LETTERS.findall(svg)), default=_LEAST)
    width = float(svg.partition('viewBox="')[2].split()[2]) * _LEAST / least
    shown = re.sub("min-width: [0-9]+", f"min-width: {width:.0f}", for_page(svg, words))
    return f'<span class="drawing figure">{shown}</span>'


def _palette() -> str:
    light, dark = ("".join(f"--{name}: {two[place]}; " for name, two in PALETTE.items()) for place in (0, 1))
    dark += "--paper: var(--md-default-bg-color); --bad-back: #3a1d1b; --bad: #ff8a80; --bad-ink: #ffc9c4"
    return f'<style>:root {{ {light}}} [data-md-color-scheme="slate"] {{ {dark} }}</style>'


def _both_schemes(found: re.Match[str]) -> str:
    """Return a screenshot, with its dark version if there is one; the page shows the one that fits its scheme."""
    words, folder, name = found.groups()
    if not (ROOT / "docs" / "pictures" / f"{name}-dark.png").is_file():
        return found[0]
    return "".join(
        f'<img alt="{words}" src="{folder}{file}.png#only-{scheme}">'
        for scheme, file in (("light", name), ("dark", f"{name}-dark"))
    )


def _drawing(words: str, name: str) -> str:
    """Return a diagram in the colours of the page, wide enough for legible text."""
    svg = (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8")
    for title, (light, _) in PALETTE.items():
        svg = svg.replace(f'"{light}"', f'"var(--{title}, {light})"')
    least = min(map(float, re.findall(r'font-size="([\d.]+)"', svg)))
    width = float(svg.partition('viewBox="')[2].split()[2]) * _LEAST / least
    opening = f'<svg role="img" aria-label="{words}" style="min-width: {width:.0f}px"'
    return f'<span class="drawing">{svg[svg.index("<svg") :].replace("<svg", opening, 1)}</span>'


def command_line() -> str:
    """Return all commands with their arguments and options as Markdown, taken from the application."""
    group: Any = typer.main.get_command(app)
    return "\n".join(line for name, command in sorted(group.commands.items()) for line in _command(name, command))


def _command(name: str, command: Any) -> list[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    usage = " ".join(["rindices", name, *(one.name.upper() for one in arguments), "[OPTIONS]"])
    lines = [f"## rindices {name}", "", *_paragraphs(command.help), "```text", usage, "```", ""]
    lines += ["| argument or option | what it is | default |", "| --- | --- | --- |"]
    lines += [f"| `{one.name.upper()}` | {_cell(one.help)} | {_needed(one)} |" for one in arguments]
    lines += [f"| `{_names(one)}` | {_cell(one.help)} | {_default(one)} |" for one in options]
    return [*lines, ""]


def _paragraphs(text: str) -> list[str]:
    return [line for part in text.strip().split("\n\n") for line in (" ".join(part.split()), "")]


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*")


def _names(option: Any) -> str:
    return " / ".join([*option.opts, *option.secondary_opts])


def _needed(one: Any) -> str:
    return "needed" if one.required else ""


def _default(option: Any) -> str:
    if option.required:
        return "needed"
    if isinstance(option.show_default, str):
        return option.show_default
    if option.is_flag:
        return "on" if option.default else "off"
    return "" if option.default in (None, "") else f"`{option.default}`"
