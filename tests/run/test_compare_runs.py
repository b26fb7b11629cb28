"""Two runs compared through their folders."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rindices.cli import app
from rindices.judging.agreement_and_misfit import concordance
from rindices.problems import InputError
from rindices.run.compare_runs import compare_runs
from tests.pages.made_run import add_analyses, add_visits, make_run
from tests.pages.page import Page


@pytest.fixture
def runs(tmp_path):
    """Two runs of the same people; the second has patterns 1 and 2 the other way round, and nothing else in common."""
    for name in ("a", "b"):
        make_run(tmp_path / name)
    path = tmp_path / "b" / "r_indices.csv"
    table = pd.read_csv(path)
    ends = ("", "_low", "_high")
    swap = {f"severity{one}{end}": f"severity{other}{end}" for one, other in ((1, 2), (2, 1)) for end in ends}
    table = table.rename(columns=swap)[[*table.columns]]
    table.loc[50, ["severity1", "severity1_low", "severity1_high"]] += 3
    table.to_csv(path, index=False)
    maps = pd.read_csv(tmp_path / "b" / "patterns.csv")
    maps["pattern"] = maps["pattern"].replace({1: 2, 2: 1})
    maps.to_csv(tmp_path / "b" / "patterns.csv", index=False)
    return tmp_path / "a", tmp_path / "b"


def invoke(*words):
    result = CliRunner().invoke(app, ["compare", *map(str, words)])
    return result.exit_code, result.output


def test_patterns_are_matched_and_who_moved_is_found(runs):
    found = compare_runs(*runs)
    assert {(pair.first, pair.second) for pair in found.pairs} == {(1, 2), (2, 1), (3, 3)}
    assert (found.matched_by, found.unmatched, found.n_patients, len(found.people)) == ("people", ((), ()), 60, 112)
    assert {(pair.first, pair.second): pair.moved for pair in found.pairs} == {(1, 2): 0, (2, 1): 1, (3, 3): 0}
    assert found.people["participant_id"][0] == "sub-0050"
    a, b = (pd.read_csv(run / "r_indices.csv") for run in runs)
    patients = a["group"] == "patient"
    [pair] = [pair for pair in found.pairs if pair.first == 2]
    assert (pair.concordance, pair.difference, pair.map_correlation) == (
        pytest.approx(concordance(a["severity2"][patients].to_numpy(), b["severity1"][patients].to_numpy())),
        pytest.approx((b["severity1"] - a["severity2"]).mean()),
        pytest.approx(1),
    )


def test_another_number_of_patterns_leaves_some_without_a_partner(runs, tmp_path):
    make_run(tmp_path / "two", n_patterns=2)
    found = compare_runs(runs[0], tmp_path / "two")
    assert (len(found.pairs), len(found.unmatched[0]), found.unmatched[1]) == (2, 1, ())
    turned = compare_runs(tmp_path / "two", runs[0])
    assert {(pair.second, pair.first) for pair in turned.pairs} == {pair[:2] for pair in found.pairs}
    assert ("n_patterns", "3", "2") in found.settings


def test_a_pattern_that_no_common_patient_has_is_matched_without_a_concordance(runs):
    for run, columns in zip(runs, (["severity3"], ["severity1", "severity3"]), strict=True):
        table = pd.read_csv(run / "r_indices.csv")
        table.loc[table["group"] == "patient", columns] = 0.0
        table.to_csv(run / "r_indices.csv", index=False)
    found = {pair[:2]: pair.concordance for pair in compare_runs(*runs).pairs}
    assert {pair for pair, order in found.items() if not np.isnan(order)} == {(1, 2)}
    assert len(found) == 3
    assert invoke(*runs)[0] == 0


def test_a_person_counts_once_however_many_visits(runs):
    for run in runs:
        add_analyses(run)
        add_visits(run)
    for name in ("r_indices", "z_scores", "variables", "people", "analysis/drivers"):
        table = pd.read_csv(runs[1] / f"{name}.csv", keep_default_na=False)
        stays = table["participant_id"] < "sub-0057"
        table["participant_id"] = table["participant_id"].where(stays, "other-" + table["participant_id"])
        table.to_csv(runs[1] / f"{name}.csv", index=False)
    found = compare_runs(*runs)
    assert (len(found.people), found.n_patients, found.matched_by) == (57, 17, "maps")
    assert set(found.people["visit"]) == {"bl"}
    assert "57 people are in both, 17 of them patients" in invoke(*runs)[1]


def test_other_labels_of_visits_and_exchanged_groups_are_told(runs):
    for run in runs:
        add_analyses(run)
        add_visits(run)
    table = pd.read_csv(runs[1] / "r_indices.csv")
    table["visit"] = table["visit"].replace({"bl": "1", "m12": "2"})
    one, other = (table.index[table["group"] == group][0] for group in ("control", "patient"))
    for place, group in ((one, "patient"), (other, "control")):
        table.loc[table["participant_id"] == table["participant_id"][place], "group"] = group
    table.to_csv(runs[1] / "r_indices.csv", index=False)
    found = compare_runs(*runs)
    assert (len(found.people), found.n_patients, found.matched_by) == (112, 60, "people")
    said = " ".join(invoke(*runs)[1].split())
    assert "The runs have no visit label in common (m12, bl) and (2, 1), so each person's first visits" in said
    assert "2 people are controls in one run and patients in the other" in said


def test_other_people_are_compared_by_maps(runs):
    for name in ("r_indices", "z_scores", "variables", "people"):
        path = runs[1] / f"{name}.csv"
        table = pd.read_csv(path)
        table["participant_id"] = "other-" + table["participant_id"]
        table.to_csv(path, index=False)
    found = compare_runs(*runs)
    assert (found.matched_by, len(found.people)) == ("maps", 0)
    assert {pair[:2] for pair in found.pairs} == {(1, 2), (2, 1), (3, 3)}
    assert np.isnan(found.pairs[0].concordance)
    code, said = invoke(*runs)
    assert (code, "0 people are in both" in said, "correlation of the maps 1.00" in said) == (0, True, True)


def test_tables_and_a_page_without_ids(runs, tmp_path):
    code, said = invoke(*runs, "--out", tmp_path / "compared")
    assert code == 0, said
    assert "1 person with non-overlapping intervals" in said
    assert "sub-" not in said
    assert sorted(path.name for path in (tmp_path / "compared").iterdir()) == [
        "compare.html",
        "patterns.csv",
        "people.csv",
        "regions.csv",
    ]
    page = Page((tmp_path / "compared" / "compare.html").read_text(encoding="utf-8"))
    assert "sub-" not in page.words
    assert not page.every("script")
    assert (len(page.every("svg")), invoke(*runs, "--out", tmp_path / "compared", "--show-ids")[0]) == (6, 0)
    assert "sub-0050" in (tmp_path / "compared" / "compare.html").read_text(encoding="utf-8")


def test_what_cannot_be_compared_is_refused(runs, tmp_path):
    with pytest.raises(InputError, match="are the same run"):
        compare_runs(runs[0], runs[0])
    for out, told in (
        (runs[0] / "compared", "is in the run folder"),
        (runs[1], "is in the run folder"),
        (tmp_path, "other files"),
    ):
        code, said = invoke(*runs, "--out", out)
        assert (code, told in said) == (2, True), said
    assert not (runs[0] / "compared").exists()
    assert invoke(runs[0], tmp_path / "nothing")[0] == 2
