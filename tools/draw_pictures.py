"""Redraw the pictures of the documentation from the run folders that the tutorials produce.

python tools/draw_pictures.py --demo demo/run --study study-run --abide abide-run

Pictures of runs that are not given stay as they are. Screenshots need Chromium or Chrome.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
from itertools import product
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from rindices.pages.report import write_report
from rindices.record import read_summary

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WIDTH, MARGIN, GAP = 1760, 44, 24  # pixels
# Figures of the report, by name without number, and the pictures made from them. The site inlines these drawings, so
# that text is sharp and colours follow the page.
FIGURES = {
    "demo": {"severities_1": "r-indices", "recovery": "recovery", "pattern_1": "pattern", "brain_pattern_1": "brain"},
    "study": {"spectrum": "directions", "associations_patients": "associations"},
    "abide": {"brain_pattern_1": "abide-brain"},
}
# Screenshots, each in light and dark mode, and the parts of the page that they show, from top to bottom.
SCREENS: dict[str, dict[str, tuple[str, ...]]] = {
    "demo": {"report-first-screen": ("header.bar", "main > header", "#pattern-1")},
    "study": {},
    "abide": {"abide-report": ("header.bar", "main > header", "#difference")},
}


def save(image: Image.Image, path: Path, verdict: str) -> None:
    """Save a picture of a report, small but sharp; a palette would put steps into the colour scales of brains.

    The verdict is stored in the file, so that a test can compare it with the documentation.
    """
    about = PngInfo()
    about.add_text("Verdict", verdict)
    small = image.convert("RGB").resize((WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS)
    small.point(lambda value: value & 252 | value >> 6).save(path, optimize=True, pnginfo=about)


def pictures(run: Path, kind: str) -> None:
    """Save the figures and screenshots of a run's report."""
    with tempfile.TemporaryDirectory() as name:
        report = write_report(run, Path(name, "report.html"), figures=Path(name, "figures"))
        made = {path.stem.partition("_")[2]: path for path in Path(name, "figures").glob("*.svg")}
        for figure, picture in FIGURES[kind].items():
            shutil.copy(made[figure], PICTURES / f"{picture}.svg")
        if SCREENS[kind]:
            summary = read_summary(run)
            screens(report, SCREENS[kind], f"{summary.verdict_words[0]} {summary.reliable_reason}")


def screens(report: Path, wanted: dict[str, tuple[str, ...]], verdict: str) -> None:
    """Take screenshots of a report in a browser, in light and dark mode."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=180_000)
        for (name, places), (scheme, ending) in product(wanted.items(), (("light", ""), ("dark", "-dark"))):
            size = {"width": 1160, "height": 1400}  # fits the tallest part
            page = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=2)
            page.set_default_timeout(180_000)
            page.goto(report.as_uri())
            page.add_style_tag(
                content=".slider { display: none !important } .tools { visibility: hidden } "
                "header.bar { position: static !important }"
            )
            parts = [Image.open(io.BytesIO(page.locator(place).first.screenshot())) for place in places]
            whole_size = parts[0].width + 2 * MARGIN, sum(one.height + GAP for one in parts) - GAP + 2 * MARGIN
            whole = Image.new("RGB", whole_size, parts[0].getpixel((0, 0)))
            for place, one in enumerate(parts):
                whole.paste(one, (MARGIN, MARGIN + sum(before.height + GAP for before in parts[:place])))
            save(whole, PICTURES / f"{name}{ending}.png", verdict)
        browser.close()


def main() -> None:
    """Make the pictures of the given runs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in FIGURES:
        options.add_argument(f"--{kind}", type=Path, help="its run folder")
    for kind, run in vars(options.parse_args()).items():
        if run is not None:
            pictures(run, kind)


if __name__ == "__main__":
    main()
