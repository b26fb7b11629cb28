"""The report in a real browser offline: it works, requests nothing, and never runs a name as code."""

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest

from rindices.files import plain_text
from rindices.pages.report import Report, write_report
from tests.pages.made_run import add_analyses, add_visits, change_summary, make_run, rewrite
from tests.pages.page import missing

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "=cmd|' /C calc'!A0",
    "${alert(3)}",
    '"><img src=x onerror=alert(4)>',
    "-- {{ 7*7 }}",
    "\u2028</style>",
]
PERSON = "</script><b onclick=alert(5)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    make_run(folder, n_patterns=2, n_controls=30, n_patients=40, n_regions=24, names=HOSTILE)
    add_analyses(folder, clinical=[*HOSTILE[:3], "=1+1"], sites=("@site", "+1 site", HOSTILE[0]))
    add_visits(folder)
    for name in ("r_indices.csv", "people.csv", "z_scores.csv", "variables.csv", "analysis/drivers.csv"):
        rewrite(folder / name, participant_id=lambda table: table["participant_id"].replace("sub-0031", PERSON))
    rewrite(folder / "r_indices.csv", flags=HOSTILE[4])
    change_summary(folder, warnings=[HOSTILE[0]], source=HOSTILE[4])
    write_report(folder, folder / "plain.html")
    write_report(folder, folder / "ids.html", show_ids=True)
    return folder


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


def column(page, file, place):
    cells = page.locator(f'table[data-file="{file}"] tbody tr > :nth-child({place})')
    return cells.evaluate_all("cells => cells.map(cell => cell.dataset.value ?? cell.textContent)")


def test_tables_sort_by_number_and_by_keyboard_and_are_cut_until_asked(folder, visit):
    page, file = visit(folder / "plain.html"), "all-regions-of-pattern-1-largest-changes-first"
    table = pd.read_csv(folder / "patterns.csv", keep_default_na=False).query("pattern == 1")
    expected = sorted(table["change_sd"])
    unfold(page)
    header = page.locator(f'table[data-file="{file}"] thead th').nth(1)
    header.locator("button").click()
    assert [float(value) for value in column(page, file, 2)] == pytest.approx(expected)
    assert header.get_attribute("aria-sort") == "ascending"
    header.locator("button").press("Enter")
    assert [float(value) for value in column(page, file, 2)] == pytest.approx(expected[::-1])
    assert header.get_attribute("aria-sort") == "descending"
    page.locator(f'table[data-file="{file}"] thead th button').first.click()
    assert (header.get_attribute("aria-sort"), sorted(map(plain_text, column(page, file, 1)))) == (
        None,
        sorted(table["region"]),
    )
    page.locator('table[data-file="associations-in-all-participants"] thead th').nth(4).locator("button").click()
    assert column(page, "associations-in-all-participants", 5)[-1] == ""  # missing values stay last
    rows = page.locator(f'table[data-file="{file.replace("1", "2")}"] tbody tr').locator("visible=true")
    for shown, button in ((15, "Show all 24 rows"), (24, "Show 15 rows")):
        assert rows.count() == shown
        page.locator("#pattern-2").get_by_role("button", name=button).click()
    assert rows.count() == 15
    page.emulate_media(media="print")
    assert (rows.count(), page.get_by_role("button", name="Download CSV").locator("visible=true").count()) == (24, 0)


def downloaded(page, file):
    with page.expect_download() as waiting:
        page.locator(f'div:has(> table[data-file="{file}"]) + .tools').get_by_text("Download CSV").click()
    data = waiting.value.path().read_bytes()
    assert (waiting.value.suggested_filename, data[:3]) == (f"{file}.csv", b"\xef\xbb\xbf")
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_download_has_all_rows_and_digits_and_no_formulas(folder, visit):
    page = visit(folder / "plain.html")
    unfold(page)
    head, *rows = downloaded(page, "all-regions-of-pattern-1-largest-changes-first")
    table = pd.read_csv(folder / "patterns.csv", keep_default_na=False).query("pattern == 1").set_index("region")
    assert head == ["Region", "Change (sd)", "Spread (sd)", "Change (%)", "Patients versus controls (d)"]
    changes = {region.removeprefix("'"): float(change) for region, change, *_ in rows}
    assert changes == pytest.approx(table["change_sd"].to_dict(), rel=1e-14)
    assert {row[0] for row in rows} >= {"'=cmd|' /C calc'!A0", "'-- {{ 7*7 }}", "<script>alert(1)</script>"}
    head, *rows = downloaded(page, "associations-in-patients")
    assert head[5:7] == ["95 % interval, low", "95 % interval, high"]
    known = pd.read_csv(folder / "analysis" / "associations.csv")["low"][0]
    assert float(rows[0][5]) == pytest.approx(known, rel=1e-14)
    assert any(row[1].startswith("'=1+1") for row in rows)
    assert {row[0] for row in downloaded(page, "counts-at-each-site")[1:]} == {"'@site", "'+1 site", HOSTILE[0]}


def test_figure_table_and_card_belong_together(folder, visit):
    page = visit(folder / "ids.html")
    card, chosen = page.locator("#card"), page.locator("#everybody tr.chosen")
    page.fill("#who", "sub-0040")
    page.keyboard.press("Enter")
    assert card.locator("h4").inner_text() == chosen.locator("button").inner_text() == "sub-0040"
    assert (page.locator("#found").inner_text(), page.locator("#scatter [role=button]").count()) == ("1 person", 1)
    assert card.locator("h5").all_inner_texts() == ["Visit bl, 0.0 years", "Visit m12, 1.0 years"]
    assert page.locator("#scatter path.open").count() == 1  # the path from visit to visit
    assert page.evaluate("location.hash") == "#person=sub-0040"
    own = pd.read_csv(folder / "analysis" / "change.csv").set_index("participant_id").loc["sub-0040"]
    people = pd.read_csv(folder / "r_indices.csv").set_index(["participant_id", "visit"])
    assert not missing(
        card.inner_text().replace("−", "-"),
        "Severity 1, first visit to last: {:+.2f} ({:+.2f} to {:+.2f}), within scan noise".format(
            *own[["severity1_change", "severity1_change_low", "severity1_change_high"]]
        ),
        "Severity 1: {:.2f} (90 % interval {:.2f} to {:.2f}), not higher than any of the held-out controls".format(
            *people.loc[("sub-0040", "bl"), ["severity1", "severity1_low", "severity1_high"]]
        ),
    )
    page.fill("#who", "")
    page.select_option("#across", "1")
    assert page.locator("#scatter svg").get_attribute("aria-label").startswith("Severity 2 against Severity 2")
    page.locator('#scatter [aria-label^="sub-0050,"]').dispatch_event("click")
    assert card.locator("h4").inner_text() == chosen.locator("button").inner_text() == "sub-0050"
    page.locator("#everybody button", has_text="sub-0045").click()
    assert card.locator("h4").inner_text() == "sub-0045"
    assert visit(folder / "ids.html", "#person=sub-0041").locator("#card h4").inner_text() == "sub-0041"


def test_people_are_filtered_coloured_and_sorted(folder, visit):
    page = visit(folder / "plain.html")
    assert page.locator("#card h4").inner_text().startswith("Patient ")
    marks = page.locator("#scatter [role=button]")
    assert marks.count() == 82
    page.select_option("#shown", label="controls")
    assert marks.count() == 30
    page.select_option("#colour", label="site")
    assert page.locator("#legend span").all_inner_texts() == sorted(["@site", "+1 site", HOSTILE[0]])
    page.select_option("#shown", label="everybody")
    assert ", control:" in marks.nth(81).get_attribute("aria-label")  # drawn above the patients, who would hide them
    page.select_option("#across", label="Years since the first visit")
    assert page.locator("#scatter path.path").count() >= 1  # over time, paths are always shown
    page.select_option("#shown", label="reliable change")
    assert 0 < marks.count() < 82
    page.select_option("#shown", label="everybody")
    page.locator("#everybody thead button", has_text="Severity 1").click()
    shown = page.locator("#everybody tbody tr td:nth-last-child(2)").all_inner_texts()
    values = [float(text.replace("−", "-").split(" ")[0]) for text in shown]
    assert values[0] == max(values)


def test_figures_are_saved_as_svg_and_png_and_methods_are_copied(folder, visit):
    page = visit(folder / "plain.html", color_scheme="dark", permissions=["clipboard-read", "clipboard-write"])
    figure = page.locator('figure[data-name="severities_1"]')
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as waiting:
            figure.get_by_role("button", name=f"as {kind}").click()
        data = waiting.value.path().read_bytes()
        # Only a browser would know the page's colour variables.
        found = waiting.value.suggested_filename, data[: len(start)], b"var(" in data
        assert found == (f"severities_1.{kind.lower()}", start, False)
    assert "Controls, n = 30: median" in page.content()
    assert figure.locator("title").count() > 2
    unfold(page)
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("The table contained ")


def test_hostile_names_are_text_and_strangers_are_told(folder, visit):
    page = visit(folder / "ids.html")
    page.fill("#who", "nobody")
    assert page.locator("#found").inner_text() == "No one matches “nobody”."
    page.fill("#who", PERSON)
    page.keyboard.press("Enter")
    assert page.locator("#card h4").inner_text() == PERSON
    assert HOSTILE[0] in page.locator("#card").inner_text()
    assert page.locator("main b, img[src=x]").count() == 0
    page = visit(folder / "ids.html", "#person=nobody")
    assert page.locator("#found").inner_text() == "There is no card for “nobody”."


FAULTS = Path(__file__).with_name("faults.js").read_text()
LETTERS = """() => [...document.querySelectorAll("svg text")].filter((node) => node.getClientRects().length)
  .map((node) => parseFloat(getComputedStyle(node).fontSize) * node.getScreenCTM().a)
  .filter((size) => size > 0).reduce((least, size) => Math.min(least, size), 99)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_and_narrow_pages_do_not_scroll_sideways(folder, visit, scheme):
    page = visit(folder / "ids.html", color_scheme=scheme)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is (scheme == "light")
    unfold(page)
    ink = "getComputedStyle(document.querySelector('figure svg text')).fill"
    assert page.evaluate(ink) == page.evaluate("getComputedStyle(document.body).color")
    for width in (360, 800, 1300):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate(FAULTS) == [], width
        assert page.evaluate(LETTERS) >= 10.9, width


def test_page_is_short_and_its_paper_has_methods_limits_and_glossary_but_no_lists_of_people(folder, visit):
    page = visit(folder / "plain.html")
    assert page.evaluate("document.documentElement.scrollHeight") < 8000
    assert 1 < len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) <= 10
    page.evaluate("location.hash = '#glossary'")  # a link opens a collapsed section
    page.wait_for_function("document.getElementById('glossary').open")
    page.evaluate("document.getElementById('glossary').open = false")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown = {"methods": True, "limits": True, "glossary": True, "explorer": False, "dose": False}
    assert {name: page.locator(f"#{name}").is_visible() for name in shown} == shown
    assert page.locator("button:not(.sort):not(.link)").locator("visible=true").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.evaluate("document.getElementById('methods').open")


def test_arrow_keys_choose_people(folder, visit):
    page = visit(folder / "plain.html")
    page.locator('#scatter [tabindex="0"]').focus()
    for key, axis, sign in (("ArrowRight", 0, 1), ("ArrowLeft", 0, -1), ("ArrowUp", 1, 1), ("ArrowDown", 1, -1)):
        before = page.evaluate("document.activeElement.getAttribute('aria-label')")
        page.keyboard.press(key)
        after = page.evaluate("document.activeElement.getAttribute('aria-label')")
        at = [float(re.findall(r"Severity \d (−?[\d.]+)", text)[axis].replace("−", "-")) for text in (before, after)]
        assert sign * (at[1] - at[0]) >= 0
        assert page.locator("#card h4").inner_text() == after.split(",")[0]


def test_report_works_inside_a_notebook(folder, visit, tmp_path):
    outer = tmp_path / "notebook.html"
    inner = Report((folder / "plain.html").read_text(encoding="utf-8"))._repr_html_()
    outer.write_text(f"<!DOCTYPE html><meta charset=utf-8>{inner}", encoding="utf-8")
    frame = visit(outer).frame_locator("iframe")
    assert frame.locator("#card h4").inner_text().startswith("Patient ")
    assert frame.locator("button", has_text="Download CSV").count() > 5
