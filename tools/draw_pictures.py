"""Make the pictures of the pages again, from the run folders that the tutorials leave behind.

python tools/draw_pictures.py --demo demo/run --study study-run --abide abide-run

What is not given is left as it is. Screens need Chromium or Chrome.
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
# The name of a figure in the report's folder, without its number, and that of the picture: a drawing that the site puts
# into its page, so that its letters are sharp and its colours those of the page.
FIGURES = {
    "demo": {"severities_1": "r-indices", "recovery": "recovery", "pattern_1": "pattern", "brain_pattern_1": "brain"},
    "study": {"spectrum": "directions", "associations_patients": "associations"},
    "abide": {"brain_pattern_1": "abide-brain"},
}
# The name of a picture, which is made light and dark, and which parts of the page it shows, one below another.
SCREENS: dict[str, dict[str, tuple[str, ...]]] = {
    "demo": {"report-first-screen": ("header.bar", "main > header", "#pattern-1")},
    "study": {},
    "abide": {"abide-report": ("header.bar", "main > header", "#difference")},
}


def save(image: Image.Image, path: Path, verdict: str) -> None:
    """Keep a picture of a report, small but sharp; with a palette, the scale of a brain would have steps.

    It says in itself what the verdict was, so that a test can compare them.
    """
    about = PngInfo()
    about.add_text("Verdict", verdict)
    small = image.convert("RGB").resize((WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS)
    small.point(lambda value: value & 252 | value >> 6).save(path, optimize=True, pnginfo=about)


def pictures(run: Path, kind: str) -> None:
    """Take figures and screens of a run's report."""
    with tempfile.TemporaryDirectory() as name:
        report = write_report(run, Path(name, "report.html"), figures=Path(name, "figures"))
        made = {path.stem.partition("_")[2]: path for path in Path(name, "figures").glob("*.svg")}
        for figure, picture in FIGURES[kind].items():
            shutil.copy(made[figure], PICTURES / f"{picture}.svg")
        if SCREENS[kind]:
            summary = read_summary(run)
            screens(report, SCREENS[kind], f"{summary.verdict_words[0]} {summary.reliable_reason}")


def screens(report: Path, wanted: dict[str, tuple[str, ...]], verdict: str) -> None:
    """Photograph a report in a real browser, by day and by night."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=180_000)
        for (name, places), (scheme, ending) in product(wanted.items(), (("light", ""), ("dark", "-dark"))):
            size = {"width": 1160, "height": 1400}  # the highest part fits
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
    """Make the pictures of the runs that are given."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in FIGURES:
        options.add_argument(f"--{kind}", type=Path, help="its run folder")
    for kind, run in vars(options.parse_args()).items():
        if run is not None:
            pictures(run, kind)


if __name__ == "__main__":
    main()
