import shutil

import pytest

from rindices import plots
from tests.pages.made_run import make_run

_PATIENCE = 600_000  # milliseconds; the machine may be busy with something else


@pytest.fixture
def run(tmp_path):
    make_run(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the slow part, the drawing, where a test is about words and tables."""
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
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=_PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Return a function that opens a file; what goes wrong meanwhile fails the test."""
    contexts, troubles = [], []

    def opened(path, anchor="", **options):
        context = browser.new_context(viewport={"width": 1300, "height": 900}, accept_downloads=True, **options)
        context.set_default_timeout(_PATIENCE)
        context.set_offline(True)
        contexts.append(context)
        page, address = context.new_page(), path.as_uri()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: request.url.split("#")[0] == address or _foreign(request.url, troubles))
        page.goto(address + anchor)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def _foreign(url, troubles):
    if not url.startswith(("data:", "blob:")):
        troubles.append(url)
