import json
import re
import shlex
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

from rindices import SearchSettings, TableSettings, fit_table, load_model, simulate_cohort
from rindices.cli import app, console_and_exits
from rindices.judging import Evidence
from rindices.judging.verdict_and_separation import Verdict
from rindices.problems import Message, Remedy
from rindices.run.fit_table import summarise
from rindices.training.execution import Progress
from tests.pages.page import missing, pictures, rows_of
from tests.refusal import refused_with

TINY = ["--repetitions", "2", "--steps", "10", "--patterns", "2"]
FILES = {
    "model.safetensors",
    "r_indices.csv",
    "r_indices.png",
    "patterns.csv",
    "selection.csv",
    "summary.json",
    "run.toml",
    "z_scores.csv",
    "variables.csv",
    "people.csv",
    "analysis",
    "trained",
    "report.html",
}


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    """Run a command that must succeed."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def told(*arguments, code=0):
    """Run a command that must end with this exit code; return its output on one line."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def summary_of(folder):
    return json.loads((folder / "summary.json").read_text())


def small_table(n_controls=40, n_patients=40, n_regions=12):
    table = simulate_cohort("basic", n_controls=n_controls, n_patients=n_patients, seed=0).table
    table["sex"] = table["sex"].map({0: "F", 1: "M"})
    return table.iloc[:, : 4 + n_regions]


@pytest.fixture(scope="module")
def table():
    people = small_table()
    people.loc[3, "diagnosis"] = "SCD"
    return people


@pytest.fixture(scope="module")
def fitted(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    table.to_csv(folder / "cohort.csv", index=False)
    out = folder / "run"
    return (
        succeed(
            *("fit", folder / "cohort.csv", "--out", out, "--patients", "PT", "--covariates", "age,sex"),
            *("--unit", "mL", *TINY),
        ),
        out,
        table,
    )


@pytest.fixture(scope="module")
def out(fitted):
    return fitted[1]


def test_simulate_writes_the_cohort_and_the_truth_and_builds_on_the_users_own_controls(tmp_path):
    result = succeed("simulate", "mild", "--out", tmp_path / "c.csv", "--truth", tmp_path / "t.csv", "--seed", 5)
    table, truth = pd.read_csv(tmp_path / "c.csv"), pd.read_csv(tmp_path / "t.csv")
    assert (len(table), len(truth), str(tmp_path / "c.csv") in result.output) == (1392, 900, True)
    np.testing.assert_allclose(table["lHip"], simulate_cohort("mild", seed=5).table["lHip"], rtol=1e-5)
    people = small_table(60, 40, 40).drop(columns=["diagnosis"])
    people.to_csv(tmp_path / "own.csv", index=False)
    succeed("simulate", "null", "--own-controls", tmp_path / "own.csv", "--out", tmp_path / "c.csv")
    assert {*pd.read_csv(tmp_path / "c.csv")["participant_id"]} == {*people["participant_id"]}


def test_change_is_judged_by_the_noise_of_repeated_controls_or_as_given(out, tmp_path):
    visits = simulate_cohort("basic", n_controls=20, n_patients=20, seed=1, n_visits=2).table
    visits.assign(sex=visits["sex"].map({0: "F", 1: "M"})).to_csv(tmp_path / "v.csv", index=False)
    model, widths = tmp_path / "run" / "model.safetensors", []
    line = ("fit", out.parent / "cohort.csv", "--out", model.parent, "--method", "linear", "--repetitions", "3")
    assert "Used 3 of 3 repetitions; the agreement" in told(
        *line, "--patients", "PT", "--covariates", "age,sex", "--unit", "mL", "--patterns", "2", "--no-report"
    )
    for noise, said in (
        ((), "of 20 controls with repeated visits"),
        (("--scan-noise", "0.05", "--level", "0.9"), "that you specified"),
        (("--scan-noise", "0.2", "--level", "0.9"), "that you specified"),
    ):
        asked = ("apply", model, tmp_path / "v.csv", "--visit", "visit", "--out", tmp_path / "s.csv", *noise)
        assert f"scan noise {said}" in told(*asked)
        change = pd.read_csv(tmp_path / "s_change.csv")
        widths.append(change["severity1_change_high"] - change["severity1_change_low"])
    assert len(widths[0]) == 40
    assert widths[0].nunique() > 10  # limits differ between people
    assert 0 < widths[1].mean() < widths[2].mean()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0.6", 0.6),
        ("-0.4", -0.4),
        ("1,0.7\n0.7,1\n", 0.7),
        ("\ufeff1 0.7\r\n\r\n0.7   1", 0.7),
        ("1;\t0.7\n0.7; 1", 0.7),
    ],
)
def test_simulate_correlates_severities_by_a_number_or_a_matrix(tmp_path, given, expected):
    if "\n" in given:
        (tmp_path / "r.txt").write_text(given, encoding="utf-8")
        given = tmp_path / "r.txt"
    succeed(
        *("simulate", "basic", "--out", tmp_path / "c.csv", "--truth", tmp_path / "t.csv", "--patients", 4000),
        *("--patterns", 2, f"--correlation={given}"),
    )
    truth = pd.read_csv(tmp_path / "t.csv").drop(columns="participant_id")
    assert np.corrcoef(norm.ppf(truth.clip(1e-5, 1 - 1e-5)).T)[0, 1] == pytest.approx(expected, abs=0.04)


def test_fit_writes_the_whole_run_folder_scores_everybody_and_says_what_was_done(fitted):
    result, out, table = fitted
    assert {path.name for path in out.iterdir()} == FILES
    assert not list(out.parent.glob(".*")), "something half-written was left"
    assert result.output.strip().splitlines()[-1].startswith("Done in")
    assert str(out / "report.html") in result.output
    assert "specified in advance, not chosen from the data" in " ".join(result.output.split())
    scores = pd.read_csv(out / "r_indices.csv")
    known = [name.format(k) for name in ("r{}", "r{}_sd", "severity{}", "centile{}", "r{}_networks") for k in (1, 2)]
    # Two repetitions give no intervals.
    assert list(scores) == ["participant_id", "diagnosis", "group", *known, "flags"]
    assert scores["participant_id"].tolist() == table["participant_id"].tolist()
    assert ({*scores["group"]}, scores.loc[3, "group"]) == ({"control", "patient", "other"}, "other")
    assert np.isfinite(scores[known].to_numpy()).all()
    summary, counts = summary_of(out), {"n_controls": 40, "n_patients": 39, "n_other": 1}
    # Nothing is found after ten steps.
    expected = {"status": "done", "patterns_chosen_from_data": False, "verdict": "not reproducible"} | counts
    assert {name: summary[name] for name in expected} == expected
    assert (summary["latent"], np.diag(summary["correlation"])) == ("correlated", pytest.approx([1, 1]))
    assert not missing("".join(summary["warnings"]), "SCD", "no intervals")
    assert 0.5 < summary["separation"]["low"] < summary["separation"]["auc"] < summary["separation"]["high"] <= 1
    patterns, selection = pd.read_csv(out / "patterns.csv"), pd.read_csv(out / "selection.csv")
    changes = [f"{name}_{unit}" for name in ("change", "decomposed") for unit in ("sd", "percent")]
    assert {*patterns} == {"region", "pattern", *changes, "spread_sd", "decomposed_spread_sd"}
    assert len(patterns) == 2 * 12
    assert (selection["chosen"].sum(), selection.loc[selection["chosen"], "step"].item()) == (1, summary["step"])


def maps_in(text):
    """Return a report's tables of the regions of two patterns, without Cohen's d, which is of the people reported."""
    return [
        [row[:7] for row in rows_of(text, f"All regions of pattern {one}, largest changes first")] for one in (1, 2)
    ]


def test_a_report_is_written_again_and_says_of_a_model_the_same_whoever_is_scored(out, table, tmp_path):
    succeed("report", out, "--out", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (out / "report.html").read_bytes()
    found, drawn = [], []
    for name, people in {"two": table[:2], "some": table[5:50]}.items():
        people.to_csv(tmp_path / f"{name}.csv", index=False)
        succeed(
            *("apply", out / "model.safetensors", tmp_path / f"{name}.csv"),
            *("--out", tmp_path / f"{name}_scores.csv", "--report", tmp_path / f"{name}.html"),
        )
        text = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        found.append(maps_in(text))
        drawn.append(pictures(text)["severities_1"])
    assert found == [maps_in((out / "report.html").read_text(encoding="utf-8"))] * 2
    assert all("Training patients, n = " in picture for picture in drawn)
    assert ">Controls, n = " not in drawn[0]  # two people are too few for bars


def test_demo_compares_with_the_truth(tmp_path):
    assert (
        "Mean concordance with the true severities: 0."
        in succeed("demo", "--out", tmp_path / "demo", "--repetitions", 2, "--steps", 10).output
    )
    folder = tmp_path / "demo" / "run"
    assert {path.name for path in folder.iterdir()} == FILES | {"truth.csv"}
    assert sorted(summary_of(folder)["recovery"]["matched_truth"]) == ["s1", "s2", "s3"]


@pytest.mark.parametrize(
    ("state", "older", "final", "said"),
    [
        ("reproducible", 0, "reproducible", "At least 1 pattern is reproducible. Why. Try --steps 19."),
        ("weak", 0, "weak", "At least 1 pattern is reproducible, but weak. Why. Try --steps 19. Use them to compare"),
        ("weak", 20, "confounded", "but the groups also differ in another variable. Why. Try --steps 19."),
        (
            "reproducible",
            20,
            "confounded",
            "At least 1 pattern is reproducible, but the groups also differ in another variable.",
        ),
        ("not reproducible", 20, "not reproducible", "the patterns are not reproducible. Why. Try --steps 19."),
        ("no difference", 20, "no difference", "No difference between patients and controls was found. Why. Try"),
    ],
)
def test_the_verdict_is_told_and_kept(table, tmp_path, monkeypatch, state, older, final, said):
    verdict = Verdict(
        state,
        Message("Why. Try ", Remedy("max_steps", 19), "."),
        Evidence(p=0.25, eigenvalues=(2.0, 1.5), found_again=1),
    )
    monkeypatch.setattr("rindices.search.judged", lambda *_: verdict)
    table.assign(age=table["age"] + older * (table["diagnosis"] == "PT")).to_csv(tmp_path / "table.csv", index=False)
    words = told(
        *("fit", tmp_path / "table.csv", "--out", tmp_path / "run", "--patients", "PT", "--covariates", "age"),
        *TINY,
        "--no-report",
    )
    assert (said in words, "Do not interpret" in words) == (True, final not in ("reproducible", "weak"))
    summary = summary_of(tmp_path / "run")
    assert (summary["verdict"], summary["reliable"]) == (final, final in ("reproducible", "weak", "confounded"))
    assert (summary["evidence"]["p"], summary["evidence"]["eigenvalues"]) == (0.25, [2.0, 1.5])
    assert ("differ in age" in summary["reliable_reason"]) is (final == "confounded")
    model = tmp_path / "run" / "model.safetensors"  # keeps the verdict, and shows it for new people
    assert load_model(model).verdict_ == (final, summary["reliable_reason"])
    assert said.partition(" Why")[0] in told("describe", model)
    assert said in told("apply", model, tmp_path / "table.csv", "--out", tmp_path / "scores.csv")


def test_a_training_that_failed_is_called_so(out, tmp_path, monkeypatch):
    monkeypatch.setattr("rindices.judging.agreement_and_misfit.COLLAPSED_SD", 1.0)
    said = "the patterns are not reproducible. Training failed: in every repetition, an R-index collapsed to nearly"
    assert said in told("fit", out.parent / "cohort.csv", "--out", tmp_path / "run", "--patients", "PT", *TINY)
    assert said.partition(". ")[0] in (tmp_path / "run" / "report.html").read_text()


def test_report_of_an_unfinished_run_says_so_and_does_not_outlive_it(out, tmp_path, monkeypatch):
    def reported_meanwhile(*results):
        assert "not finished" in told("report", tmp_path / "run", code=2)
        assert "not finished" in (tmp_path / "run" / "report.html").read_text()
        return summarise(*results)

    monkeypatch.setattr("rindices.run.fit_table.summarise", reported_meanwhile)
    succeed("fit", out.parent / "cohort.csv", "--out", tmp_path / "run", "--patients", "PT", *TINY, "--no-report")
    assert not (tmp_path / "run" / "report.html").exists()


def test_python_makes_the_same_run_as_the_command_line(out, tmp_path):
    columns = TableSettings(patients="PT", covariates="age,sex", unit="mL")
    search = SearchSettings(n_patterns=2, n_repetitions=2, max_steps=10)
    made = fit_table(out.parent / "cohort.csv", tmp_path / "run", columns, search)
    assert (made.folder / "r_indices.csv").read_bytes() == (out / "r_indices.csv").read_bytes()
    assert ((made.folder / "report.html").is_file(), made.summary.n_patterns, made.cohort.n_other) == (True, 2, 1)
    when = (made.folder / "summary.json").stat().st_mtime_ns
    assert fit_table(out.parent / "cohort.csv", tmp_path / "run", columns, search).summary == made.summary
    assert (made.folder / "summary.json").stat().st_mtime_ns == when
    refused_with(
        r"overwrite=True",
        fit_table,
        out.parent / "cohort.csv",
        tmp_path / "run",
        columns,
        replace(search, n_patterns=3),
    )


def test_codes_for_missing_values_are_gaps(out, table, tmp_path):
    coded = table.assign(mmse=np.where(np.arange(len(table)) % 4, 28.0, -9999), code=table["participant_id"])
    coded.loc[5, "lAcc"] = -9999
    coded.rename(columns={"participant_id": "who"}).to_csv(tmp_path / "coded.csv", index=False)
    said = told(
        *("apply", out / "model.safetensors", tmp_path / "coded.csv", "--out", tmp_path / "scores.csv", "--id", "who"),
        *("--exclude", "mmse,code", "--missing", "-9999", "--drop-missing", "--complete-only"),
    )
    assert f"Scored {len(coded) - 1} people" in said


def test_a_long_list_is_a_ready_option_below_the_message_and_no_file(table, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    others = {f"item {i}": np.where(np.arange(80) == i, np.nan, rng.integers(7, size=80)) for i in range(30)}
    table.assign(**others).to_csv("wide.csv", index=False)
    refused = run("fit", "wide.csv", "--out", "run", "--patients", "PT", "--complete-only")
    assert (refused.exit_code, "exclude the columns with --exclude NAMES" in refused.stderr) == (2, True)
    option = shlex.split(refused.stderr.splitlines()[-1])
    assert (option, [path.name for path in tmp_path.iterdir()]) == (["--exclude", ",".join(others)], ["wide.csv"])
    assert "12 regions" in told("fit", "wide.csv", "--out", "run", "--patients", "PT", *option, *TINY, "--no-report")


def test_lines_of_progress_say_the_time_that_is_left(monkeypatch, capsys):
    monkeypatch.setattr(console_and_exits, "_LINE_SECONDS", -1.0)
    with console_and_exits.training_bars() as show:
        for done in (0, 1000, 2000, 3000):
            show(Progress("Training", done, 600_000, 0))
            time.sleep(0.05)
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Training: 0 % [\d,]+ steps/s, about (\d+ min )?(\d+ s )?left", lines[-1]), lines
