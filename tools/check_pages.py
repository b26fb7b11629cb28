"""Open reports and the site in Chromium and check what readers see (`make test-pages`); exit with 1 if a page fails.

python tools/check_pages.py demo/run/report.html site

With its details closed a report is short; it prints on few pages and works with the keyboard. Text in drawings lies
within the frame, is large enough, does not overlap other text, and has a contrast of at least 4.5. Brain colours,
sampled from the screen, match their scales, and the ends of a scale remain distinct with each kind of colour blindness.
On a phone, neither a page nor a pattern card scrolls sideways. No page loads anything from the network or writes errors
to the console. If axe-core is installed (`npm install --no-save axe-core`), its WCAG 2 A and AA rules, including text
contrast, are checked in light and dark mode.
"""

from __future__ import annotations

import argparse
import io
import math
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
WIDE, NARROW, HIGHEST, MOST_PAGES = 1280, 400, 8_000, 10  # pixels; printed pages
PATIENCE = 180_000  # milliseconds
RULES = "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa'], resultTypes: ['violations'], preload: false})"
# Violations of the site's theme, not ours: scrolling code blocks cannot be focused.
OF_THE_THEME = {"scrollable-region-focusable"}


# Text in drawings that leaves the frame, is too small or too faint, or overlaps other text; legend keys whose colours
# differ from their marks.
DRAWINGS = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (!/rgba\\(.*, 0\\)/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const ground = (text, box) => {
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const solid = (node) => node !== text && node.closest("svg") && !node.closest("text, tspan, svg:not(:has(text))")
      && /^rgb\\(/.test(getComputedStyle(node).fill) && Number(getComputedStyle(node).fillOpacity) > 0.5;
    const found = document.elementsFromPoint(x, y).find((node) => node.tagName !== "svg" && solid(node));
    return found && getComputedStyle(found).fill;
  };
  const contrast = (...colours) => {
    const [low, high] = colours.map(light).sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const wrong = [], shown = [...document.querySelectorAll("svg:has(text)")].filter((svg) => svg.checkVisibility());
  for (const svg of shown) {
    svg.scrollIntoView({ block: "center" });
    const frame = svg.getBoundingClientRect(), boxes = [];
    const name = svg.closest("figure")?.dataset.name ?? (svg.getAttribute("class") || "a drawing");
    if (!frame.width) continue;
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect(), { a, b } = text.getScreenCTM();
      const size = Math.hypot(a, b) * parseFloat(getComputedStyle(text).fontSize);
      if (!box.width) continue;
      const across = box.left < frame.left - 3 || box.right > frame.right + 3;
      const down = box.top < frame.top - 3 || box.bottom > frame.bottom + 3;
      if (across || down) wrong.push(`${name}: “${text.textContent}” leaves its frame`);
      if (size < 9.9) wrong.push(`${name}: “${text.textContent}” has ${size.toFixed(1)} pixels`);
      const fill = getComputedStyle(text).fill, below = ground(text, box);
      const clear = contrast(fill, below ?? behind(svg));
      if (clear < 4.5) wrong.push(`${name}: “${text.textContent}” has a contrast of ${clear.toFixed(1)}`);
      const over = boxes.find(([other]) => Math.min(box.right, other.right) - Math.max(box.left, other.left) > 2
        && Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 0.3 * size);
      if (over && text.textContent.trim()) wrong.push(`${name}: “${text.textContent}” lies over “${over[1]}”`);
      if (text.textContent.trim()) boxes.push([box, text.textContent]);
    }
  }
  for (const key of document.querySelectorAll("#legend .key > *")) {
    const mark = document.querySelector(`#scatter [role=button].${key.getAttribute("class")}`);
    const [own, theirs] = [key, mark ?? key].map((node) => getComputedStyle(node));
    if (!document.getElementById("colour").selectedIndex && (own.fill + own.stroke !== theirs.fill + theirs.stroke))
      wrong.push(`the key of ${key.getAttribute("class")}s has another colour than their marks`);
  }
  return [...new Set(wrong)].slice(0, 5);
}"""


# Points to sample for a brain: inside its strongest region, at the same strength on its scale, and the scale's ends.
PLACES = """(place) => {
  const brains = [...document.querySelectorAll("figure svg.brain:not(:has(.amount))")];
  const svg = brains.filter((one) => one.checkVisibility())[place];
  if (!svg) return null;
  svg.scrollIntoView({ block: "center" });
  const bars = ["lower", "higher"].map((sign) => svg.querySelector(`rect[fill$="-${sign})"]`)?.getBoundingClientRect());
  if (!bars[0]) return {};
  const y = bars[0].top + bars[0].height / 2, ends = [[bars[0].left + 1, y], [bars[1].right - 2, y]];
  const strength = (node) => Number(node.getAttribute("fill-opacity") ?? 1);
  const regions = [...svg.querySelectorAll("use.lower, use.higher")].sort((a, b) => strength(b) - strength(a));
  for (const region of regions.filter((one) => strength(one) > 0.3)) {
    const box = region.getBoundingClientRect(), inside = (x, y) => document.elementFromPoint(x, y) === region;
    for (let x = box.left + 3; x < box.right; x += 3) for (let y0 = box.top + 3; y0 < box.bottom; y0 += 3)
      if ([[0, 0], [2, 0], [-2, 0], [0, 2], [0, -2]].every(([a, b]) => inside(x + a, y0 + b))) {
        const own = strength(region), bar = bars[region.classList.contains("lower") ? 0 : 1];
        const at = region.classList.contains("lower") ? bar.left + (1 - own) * bar.width : bar.left + own * bar.width;
        const on = [Math.min(Math.max(at, bar.left + 1), bar.right - 2), y];
        return { name: svg.closest("figure").dataset.name, region: [x, y0], scale: on, ends };
      }
  }
  return { name: svg.closest("figure").dataset.name, ends };
}"""
MOST_BRAINS = 4  # checked per page
MOST_STOPS = 12  # presses of Tab
# Whether the focused element has a visible outline; the page as a whole needs none.
FOCUS = """() => {
  const node = document.activeElement, look = getComputedStyle(node);
  return node === document.body || look.outlineStyle !== "none" || look.boxShadow !== "none";
}"""
ALIKE, APART = 30, 60  # largest and smallest Euclidean distance in RGB
COLOURED = 15  # smallest range of the three RGB values


class Visit:
    """An open page and the faults found on it."""

    def __init__(self, browser: Any, path: Path, scheme: str) -> None:
        self.context = browser.new_context(
            viewport={"width": WIDE, "height": 900}, color_scheme=scheme, offline=True, bypass_csp=True
        )
        self.context.set_default_timeout(PATIENCE)
        self.page, self.troubles = self.context.new_page(), list[str]()
        self.page.on("console", lambda message: self._note(message.type in ("error", "warning"), message.text))
        self.page.on("pageerror", lambda error: self._note(True, str(error)))
        self.page.on("request", lambda request: self._note(not _is_local(request.url), f"asks for {request.url}"))
        self.page.goto(path.resolve().as_uri())

    def _note(self, wrong: bool, what: str) -> None:
        if wrong:
            self.troubles.append(what)

    def size(self, name: str) -> int:
        """Return the scrollable width or height."""
        return int(self.page.evaluate(f"document.documentElement.scroll{name}"))

    def check_sideways(self) -> None:
        """Check the page at phone width with all details open."""
        self.page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        self.page.set_viewport_size({"width": NARROW, "height": 800})
        width = self.size("Width")
        self._note(width > NARROW, f"is {width} pixels wide in a window of {NARROW}")
        self.check_drawings()
        self.page.set_viewport_size({"width": WIDE, "height": 900})

    def check_drawings(self) -> None:
        """Check the text in drawings."""
        self.troubles += self.page.evaluate(DRAWINGS)

    def check_colours(self) -> None:
        """Compare brains with their scales, and check the scales under simulated colour blindness."""
        eyes = self.context.new_cdp_session(self.page)
        for place in range(MOST_BRAINS):
            at = self.page.evaluate(PLACES, place)
            if not at:
                break
            seen = self._screen()
            if "region" in at:
                own, scale = (_colour(seen, at[name]) for name in ("region", "scale"))
                self._note(math.dist(own, scale) > ALIKE, f"{at['name']}: {own} in the brain is {scale} on its scale")
            for kind in ("deuteranopia", "protanopia", "tritanopia"):
                eyes.send("Emulation.setEmulatedVisionDeficiency", {"type": kind})
                low, high = (_colour(self._screen(), point) for point in at["ends"])
                self._note(math.dist(low, high) < APART, f"{at['name']}: with {kind} smaller and larger look alike")
                (left, y), (right, _), seen = *at["ends"], self._screen()
                halves = (_colour(seen, [(1 - share) * left + share * right, y]) for share in (0.25, 0.75))
                dull = min(max(colour) - min(colour) for colour in halves)
                self._note(dull < COLOURED, f"{at['name']}: with {kind} half a change looks grey, as if uncertain")
            eyes.send("Emulation.setEmulatedVisionDeficiency", {"type": "none"})

    def _screen(self) -> Image.Image:
        return Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")

    def check_rules(self) -> None:
        """Check the page with axe-core."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        for found in self.page.evaluate(RULES)["violations"]:
            if found["id"] not in OF_THE_THEME:
                self.troubles.append(f"{found['id']}, {len(found['nodes'])} times: {found['nodes'][0]['html'][:120]}")

    def check_report(self) -> str:
        """Check what applies to reports only, and return its measurements."""
        height, sheets = self.size("Height"), _sheets(self.page.pdf(prefer_css_page_size=True))
        self._note(height > HIGHEST, f"is {height} pixels high, more than {HIGHEST}")
        self._note(sheets > MOST_PAGES, f"is printed on {sheets} pages, more than {MOST_PAGES}")
        self.check_keyboard()
        return f"{height} pixels high, printed on {sheets} pages"

    def check_keyboard(self) -> None:
        """Use a report with the keyboard only: focus is visible, and details, the slider and the tick box respond."""
        page = self.page
        for place in range(MOST_STOPS):
            page.keyboard.press("Tab")
            self._note(not page.evaluate(FOCUS), f"does not show where the keyboard is at stop {place + 1}")
        closed = page.locator("details:not([open]) > summary").first
        closed.focus()
        page.keyboard.press("Enter")
        opened = page.evaluate("document.activeElement.parentElement.open === true")
        self._note(not opened, "has details that the keyboard does not open")
        shades = "[...document.querySelectorAll('.brain .lower, .brain .higher')].map((one) => one.outerHTML).join()"
        if page.locator("#slider").is_visible():
            before = page.evaluate(shades)
            page.locator("#slider").press("ArrowLeft")
            self._note(page.evaluate(shades) == before, "has a slider that the keyboard does not move")
        if page.locator("#uncertainty").is_visible():
            page.locator("#uncertainty").press("Space")
            self._note(not page.locator(".spreads svg").first.is_visible(), "does not show uncertainty when asked to")
            self.check_drawings()
            page.locator("#uncertainty").press("Space")


def _colour(screen: Image.Image, point: list[float]) -> tuple[int, ...]:
    """Return the RGB values of a pixel."""
    found = screen.getpixel((round(point[0]), round(point[1])))
    return found if isinstance(found, tuple) else ()


def _is_local(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:", "about:"))


def _sheets(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def pages_of(paths: list[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield each page and whether it is a report: a file named on the command line, or a sample of the site."""
    for path in paths:
        if path.is_file():
            yield path, True
        for page in sorted(path.rglob("*.html")):
            if page.name != "404.html":  # its links are absolute and need a server
                yield page, page.parent.name == "samples"


def check(browser: Any, path: Path, is_report: bool) -> list[str]:
    """Check one page in light and dark mode, and return its faults."""
    troubles, figures = [], ""
    for scheme in ("light", "dark"):
        visit = Visit(browser, path, scheme)
        if scheme == "light":
            figures = visit.check_report() if is_report else ""
            visit.check_sideways()
        visit.check_drawings()
        if is_report:
            visit.check_colours()
        if AXE.is_file():
            visit.check_rules()
        visit.context.close()
        troubles += [f"{path} ({scheme}): {trouble}" for trouble in visit.troubles]
    print(f"{'bad' if troubles else 'ok '}  {path}{f': {figures}' if figures else ''}", flush=True)
    return troubles


def main() -> int:
    """Check all pages; return 1 if any has a fault."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("paths", type=Path, nargs="+", help="reports, or folders of built sites")
    paths = options.parse_args().paths
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        print("Skipped: pages are checked with Chromium or Chrome and playwright, and one of them is not here.")
        return 0
    if not AXE.is_file():
        print("Without contrast: axe-core is not here (npm install --no-save axe-core).")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=PATIENCE)
        troubles = [one for path, is_report in pages_of(paths) for one in check(browser, path, is_report)]
        browser.close()
    print("\n".join(troubles) or "All pages are as they should be.")
    return int(bool(troubles))


if __name__ == "__main__":
    sys.exit(main())
