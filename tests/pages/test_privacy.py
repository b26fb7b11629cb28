"""No id is in the page unless ids were asked for."""

import json
import re

import pandas as pd
import pytest

from rindices.pages.report import make_report, write_report
from rindices.problems import Curtain
from tests.pages.made_run import add_analyses, add_truth, add_visits, change_summary, make_run
from tests.pages.page import missing


def distinctive(folder):
    """Give everybody an id that occurs nowhere else, in all tables."""
    for path in [*folder.glob("*.csv"), *(folder / "analysis").glob("*.csv")]:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if "participant_id" in table:
            table["participant_id"] = "QX" + table["participant_id"].str.removeprefix("sub-") + "Z"
            table.to_csv(path, index=False)


@pytest.fixture
def named(tmp_path):
    folder = tmp_path / "run"
    add_truth(folder, make_run(folder, n_patterns=2))
    add_analyses(folder)
    add_visits(folder)
    distinctive(folder)
    people = pd.read_csv(folder / "r_indices.csv")
    people["flags"] = "like QX0041Z (participant QX0042Z)"
    people.to_csv(folder / "r_indices.csv", index=False)
    change_summary(
        folder,
        source="/data/QX0007Z/table.csv",
        warnings=["Row 3 (participant QX0003Z) is odd.", "QX0004Z, too."],
        reliable_reason="Because of QX0005Z.",
    )
    run_toml = (folder / "run.toml").read_text()
    (folder / "run.toml").write_text(run_toml.replace("volumes.csv", "/data/QX0006Z_x/QX0008Z.csv"))
    return folder


def test_no_id_is_in_the_page(named):
    text = write_report(named).read_text(encoding="utf-8")
    assert not re.findall(r"QX\w+", text)
    assert missing(text, "Row 3 is odd.", "/data/[id]/table.csv") == []
    data = json.loads(re.search(r'id="people-data">(.*?)</script>', text)[1])
    assert len(data["people"]) == 112
    assert {name for person in data["people"] for name in person} == {"group", "site", "visits", "change"}
    groups = [person["group"] for person in data["people"]]
    assert groups == sorted(groups, reverse=True)  # not in the order of the table
    first = [person["visits"][0]["r"][0] for person in data["people"] if person["group"] == "patient"]
    assert first == sorted(first, reverse=True)
    example = data["people"][data["example"]]
    assert example["group"] == "patient"
    visit = example["visits"][0]
    assert "visit" not in visit
    assert visit["flags"] == "like [id]"
    assert all(len(of.get("drivers", [[]])[0]) in (0, 3 * 6) for person in data["people"] for of in person["visits"])


def test_ids_are_there_when_asked_for(named, undrawn):
    text = write_report(named, show_ids=True).read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="people-data">(.*?)</script>', text)[1])
    assert (len(data["people"]), [visit["visit"] for visit in data["people"][0]["visits"]]) == (112, ["bl", "m12"])
    assert "Row 3 (participant QX0003Z) is odd." in text


def test_stopped_run_names_nobody(tmp_path):
    (tmp_path / "summary.json").write_text(
        json.dumps({"status": "failed", "failure": "Row 3 (participant QX1) is odd.", "warnings": []})
    )
    assert "QX1" not in make_report(tmp_path).html
    assert "QX1" in make_report(tmp_path, show_ids=True).html


@pytest.mark.parametrize(
    ("ids", "text", "expected"),
    [
        (["sub-1"], "sub-1, sub-12, xsub-1", "[id], sub-12, xsub-1"),
        (["sub-1", "sub-1-a"], "sub-1-a/sub-1", "[id]/[id]"),
        (["12"], "seed = 12 (participant 12)", "seed = 12"),
        (["123456"], "path/123456.csv", "path/[id].csv"),
        (["(x)"], "a(x)b", "a[id]b"),
        (["", " "], "a b", "a b"),
    ],
)
def test_curtain(ids, text, expected):
    assert (Curtain(ids)(text), Curtain(ids, active=False)(text)) == (expected, text)
