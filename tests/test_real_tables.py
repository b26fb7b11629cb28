"""From a research spreadsheet to a report, as a user does it: sites, visits, clinical scores, gaps, BIDS."""

import json
import shutil
import tomllib

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rindices import load_model
from rindices.cli import app
from rindices.simulate import simulate_cohort

TINY = ["--repetitions", "2", "--steps", "10", "--patterns", "2"]
SITES = ("north", "south", "west")
OPTIONS = [
    *(
        "--covariates",
        "age,sex",
        "--smooth",
        "age",
        "--interactions",
        "age:sex",
        "--site",
        "site",
        "--visit",
        "session",
    ),
    *("--clinical", "memory,gene,education_level", "--drop-missing", "--proportion", "icv", "--bids"),
]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def study(n=60, n_regions=12):
    """A table with sites, head sizes, scores with gaps, repeated visits and one impossible head."""
    rng = np.random.default_rng(0)
    table = simulate_cohort("basic", n_controls=n, n_patients=n, seed=0).table.iloc[:, : 4 + n_regions]
    table["site"] = rng.choice(SITES, len(table))
    table["icv"] = rng.normal(1500, 100, len(table))
    table["memory"] = np.where(rng.random(len(table)) < 0.2, np.nan, rng.normal(size=len(table)))
    table["gene"] = rng.choice(["e3", "e4"], len(table))
    table["education_level"] = rng.choice(["school", "college", "university"], len(table))
    table.insert(1, "session", "bl")
    later = table.iloc[::4].copy()
    later["session"], later["age"] = "m12", later["age"] + 1
    later.iloc[:, 5 : 5 + n_regions] *= 0.98
    table = pd.concat([table, later], ignore_index=True)
    table.loc[7, "icv"] = 0.0
    return table


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    table = study()
    table.to_csv(folder / "study.csv", index=False)
    return run("fit", folder / "study.csv", "--out", folder / "run", *OPTIONS, *TINY), folder / "run", table


def test_one_command_does_the_whole(fitted):
    result, out, _ = fitted
    assert result.exit_code == 0, result.output
    made = {path.name for path in (out / "analysis").iterdir()}
    expected = "flow associations subgroup_sizes group_check dose_response change change_summary drivers"
    assert made >= {f"{name}.csv" for name in expected.split()}
    assert (out / "report.html").stat().st_size < 5e6


def test_everybody_is_scored_and_the_impossible_is_listed(fitted):
    _, out, table = fitted
    scores = pd.read_csv(out / "r_indices.csv")
    people = pd.read_csv(out / "people.csv", keep_default_na=False)
    assert len(people) == len(table)
    assert people.loc[7, ["used", "reason"]].tolist() == [False, "impossible value"]
    assert "icv" in people.loc[7, "flags"]
    used = table.drop(index=7).reset_index(drop=True)
    assert scores["participant_id"].tolist() == used["participant_id"].tolist()
    assert scores["visit"].tolist() == used["session"].tolist()
    assert np.isfinite(scores[["r1", "r2"]]).all(axis=None)
    summary = json.loads((out / "summary.json").read_text())
    n_people = used["participant_id"].nunique()
    assert summary["n_controls"] + summary["n_patients"] == n_people
    assert summary["excluded"] == {"impossible value": 1}


def test_the_flow_adds_up_in_every_row(fitted):
    _, out, table = fitted
    flow = pd.read_csv(out / "analysis" / "flow.csv")
    assert (flow["read"] == flow["impossible value"] + flow["used"]).all()
    everybody = flow[(flow["site"] == "all") & (flow["group"] == "all")].iloc[0]
    assert everybody["read"] == len(table)
    assert flow[(flow["site"] != "all") & (flow["group"] == "all")]["read"].sum() == len(table)


def test_associations_count_each_person_once_and_gaps_per_variable(fitted):
    _, out, table = fitted
    found = pd.read_csv(out / "analysis" / "associations.csv")
    first = table[(table["session"] == "bl") & (table.index != 7)]
    rows = found[(found["people"] == "patients") & (found["pattern"] == 1)].set_index("variable")
    assert rows.loc["memory", "n"] == first.loc[first["diagnosis"] == "PT", "memory"].notna().sum()
    assert rows["statistic"].to_dict() == {
        "memory": "Pearson r",
        "gene": "point-biserial r",
        "education_level": "eta²",
    }
    scores = pd.read_csv(out / "r_indices.csv")
    patients = scores[(scores["visit"] == "bl") & (scores["group"] == "patient")]
    memory = first.set_index("participant_id").loc[patients["participant_id"], "memory"].to_numpy()
    known = np.isfinite(memory)
    expected = np.corrcoef(patients["r1"][known], memory[known])[0, 1]
    assert rows.loc["memory", "coefficient"] == pytest.approx(expected, abs=1e-4)


def test_the_model_keeps_the_correction_and_scores_new_people_the_same(fitted, tmp_path):
    _, out, table = fitted
    model = load_model(out / "model.safetensors")
    assert model.correction.site == "site"
    assert model.correction.smooth == ("age",)
    table.drop(index=7).to_csv(tmp_path / "new.csv", index=False)
    result = run(
        *("apply", out / "model.safetensors", tmp_path / "new.csv", "--out", tmp_path / "s.csv"),
        *("--visit", "session", "--clinical", "memory", "--report", tmp_path / "s.html"),
    )
    assert result.exit_code == 0, result.output
    before, after = pd.read_csv(out / "r_indices.csv"), pd.read_csv(tmp_path / "s.csv")
    np.testing.assert_allclose(after[["r1", "r2"]], before[["r1", "r2"]], atol=1e-5)
    page = (tmp_path / "s.html").read_text()
    assert "model.safetensors" in page
    assert "sub-0001" not in page


def test_new_sites_are_refused_or_flagged(fitted, tmp_path):
    _, out, table = fitted
    table.drop(index=7).assign(site="elsewhere").to_csv(tmp_path / "new.csv", index=False)
    command = (
        "apply",
        out / "model.safetensors",
        tmp_path / "new.csv",
        "--out",
        tmp_path / "s.csv",
        "--visit",
        "session",
    )
    refused = run(*command)
    assert refused.exit_code == 2
    assert "elsewhere" in refused.output
    assert not (tmp_path / "s.csv").exists()
    scored = run(*command, "--new-sites", "uncorrected")
    assert scored.exit_code == 0, scored.output
    assert pd.read_csv(tmp_path / "s.csv")["flags"].str.contains("elsewhere").all()


def test_scores_that_came_later_are_joined_by_id(fitted, tmp_path):
    _, out, table = fitted
    ids = table["participant_id"].unique()
    later = pd.DataFrame({"participant_id": [*ids[:100], "stranger"], "tau": np.arange(101.0)})
    later.to_csv(tmp_path / "tau.csv", index=False)
    copy = shutil.copytree(out, tmp_path / "run")
    result = run("report", copy, "--clinical", tmp_path / "tau.csv", "--subgroup-limits", "0.3,0.6")
    assert result.exit_code == 0, result.output
    found = pd.read_csv(copy / "analysis" / "associations.csv")
    assert set(found["variable"]) == {"memory", "gene", "education_level", "tau"}
    everybody = found[(found["people"] == "everybody") & (found["variable"] == "tau")]
    assert (everybody["n"] == 99).all()  # one of the hundred was left out
    assert json.loads((copy / "summary.json").read_text())["subgroup_limits"] == [0.3, 0.6]
    before, after = (pd.read_csv(folder / "r_indices.csv") for folder in (out, copy))
    pd.testing.assert_frame_equal(before, after)


def test_a_later_table_replaces_its_columns_whole_and_scores_can_be_removed(fitted, tmp_path):
    _, out, table = fitted
    copy = shutil.copytree(out, tmp_path / "run")
    some = table.loc[table["session"] == "bl", ["participant_id"]].head(30)
    later = some.assign(age=1.0, diagnosis="?", memory=[*np.linspace(1, 9, 20), *[-9999] * 10])
    later.to_csv(tmp_path / "later.csv", index=False)
    result = run("report", copy, "--clinical", tmp_path / "later.csv", "--missing", "-9999")
    assert result.exit_code == 0, result.output
    assert "Left as they are, because the run has them already: age, diagnosis." in " ".join(result.output.split())
    assert "Replaced the column 'memory'" in result.output
    before, after = (pd.read_csv(folder / "variables.csv") for folder in (out, copy))
    pd.testing.assert_series_equal(before["age"], after["age"])
    known = after["participant_id"].isin(some["participant_id"].head(20))
    assert after.loc[known, "memory"].between(1, 9).all()
    assert after.loc[~known, "memory"].isna().all()  # neither what was known before nor the code
    removed = run("report", copy, "--remove-scores", "gene,memory")
    assert removed.exit_code == 0, removed.output
    assert json.loads((copy / "summary.json").read_text())["clinical"] == ["education_level"]
    assert set(pd.read_csv(copy / "analysis" / "associations.csv")["variable"]) == {"education_level"}
    assert "memory" not in pd.read_csv(copy / "variables.csv")
    refused = run("report", copy, "--remove-scores", "age")
    assert (refused.exit_code, "'age'" in refused.output) == (2, True)


def test_new_people_with_visits_count_once(fitted, tmp_path):
    _, out, table = fitted
    used = table.drop(index=7)
    used.to_csv(tmp_path / "new.csv", index=False)
    command = ("apply", out / "model.safetensors", tmp_path / "new.csv", "--out", tmp_path / "s.csv")
    result = run(*command, "--report", tmp_path / "s.html")
    assert result.exit_code == 0, result.output
    n_people = used["participant_id"].nunique()
    assert f"Scored {n_people} people at {len(used)} visits" in result.output
    before, after = pd.read_csv(out / "r_indices.csv"), pd.read_csv(tmp_path / "s.csv")
    assert after["first_visit"].tolist() == before["first_visit"].tolist()
    np.testing.assert_allclose(after["years"], before["years"])


def test_a_model_tells_that_it_was_not_reliable(fitted, tmp_path):
    _, out, table = fitted
    assert json.loads((out / "summary.json").read_text())["reliable"] is False
    assert "Reliable:    no" in run("describe", out / "model.safetensors").output
    table.drop(index=7).to_csv(tmp_path / "new.csv", index=False)
    command = ("apply", out / "model.safetensors", tmp_path / "new.csv", "--out", tmp_path / "s.csv")
    result = run(*command, "--report", tmp_path / "s.html")
    assert "not reliable" in result.output
    assert "These patterns are not reliable" in (tmp_path / "s.html").read_text()


def test_a_table_of_scores_may_repeat_other_columns(fitted, tmp_path):
    table = fitted[2]
    table.drop(columns=["memory", "gene"]).to_csv(tmp_path / "study.csv", index=False)
    columns = ["participant_id", "session", "diagnosis", "age", "memory"]
    table[columns].to_csv(tmp_path / "scores.csv", index=False)
    options = [
        *("--site", "site", "--visit", "session", "--covariates", "age,sex", "--drop-missing", "--proportion", "icv")
    ]
    scores = ("--clinical", tmp_path / "scores.csv", "--exclude", "education_level")
    result = run("fit", tmp_path / "study.csv", "--out", tmp_path / "run", *options, *scores, *TINY)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["clinical"] == ["memory"]


def test_figures_are_written_where_they_can_be_found_again(fitted, tmp_path):
    _, out, _ = fitted
    result = run("report", out, "--out", tmp_path / "r.html", "--figures", tmp_path / "figures")
    assert result.exit_code == 0, result.output
    made = {path.suffix for path in (tmp_path / "figures").iterdir()}
    assert made == {".svg", ".png"}


def test_the_same_run_again_from_its_settings(fitted, tmp_path):
    _, out, _ = fitted
    settings = tomllib.loads((out / "run.toml").read_text())
    assert settings["table"]["smooth"] == ["age"]
    result = run("fit", "--config", out / "run.toml", "--out", tmp_path / "again")
    assert result.exit_code == 0, result.output
    for name in ("r_indices.csv", "z_scores.csv", "analysis/associations.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def test_bids_derivatives(fitted):
    _, out, _ = fitted
    described = json.loads((out / "bids" / "dataset_description.json").read_text())
    assert described["GeneratedBy"][0]["Name"] == "rindices"
    table = pd.read_csv(out / "bids" / "phenotype" / "r_indices.tsv", sep="\t")
    assert {"participant_id", "r1"} <= set(table)


def test_without_leave_the_impossible_stops_the_run_by_row_and_column(fitted, tmp_path):
    _, out, _ = fitted
    table = out.parent / "study.csv"
    options = [option for option in OPTIONS if option != "--drop-missing"]
    result = run("fit", table, "--out", tmp_path / "run", *options, *TINY)
    assert result.exit_code == 2
    assert "icv" in result.output
    assert "row 9" in result.output
    assert "--drop-missing" in result.output
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--interactions", "age"], "age:sex"),
        (["--subgroup-limits", "0.7,0.4"], "0.4,0.7"),
        (["--smooth", "sex"], "sex"),
        (["--clinical", "nonsense"], "nonsense"),
        (["--small-sites", "keep"], "small"),
        (["--covariates", "memory"], "memory"),
    ],
)
def test_mistakes_are_told(fitted, tmp_path, options, words):
    table = fitted[1].parent / "study.csv"
    result = run("fit", table, "--out", tmp_path / "run", *OPTIONS, *TINY, *options)
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert not (tmp_path / "run").exists()
