"""The site builds strictly (links, anchors, names in the reference), and can be read without a network."""

import json
import logging
import re
import warnings

import pytest

import rindices
import rindices.analysis
from rindices import plots
from rindices.pages import report
from tests.docs.pages import ROOT
from tests.docs.test_pages import COMMANDS
from tests.pages.page import Page, missing

mkdocs_config = pytest.importorskip("mkdocs.config", reason="the site needs mkdocs")

# Attributes that make a browser load something; links that are only followed by a click may lead anywhere.
_LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as `mkdocs build --strict` does; the sample reports, which are slow to write, stay empty."""
    from mkdocs.commands.build import build

    def written(run):
        (run / "report.html").write_text("<!doctype html><title>a sample</title>")
        return run / "report.html"

    folder = tmp_path_factory.mktemp("site")
    logger, before = logging.getLogger("mkdocs"), logging.getLogger("mkdocs").level
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # from the tools; strict builds fail on log messages
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        patch.setattr(report, "write_report", written)
        config = mkdocs_config.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        config.plugins.on_shutdown()
    logger.setLevel(before)
    return folder


def test_nothing_is_loaded_from_elsewhere_and_all_that_is_loaded_is_there(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for path in pages:
        tags = Page(path.read_text(encoding="utf-8")).tags
        drawn = [told["class"] for _, told in tags if "mermaid" in (told.get("class") or "")]
        addresses = [told.get(_LOADS.get(tag)) or "data:" for tag, told in tags]
        foreign = [address for address in addresses if re.match(r"(\w+:)?//", address)]
        own = [re.split(r"[?#]", one)[0] for one in addresses if path.name != "404.html" and one[:5] != "data:"]
        absent = [one for one in own if not (path.parent / one).resolve().exists()]
        assert (drawn, foreign, absent) == ([], [], []), path.name
    for path in site.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)", path.read_text(encoding="utf-8"))
        assert not found, f"{path.name}: {found}"


def test_search_and_drawings_work_without_a_server(site):
    found = json.loads((site / "search" / "search_index.js").read_text(encoding="utf-8").partition("=")[2])["docs"]
    assert any("--small-sites" in one["text"] for one in found)
    assert "iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")
    method = (site / "explanation" / "method.html").read_text(encoding="utf-8")
    assert method.count('<span class="drawing"><svg role="img" aria-label="') == 3
    assert (site / "figures" / "fig2.svg").is_file()


def test_the_reference_has_every_command_option_and_public_name(site):
    page = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for name, options in COMMANDS.items():
        words = [option if option.startswith("-") else option.upper() for option in options - {"--help"}]
        assert not missing(page, f'id="rindices-{name}"', *words)
    api = "".join(path.read_text(encoding="utf-8") for path in (site / "reference" / "api").glob("*.html"))
    told = {*re.findall(r'id="rindices\.[\w.]+\.(\w+)"', api)}
    assert {*rindices.__all__, *rindices.analysis.__all__} - told == set()


def test_the_home_page_leads_to_reports_of_the_sample_runs(site):
    home = (site / "index.html").read_text(encoding="utf-8")
    for archive in sorted((ROOT / "docs" / "samples").glob("*.zip")):
        assert f'href="samples/{archive.stem}.html"' in home
        assert "a sample" in (site / "samples" / f"{archive.stem}.html").read_text(encoding="utf-8")


def test_the_gallery_has_every_function_that_draws():
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert not missing(page, *(f"plots.{name}(" for name in plots.__all__))
    pictures = set(re.findall(r"\]\(pictures/gallery/([\w.]+)\)", page))
    assert pictures == {path.name for path in (ROOT / "docs" / "pictures" / "gallery").iterdir()}
