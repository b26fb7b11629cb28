"""The report in a real browser without a network: it works, asks for nothing, and runs nobody's names."""

import csv
import io
import random
from pathlib import Path

import pandas as pd
import pytest

from rindices import report
from rindices.files import guarded_text
from rindices.report import Report, write_report
from tests.report.made_run import add_analyses, add_visits, change_summary, make_run

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
    named = ("r_indices.csv", "people.csv", "z_scores.csv", "variables.csv", "analysis/drivers.csv")
    for path in [folder / name for name in named if (folder / name).exists()]:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        table["participant_id"] = table["participant_id"].replace("sub-0031", PERSON)
        table.to_csv(path, index=False)
    people = pd.read_csv(folder / "r_indices.csv", keep_default_na=False)
    people["flags"] = HOSTILE[4]
    people.to_csv(folder / "r_indices.csv", index=False)
    change_summary(folder, warnings=[HOSTILE[0]], source=HOSTILE[4])
    write_report(folder, folder / "plain.html")
    write_report(folder, folder / "ids.html", show_ids=True)
    return folder


def column(page, file, place):
    cells = page.locator(f'table[data-file="{file}"] tbody tr > :nth-child({place})')
    return cells.evaluate_all("cells => cells.map(cell => cell.dataset.value ?? cell.textContent)")


def test_tables_sort_by_number_and_by_keyboard(folder, visit):
    page = visit(folder / "plain.html")
    file = "all-regions-of-pattern-1-strongest-first"
    table = pd.read_csv(folder / "patterns.csv", keep_default_na=False).query("pattern == 1")
    expected = sorted(table["change_sd"])
    header = page.locator(f'table[data-file="{file}"] thead th').nth(1)
    header.locator("button").click()
    assert [float(value) for value in column(page, file, 2)] == pytest.approx(expected)
    assert header.get_attribute("aria-sort") == "ascending"
    header.locator("button").focus()
    page.keyboard.press("Enter")
    assert [float(value) for value in column(page, file, 2)] == pytest.approx(expected[::-1])
    assert header.get_attribute("aria-sort") == "descending"
    page.locator(f'table[data-file="{file}"] thead th button').first.click()
    assert header.get_attribute("aria-sort") is None
    assert sorted(column(page, file, 1)) == sorted(table["region"])
    page.locator('table[data-file="associations-in-everybody"] thead th').nth(4).locator("button").click()
    assert column(page, "associations-in-everybody", 5)[-1] == ""  # what is not known stays last


def test_long_tables_are_cut_until_asked(folder, visit):
    page = visit(folder / "plain.html")
    rows = page.locator('table[data-file="all-regions-of-pattern-2-strongest-first"] tbody tr')
    button = page.get_by_role("button", name="Show all 24 rows").nth(1)
    assert rows.locator("visible=true").count() == 15
    button.click()
    assert rows.locator("visible=true").count() == 24
    page.locator("#maps").get_by_role("button", name="Show 15 rows").click()
    assert rows.locator("visible=true").count() == 15
    page.emulate_media(media="print")
    assert rows.locator("visible=true").count() == 24
    assert page.get_by_role("button", name="Download CSV").locator("visible=true").count() == 0


def downloaded(page, file):
    with page.expect_download() as waiting:
        page.locator(f'div:has(> table[data-file="{file}"]) + .tools').get_by_text("Download CSV").click()
    assert waiting.value.suggested_filename == f"{file}.csv"
    data = waiting.value.path().read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_download_has_all_rows_and_digits_and_no_formulas(folder, visit):
    page = visit(folder / "plain.html")
    head, *rows = downloaded(page, "all-regions-of-pattern-1-strongest-first")
    table = pd.read_csv(folder / "patterns.csv", keep_default_na=False).query("pattern == 1").set_index("region")
    assert head == ["Region", "Change (sd)", "Spread (sd)", "Change (%)"]
    assert len(rows) == 24
    for region, change, *_ in rows:
        assert float(change) == pytest.approx(table.loc[region.removeprefix("'"), "change_sd"], rel=1e-14)
    assert {row[0] for row in rows} >= {"'=cmd|' /C calc'!A0", "'-- {{ 7*7 }}", "<script>alert(1)</script>"}
    head, *rows = downloaded(page, "associations-in-patients")
    assert head[5:7] == ["95 % interval, low", "95 % interval, high"]
    known = pd.read_csv(folder / "analysis" / "associations.csv", keep_default_na=False)
    assert float(rows[0][5]) == pytest.approx(float(known["low"].iloc[0]), rel=1e-14)
    assert any(row[1].startswith("'=1+1") for row in rows)
    assert {row[0] for row in downloaded(page, "the-same-by-site")[1:]} == {"'@site", "'+1 site", HOSTILE[0]}


def test_card_opens_by_search_by_click_by_key_and_by_link(folder, visit):
    page = visit(folder / "ids.html")
    dialog = page.locator("dialog#card")
    page.fill("#who", "sub-0040")
    page.keyboard.press("Enter")
    assert dialog.locator("h3").inner_text() == "sub-0040"
    assert dialog.locator("h4").all_inner_texts() == ["Visit bl", "Visit m12"]
    assert page.evaluate("location.hash") == "#person=sub-0040"
    people = pd.read_csv(folder / "r_indices.csv").set_index(["participant_id", "visit"])
    ends = people.loc[("sub-0040", "bl"), ["severity1", "severity1_low", "severity1_high"]]
    told = "Severity 1: {:.2f} (90 % interval {:.2f} to {:.2f}), not higher than any of the held-out controls"
    assert told.format(*ends) in dialog.inner_text().replace("−", "-")
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    page.select_option("#across", "1")
    assert page.locator("#scatter svg").get_attribute("aria-label").startswith("Severity 2 against Severity 2")
    page.locator('#scatter [aria-label^="sub-0050,"]').dispatch_event("click")
    assert dialog.locator("h3").inner_text() == "sub-0050"
    dialog.get_by_role("button", name="Close").click()
    page.locator('#scatter [tabindex="0"]').focus()
    page.keyboard.press("End")
    name = page.evaluate("document.activeElement.getAttribute('aria-label')").split(", ")[0]
    page.keyboard.press("Enter")
    assert dialog.locator("h3").inner_text() == name
    linked = visit(folder / "ids.html", "#person=sub-0041")
    assert linked.locator("dialog#card h3").inner_text() == "sub-0041"


def test_hostile_names_are_text_and_strangers_are_told(folder, visit):
    page = visit(folder / "ids.html")
    page.fill("#who", "nobody")
    page.keyboard.press("Enter")
    assert page.locator("#found").inner_text() == "There is no card of “nobody”."
    page.fill("#who", PERSON)
    page.keyboard.press("Enter")
    assert page.locator("dialog#card h3").inner_text() == PERSON
    assert HOSTILE[0] in page.locator("dialog#card").inner_text()
    assert page.locator("dialog b, main b, img[src=x]").count() == 0


def test_methods_can_be_copied(folder, visit):
    page = visit(folder / "plain.html", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("The table had ")


CONTRAST = """() => {
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
  const texts = "p, li, td, th, a, h1, h2, h3, dt, dd, figcaption, button, code";
  return [...document.querySelectorAll(texts)].map((node) => {
    const [a, b] = [light(getComputedStyle(node).color), light(behind(node))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  }).reduce((least, ratio) => Math.min(least, ratio), 21);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(folder, visit, scheme):
    page = visit(folder / "plain.html", color_scheme=scheme)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is (scheme == "light")
    assert page.evaluate(CONTRAST) >= 4.5
    assert page.evaluate("getComputedStyle(document.querySelector('.plate')).backgroundColor") == "rgb(255, 255, 255)"


def test_narrow_page_does_not_scroll_sideways(folder, visit):
    page = visit(folder / "ids.html")
    for width in (360, 800, 1300):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_report_works_inside_a_notebook(folder, visit, tmp_path):
    outer = tmp_path / "notebook.html"
    report = Report((folder / "plain.html").read_text(encoding="utf-8"))
    outer.write_text(f"<!DOCTYPE html><meta charset=utf-8>{report._repr_html_()}", encoding="utf-8")
    frame = visit(outer).frame_locator("iframe")
    assert frame.locator("#example h3").inner_text() == "Example: a patient"
    assert frame.get_by_role("button", name="Download CSV").count() > 5


def test_downloads_are_guarded_as_tables_are(browser):
    """The rule is written twice, in Python and in the page's script."""
    script = (Path(report.__file__).parent / "script.js").read_text(encoding="utf-8")
    number = next(line for line in script.splitlines() if "const NUMBER" in line)
    rule = script[script.index("  const FORMULA") : script.index("  function csvCell")]
    rng = random.Random(0)
    texts = ["".join(rng.choices("=+-@'\"; \t\r\na1.eE＝＠\ufeff\u00a0", k=rng.randrange(10))) for _ in range(3000)]
    page = browser.new_page()
    found = page.evaluate(f"(texts) => {{ {number} {rule} return texts.map(harmless); }}", texts)
    page.close()
    assert found == [guarded_text(text) for text in texts]
