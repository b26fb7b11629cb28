"""Make the pictures of the pages again, from the run folders that the tutorials leave behind.

python docs/pictures/make.py --demo demo/run --study study-run --abide abide-run

What is not given is left as it is. Screens need Chromium or Chrome.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image

from rindices.pages.report import write_report

HERE = Path(__file__).parent
WIDTH, NARROWER, COLOURS = 1100, 760, 128
# The name of a figure in the report's folder, without its number, and that of the picture.
FIGURES = {
    "demo": {"r_indices": "r-indices", "recovery": "recovery", "pattern_1": "pattern", "brain_pattern_1": "brain"},
    "study": {"spectrum": "directions", "associations_patients": "associations"},
    "abide": {"brain_pattern_1": "abide-brain"},
}
# The name of a picture: whether it is dark, and what of the page it shows; all of the first screen if nothing is said.
SCREENS = {
    "demo": {
        "report-first-screen": ("light", None),
        "report-first-screen-dark": ("dark", None),
        "report-people": ("light", "#linked"),
    },
    "study": {},
    "abide": {"abide-report": ("light", None)},
}


def save(image: Image.Image, path: Path, has_scale: bool) -> None:
    """Keep a picture, small; with few colours, the scale of a brain would have steps that can be seen."""
    width = NARROWER if has_scale else WIDTH
    small = image.convert("RGB").resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    kept = small.point(lambda value: value & 252 | value >> 6) if has_scale else small.quantize(COLOURS)
    kept.save(path, optimize=True)


def pictures(run: Path, kind: str) -> None:
    """Take figures and screens of a run's report."""
    with tempfile.TemporaryDirectory() as name:
        report = write_report(run, Path(name, "report.html"), figures=Path(name, "figures"))
        made = {path.stem.partition("_")[2]: path for path in Path(name, "figures").glob("*.png")}
        for figure, picture in FIGURES[kind].items():
            save(Image.open(made[figure]), HERE / f"{picture}.png", "brain" in picture)
        if SCREENS[kind]:
            screens(report, SCREENS[kind])


def screens(report: Path, wanted: dict[str, tuple[str, str | None]]) -> None:
    """Photograph a report in a real browser."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=180_000)
        for name, (scheme, place) in wanted.items():
            page = browser.new_page(viewport={"width": 1280, "height": 830}, color_scheme=scheme)
            page.set_default_timeout(180_000)
            page.goto(report.as_uri())
            data = page.screenshot() if place is None else page.locator(place).screenshot()
            save(Image.open(io.BytesIO(data)), HERE / f"{name}.png", place is None)
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
