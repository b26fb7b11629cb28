"""From a research spreadsheet to a report, as a user would do it: sites, visits, clinical scores, gaps, BIDS."""

import shutil

import numpy as np
import pandas as pd
import pytest

from rindices import load_model, simulate_cohort
from tests.pages.page import missing
from tests.test_cli import TINY, summary_of, told

SCORES = ["memory", "gene", "education_level"]
ROLES = ["--site", "site", "--visit", "session", "--covariates", "age,sex", "--drop-missing", "--proportion", "icv"]


@pytest.fixture(scope="module")
def table():
    """Return a table with sites, head sizes, scores with gaps, repeated visits and one impossible head."""
    rng = np.random.default_rng(0)
    table = simulate_cohort("basic", n_controls=60, n_patients=60, seed=0).table.iloc[:, : 4 + 12]
    table.insert(1, "session", "bl")
    table = table.assign(
        site=rng.choice(["north", "south", "west"], len(table)),
        icv=rng.normal(1500, 100, len(table)),
        memory=np.where(rng.random(len(table)) < 0.2, np.nan, rng.normal(size=len(table))),
        gene=rng.choice(["e3", "e4"], len(table)),
        education_level=rng.choice(["school", "college", "university"], len(table)),
    )
    later = table.iloc[::4].assign(session="m12", age=table["age"] + 1)
    later.iloc[:, 5 : 5 + 12] *= 0.98
    table = pd.concat([table, later], ignore_index=True)
    table.loc[7, "icv"] = 0.0
    return table


@pytest.fixture(scope="module")
def out(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    table.drop(columns=SCORES).to_csv(folder / "study.csv", index=False)
    # A table of scores may repeat other columns.
    repeated = ["participant_id", "session", "diagnosis", "age"]
    table[[*repeated, *SCORES]].to_csv(folder / "scores.csv", index=False)
    options = ("--smooth", "age", "--interactions", "age:sex", "--clinical", folder / "scores.csv", "--bids")
    told("fit", folder / "study.csv", "--out", folder / "run", *ROLES, *options, *TINY)
    return folder / "run"


@pytest.fixture
def copy(out, tmp_path):
    """Return a copy of the run that tests may change."""
    return shutil.copytree(out, tmp_path / "run")


def test_one_command_does_the_whole_and_everybody_is_scored(out, table):
    expected = "flow associations subgroup_sizes group_check dose_response change change_summary drivers"
    assert {path.stem for path in (out / "analysis").iterdir()} >= {*expected.split()}
    assert (out / "report.html").stat().st_size < 5e6
    assert (out / "bids" / "phenotype" / "r_indices.tsv").exists()
    scores, people = pd.read_csv(out / "r_indices.csv"), pd.read_csv(out / "people.csv", keep_default_na=False)
    assert (len(people), people.loc[7, ["used", "reason"]].tolist()) == (len(table), [False, "impossible value"])
    assert "icv" in people.loc[7, "flags"]
    used, summary = table.drop(index=7), summary_of(out)
    assert scores[["participant_id", "visit"]].values.tolist() == used[["participant_id", "session"]].values.tolist()
    assert np.isfinite(scores[["r1", "r2"]]).all(axis=None)
    assert (summary["n_controls"] + summary["n_patients"], summary["excluded"]) == (
        used["participant_id"].nunique(),
        {"impossible value": 1},
    )


def test_associations_count_each_person_once_and_gaps_per_variable(out, table):
    found, scores = pd.read_csv(out / "analysis" / "associations.csv"), pd.read_csv(out / "r_indices.csv")
    rows = found[(found["people"] == "patients") & (found["pattern"] == 1)].set_index("variable")
    assert rows["statistic"].to_dict() == {"memory": "Pearson r", "gene": "point-biserial r", "education_level": "eta²"}
    known = table[["participant_id", "session", "memory"]].rename(columns={"session": "visit"}).dropna()
    own = scores[(scores["visit"] == "bl") & (scores["group"] == "patient")].merge(known)
    assert rows.loc["memory", ["n", "coefficient"]].tolist() == [
        len(own),
        pytest.approx(own["r1"].corr(own["memory"]), abs=1e-4),
    ]


def test_the_model_keeps_the_correction_and_scores_the_same_people_the_same(out, table, tmp_path):
    model, used = out / "model.safetensors", table.drop(index=7)
    correction = load_model(model).correction
    assert (correction.site, correction.smooth) == ("site", ("age",))
    used.to_csv(tmp_path / "new.csv", index=False)
    said = told(
        *("apply", model, tmp_path / "new.csv", "--out", tmp_path / "s.csv", "--clinical", "memory"),
        "--report",
        tmp_path / "s.html",
    )
    before, after = pd.read_csv(out / "r_indices.csv"), pd.read_csv(tmp_path / "s.csv")
    learned = before["group"] == "control"  # there, scored by repetitions that held them out
    np.testing.assert_allclose(after[["r1", "r2"]][~learned], before[["r1", "r2"]][~learned], atol=1e-5)
    np.testing.assert_allclose(*(scores[["first_visit", "years"]].astype(float) for scores in (after, before)))
    assert f"Scored {used['participant_id'].nunique()} people at {len(used)} visits" in said
    page = (tmp_path / "s.html").read_text()
    assert missing(page, "model.safetensors", "sub-0001") == ["sub-0001"]
    for words in (said, page, told("describe", model)):
        assert "the patterns are not reproducible." in words


def test_scores_that_came_later_are_joined_by_id(out, table, copy, tmp_path):
    pd.DataFrame(
        {"participant_id": [*table["participant_id"].unique()[:100], "stranger"], "tau": np.arange(101.0)}
    ).to_csv(tmp_path / "tau.csv", index=False)
    told("report", copy, "--clinical", tmp_path / "tau.csv", "--subgroup-limits", "0.3,0.6")
    found = pd.read_csv(copy / "analysis" / "associations.csv")
    assert set(found["variable"]) == {"memory", "gene", "education_level", "tau"}
    # One of the hundred was left out.
    assert set(found.query("people == 'everybody' and variable == 'tau'")["n"]) == {99}
    assert summary_of(copy)["subgroup_limits"] == [0.3, 0.6]
    assert (copy / "r_indices.csv").read_bytes() == (out / "r_indices.csv").read_bytes()


def test_a_later_table_replaces_its_columns_whole_and_scores_can_be_removed(out, table, copy, tmp_path):
    some = table.loc[table["session"] == "bl", ["participant_id"]].head(30)
    some.assign(age=1.0, diagnosis="?", memory=[*np.linspace(1, 9, 20), *[-9999] * 10]).to_csv(
        tmp_path / "later.csv", index=False
    )
    line = ("report", copy, "--clinical", tmp_path / "later.csv")
    assert "people have memory = -9999, which looks like a code" in told(*line)  # and in no test until it is named
    assert pd.read_csv(copy / "variables.csv")["memory"].agg(["min", "max"]).tolist() == [1, 9]
    expected = (
        "Columns left unchanged because the run already has them: age, diagnosis.",
        "Replaced the column 'memory'",
    )
    assert not missing(told(*line, "--missing", "-9999"), *expected)
    before, after = (pd.read_csv(folder / "variables.csv") for folder in (out, copy))
    pd.testing.assert_series_equal(before["age"], after["age"])
    known = after["participant_id"].isin(some["participant_id"].head(20))
    assert after["memory"].between(1, 9).equals(known)
    assert after["memory"].notna().equals(known)  # neither earlier values nor the code
    told("report", copy, "--remove-scores", "gene,memory")
    assert summary_of(copy)["clinical"] == ["education_level"]
    tables = [pd.read_csv(copy / name) for name in ("analysis/associations.csv", "variables.csv")]
    assert (set(tables[0]["variable"]), "memory" in tables[1]) == ({"education_level"}, False)
