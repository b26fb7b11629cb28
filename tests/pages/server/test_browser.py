"""The pages in a real browser: drop a table, correct a role, train a run, look at people, score new ones."""

import os
import re
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from rindices.simulate import simulate_cohort
from tests.pages.conftest import watched_page
from tests.pages.server.conftest import PROGRAM
from tests.pages.test_browser import FAULTS

# Where the tutorial's pictures go, if requested; in that case, a run is trained to its end.
PICTURES = os.environ.get("RINDICES_PICTURES")


class Visit:
    """A page of a browser that is logged in."""

    def __init__(self, page, base):
        self.page, self.base = page, base

    def go(self, path, wait="main h1"):
        self.page.goto(self.base + path)
        self.page.wait_for_selector(wait, state="attached")  # it may be collapsed
        return self.page

    def picture(self, name):
        for scheme, ending in (("dark", "-dark"), ("light", "")) if PICTURES else ():
            path = Path(PICTURES, f"app-{name}{ending}.png")
            self.page.emulate_media(color_scheme=scheme)
            self.page.evaluate("scrollTo(0, 0)")
            end = self.page.locator("main").evaluate("main => Math.ceil(main.getBoundingClientRect().bottom) + 12")
            self.page.screenshot(path=path, clip={"x": 0, "y": 0, "width": 1290, "height": min(end, 860)})
            Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


@pytest.fixture
def visit(browser):
    """Return a function that opens a folder with `rindices open` and logs in."""
    with ExitStack() as ends:  # close pages before their servers, which they may still be querying

        def opened(folder, **options):
            line = [*PROGRAM, "open", str(folder), "--no-browser"]
            server = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            ends.enter_context(server)
            ends.callback(server.terminate)
            while "token=" not in (said := server.stdout.readline()):
                assert said or server.poll() is None
            address = said.strip()
            base = address.partition("/enter")[0]
            page = ends.enter_context(watched_page(browser, base, **options))
            page.goto(address)
            page.wait_for_url(f"{base}/")
            return Visit(page, base)

        yield opened


PLACES = (
    "/",
    "/table",
    "/gather",
    "/table?table=cohort.csv",
    "/train?table=cohort.csv",
    "/run?run=finished",
    "/run?run=interrupted",
    "/people?run=finished",
    "/apply?model=three.safetensors&table=new.csv",
    "/person?model=three.safetensors",
    "/compare?first=finished&second=again",
    "/compare",
)


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, {"narrow": True}], ids=["light", "dark", "narrow"])
def test_every_page_can_be_read_by_everybody(folder, visit, options):
    shutil.copytree(folder / "finished", folder / "again")
    narrow, seen = options.pop("narrow", False), visit(folder, **options)
    if narrow:
        seen.page.set_viewport_size({"width": 400, "height": 800})
    for place in PLACES:
        seen.go(place, "#look .part" if "/table?" in place else "#linked" if "people" in place else "main h1")
        assert seen.page.evaluate(FAULTS) == [], place


def test_five_tasks_take_three_clicks_at_most(folder, visit):
    """Clicks are counted from the list of runs; typing, pasting and dragging do not count."""
    seen = visit(folder)
    page = seen.page

    def follow(*clicks):
        assert len(clicks) <= 3
        seen.go("/")
        for place in clicks:
            page.locator(place).first.click()
            page.wait_for_load_state()

    run, individuals = "a:has-text('finished')", "text=Look at individuals"
    verdict = page.locator("tr", has=page.locator(run)).locator(".tag")
    assert (verdict.inner_text(), verdict.is_visible()) == ("reproducible", True)  # the verdict of a run: no click

    follow(run, individuals, "#everybody thead button:has-text('Severity 2')")  # who is most severe in pattern 2
    most = pd.read_csv(folder / "finished" / "r_indices.csv")["severity2"].max()
    shown = page.locator("#everybody tbody tr:not(.chosen) td:nth-last-child(2)").first.inner_text()
    assert float(shown.split(" ")[0]) == pytest.approx(most, abs=0.006)

    follow(run)  # what a severity of 0.6 means
    page.locator("#slider").fill("0.6")
    assert "60 % of the largest change learned" in page.locator(".slider").inner_text()

    page.context.add_init_script("window.print = () => { window.printed = document.body.className; }")
    follow(run, individuals, "text=Print this person's card")  # a page for a colleague
    assert "one-card" in page.evaluate("window.printed")
    page.evaluate("document.body.classList.add('one-card')")
    assert len(re.findall(rb"/Type\s*/Page[^s]", page.pdf(format="A4"))) == 1

    follow(run, "text=Score one person")
    page.locator("[data-paste]").fill(pd.read_csv(folder / "new.csv").iloc[[1]].to_csv(sep="\t", index=False))
    page.locator("text=Score this person").click()  # the third click
    page.wait_for_selector("text=1 row scored")


def test_one_person_is_pasted_in_any_of_three_ways(folder, visit):
    page = visit(folder).go("/person?model=three.safetensors")
    person = pd.read_csv(folder / "new.csv", dtype=str).iloc[[1]]
    regions = page.locator("[data-region]").evaluate_all("inputs => inputs.map((input) => input.dataset.column)")
    numbers, n = person[regions].iloc[0], len(regions)
    ways = {
        pd.concat([person, person]).to_csv(
            sep="\t", index=False
        ): f"{n} of {n} regions filled in, from the first of 2 rows",
        person.to_csv(sep=";", index=False).replace(".", ","): f"{n} of {n} regions filled in",
        numbers.to_csv(sep="\t", header=False): f"{n} of {n} regions filled in",
        "\t".join(numbers): f"{n} of {n} regions filled in",
        person.assign(**{regions[0]: ""}).to_csv(sep="\t", index=False): f"{n - 1} of {n} regions filled in",
        "\t".join(person.iloc[0]): f"0 of {n} regions filled in. Copy the header row as well.",
        "\t".join(
            ["7", *numbers]
        ): f"0 of {n} regions filled in; {n + 1} numbers were pasted. Copy the header row as well.",
    }
    for pasted, told in ways.items():  # into the same form: the person pasted before leaves no trace
        page.locator("[data-paste]").fill(pasted)
        assert page.locator("[data-pasted]").inner_text() == told
        values = page.locator("[data-region]").evaluate_all("inputs => inputs.map((input) => Number(input.value))")
        empty = n - int(told.split()[0])
        assert values == pytest.approx([0] * empty + [float(one) for one in numbers[empty:]])
        if "participant_id" in pasted:
            assert page.locator("[name=id]").input_value() == person["participant_id"].iloc[0]
            assert page.locator("[name='covariate age']").input_value() != ""


def test_a_remedy_leaves_the_focus_at_the_table(folder, visit):
    pd.read_csv(folder / "cohort.csv").assign(age=lambda table: table["age"].mask(table.index == 3)).to_csv(
        folder / "gap.csv", index=False
    )
    page = visit(folder).go("/table?table=gap.csv", "button.remedy")
    page.locator("button.remedy", has_text="Exclude these people").first.click()
    page.wait_for_selector("text=people with missing values are excluded")
    page.wait_for_function("document.activeElement.id === 'checked'")


def test_whoever_is_chosen_stays_chosen(folder, visit):
    """The choice survives showing and hiding ids, and a visit to another page."""
    seen, same = visit(folder), "(name) => document.querySelector('#card h4')?.textContent === name"
    page = seen.go("/people?run=finished", "#linked")
    name = page.locator("#card h4")
    plain = name.inner_text()
    page.get_by_role("link", name="Show ids").click()
    page.wait_for_selector("#card h4")
    assert name.inner_text() != plain
    page.get_by_role("link", name="Hide ids").click()
    page.wait_for_function(same, arg=plain)
    seen.go("/run?run=finished")
    page.go_back()
    page.wait_for_function(same, arg=plain)


@pytest.mark.slow
def test_from_a_table_to_new_people(tmp_path, visit):
    folder = tmp_path / "study"
    folder.mkdir()
    table = simulate_cohort("basic", seed=0, **{} if PICTURES else {"n_controls": 60, "n_patients": 60}).table
    table = table.assign(weight=70.0 + table["age"] % 7)
    table.iloc[:-20].to_csv(tmp_path / "cohort.csv", index=False)
    table.iloc[-20:].drop(columns="weight").to_csv(tmp_path / "new.csv", index=False)
    seen = visit(folder)
    page = seen.page
    seen.go("/table")
    page.set_input_files("[data-file]", tmp_path / "cohort.csv")
    page.wait_for_selector(".part")
    page.wait_for_selector("#look figure svg")
    seen.picture("table")
    page.get_by_label("Role of weight").select_option("clinical score")
    page.wait_for_url(re.compile("clinical=weight"))
    page.get_by_role("link", name="Train on this table").click()

    page.locator("[name=repetitions]").fill("4" if PICTURES else "3")
    if not PICTURES:
        page.locator("summary", has_text="More").click()
        page.locator("[name=steps]").fill("3000")  # otherwise it might end before it is stopped
        page.locator("[name=patterns]").fill("2")
    page.locator("[name=out]").fill("first")
    page.locator("#planned pre", has_text="--out first").wait_for(state="attached")
    page.locator("#planned summary").click()
    seen.picture("train")
    page.get_by_role("button", name="Train").click()
    page.wait_for_url("**/run?run=first")
    page.wait_for_selector("[data-numbers]:has-text('%')", state="attached")
    if PICTURES:
        page.wait_for_selector("svg.agreed .dot")
        seen.picture("training")
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector("text=This run is not finished")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector(".verdict")
    seen.picture("result")

    page.locator("iframe.report").scroll_into_view_if_needed()  # it is loaded when a reader comes near
    page.frame_locator("iframe.report").locator("h1").wait_for(state="attached")
    page.get_by_role("link", name="Look at individuals").click()
    page.wait_for_selector("#linked", state="attached")
    if page.locator("details.gate").count():
        page.locator("details.gate > summary").click()
    page.locator("#everybody button.link").nth(2).click()
    assert page.locator("#card h4").is_visible()
    seen.picture("people")

    seen.go("/apply?model=first%2Fmodel.safetensors")
    page.set_input_files("[data-file]", tmp_path / "new.csv")
    page.wait_for_selector("text=This table matches the model")
    seen.picture("apply")
    page.get_by_role("button", name="Score them").click()
    page.wait_for_selector("text=20 rows scored")
    assert page.locator(".verdict").is_visible()
    assert (folder / "new_scores.html").is_file()
    seen.picture("scored")
