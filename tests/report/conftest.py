import pytest

from rindices import plots
from tests.report.made_run import make_run


@pytest.fixture
def run(tmp_path):
    make_run(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the slow part, the drawing, where a test is about words and tables."""
    monkeypatch.setattr(plots, "figure_svg", lambda figure: "<svg/>")
    for name in plots.__all__:
        if not name.startswith("figure_"):
            monkeypatch.setattr(plots, name, lambda *_, **__: None)
