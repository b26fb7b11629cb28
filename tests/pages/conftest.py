import os
import shutil
from contextlib import ExitStack, contextmanager

import pytest

from rindices import plots
from tests.pages.made_run import make_run

# Milliseconds, as the machine may be busy; for the tutorial's pictures, a run is trained to its end.
PATIENCE = 1_800_000 if os.environ.get("RINDICES_PICTURES") else 600_000


@pytest.fixture
def run(tmp_path):
    make_run(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def undrawn(monkeypatch):
    """Skip drawing, which is slow, in tests of words and tables."""
    monkeypatch.setattr(plots, "figure_svg", lambda figure, name="": "<svg></svg>")
    for name in plots.__all__:
        if not name.startswith("figure_"):
            monkeypatch.setattr(plots, name, lambda *_, **__: None)


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no Chromium or Chrome here")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=PATIENCE)
        yield browser
        browser.close()


@contextmanager
def watched_page(browser, own, **options):
    """Yield a page in its own window; at its end, it must have had no error and asked for nothing but `own`."""
    context = browser.new_context(viewport={"width": 1290, "height": 900}, accept_downloads=True, **options)
    context.set_default_timeout(PATIENCE)
    context.set_default_navigation_timeout(PATIENCE)  # otherwise old Playwright waits only 30 seconds for a page
    page, troubles = context.new_page(), []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda asked: asked.url.startswith((own, "data:", "blob:")) or troubles.append(asked.url))
    yield page
    context.close()
    assert troubles == []


@pytest.fixture
def visit(browser):
    """Return a function that opens a file offline; any error in the page fails the test."""
    with ExitStack() as ends:

        def open_file(path, anchor="", **options):
            page = ends.enter_context(watched_page(browser, path.as_uri(), **options))
            page.context.set_offline(True)
            page.goto(path.as_uri() + anchor)
            return page

        yield open_file
