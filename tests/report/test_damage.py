"""A file that is missing or damaged is named, with what to do."""

import hashlib
import json
import re

import pandas as pd
import pytest

from rindices.report import write_report
from tests.report.made_run import REFITS, add_analyses, add_truth, change_summary, make_run


@pytest.mark.parametrize("name", ["r_indices.csv", "patterns.csv", "selection.csv", "summary.json", "run.toml"])
def test_missing_file_is_named_with_a_remedy(run, name):
    (run / name).unlink()
    with pytest.raises(ValueError, match=rf"^{re.escape(name)} is missing in .*`rindices fit \.\.\. --overwrite`"):
        write_report(run)
    assert not (run / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("summary.json", "{", "not JSON"),
        ("summary.json", "[]", "expected an object"),
        ("summary.json", '{"status": "done"}', "'n_controls' is missing"),
        ("summary.json", "{}", "'status' is missing"),
        ("r_indices.csv", "", "not a table"),
        ("r_indices.csv", "participant_id,diagnosis\n1,CN\n", "column 'group' is missing"),
        ("patterns.csv", "region,pattern,change_sd,change_percent,spread_sd\na,1,large,1,1\n", "has 'large'"),
        ("patterns.csv", "region,pattern,change_sd,change_percent,spread_sd\na,1,1,1,1\n", "expected the patterns"),
        ("patterns.csv", "region,pattern,change_sd,change_percent,spread_sd\na,1,inf,1,1\n", "line 2, column 'change"),
        ("patterns.csv", "region,pattern,change_sd,change_percent,spread_sd\n", "no rows"),
        ("run.toml", b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_damaged_file_is_named_with_a_remedy(run, name, content, expected):
    (run / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf"^{re.escape(name)} in .*{expected}.*`rindices fit \.\.\. --overwrite`"):
        write_report(run)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"n_patients": True}, "'n_patients' has the unexpected value True"),
        ({"reliable": "yes"}, "'reliable' has the unexpected value 'yes'"),
        ({"versions": ["jax"]}, "'versions' has the unexpected value"),
        ({"members_left_out": [4]}, "'members_left_out' has the unexpected entry 4"),
        ({"members_left_out": [{"member": 4}]}, "'reason' of 'members_left_out' is missing"),
        ({"status": "stopped"}, "'status' has the unexpected value 'stopped', expected one of"),
        ({"search": {"reason": 3}}, "'reason' of 'search' has the unexpected value 3"),
        ({"search": {"runners_up": [{"n_patterns": 2}]}}, "'orthogonality' of 'runners_up' is missing"),
        ({"null": {"method": "guess"}}, "'method' of 'null' has the unexpected value 'guess'"),
        ({"null": {"method": "calibrated", "statistic": 0.9}}, "'threshold' of 'null' is missing"),
        ({"null": {**REFITS, "values": ["0.5"]}}, "'values' of 'null' has the unexpected value '0.5'"),
        ({"balance": [{"variable": "age"}]}, "'kind' of 'balance' is missing"),
        ({"n_patterns": 0}, "'n_patterns' is 0"),
        ({"correlation": "none"}, "'correlation' has the unexpected value 'none'"),
        ({"correlation": []}, "'correlation' needs 3 rows of 3 numbers"),
        ({"correlation": [[1.0, 0.5], [0.5, 1.0]]}, "'correlation' needs 3 rows of 3 numbers"),
        ({"correlation": [[1.0, 0.5, 0.1]] * 2 + [[1.0]]}, "'correlation' needs 3 rows of 3 numbers"),
        ({"correlation": [[1.0, 0.5, 0.1]] * 2 + [1.0]}, "'correlation' needs 3 rows of 3 numbers"),
        ({"correlation": [[1.0, 0.5, None]] * 3}, "'correlation' has the unexpected value None"),
        ({"correlation": [[1.0, 0.5, "<b>"]] * 3}, "'correlation' has the unexpected value '<b>'"),
    ],
)
def test_damaged_summary_says_where(run, changes, expected):
    change_summary(run, **changes)
    with pytest.raises(ValueError, match=rf"^summary.json in .*{expected}"):
        write_report(run)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"per_pattern": [0.9]}, "summary.json .*'per_pattern' of 'recovery' needs a value for each pattern"),
        ({"matched_truth": ["s1", "s9"]}, "truth.csv .*column 's9' is missing"),
        ({"pattern_concordance": None}, "summary.json .*'pattern_concordance'"),
    ],
)
def test_damaged_truth_says_where(tmp_path, change, expected):
    add_truth(tmp_path, make_run(tmp_path, n_patterns=2))
    found = json.loads((tmp_path / "summary.json").read_text())["recovery"]
    change_summary(tmp_path, recovery={**found, **change})
    with pytest.raises(ValueError, match=expected):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda table: table.drop(columns="best"), "column 'best' is missing"),
        (
            lambda table: table.drop(columns="dimension_correlation_low"),
            "column 'dimension_correlation_low' is missing",
        ),
        (
            lambda table: table.assign(best=True),
            "one row with best = true for 3 patterns .*orthogonality 0.8, found 15",
        ),
        (lambda table: table.assign(best=table["step"] == 4000), "chosen = true does not have best = true"),
        (lambda table: table.assign(n_patterns=4), "has 4 patterns, but summary.json has 3"),
    ],
)
def test_damaged_selection_says_where(run, change, expected):
    change(pd.read_csv(run / "selection.csv")).to_csv(run / "selection.csv", index=False)
    with pytest.raises(ValueError, match=rf"^selection.csv in .*{expected}"):
        write_report(run)


def without_row(folder, name, position=3):
    """Delete a line of a table."""
    lines = (folder / name).read_text().splitlines(keepends=True)
    (folder / name).write_text("".join(lines[:position] + lines[position:][1:]))


def shortened(folder, name):
    """Leave nothing but the header."""
    (folder / name).write_text((folder / name).read_text().partition("\n")[0] + "\n")


def upside_down(folder, name):
    """Turn the order of the rows round."""
    header, *rows = (folder / name).read_text().splitlines()
    (folder / name).write_text("\n".join([header, *reversed(rows)]) + "\n")


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("r_indices.csv", without_row, "it has 39 people of the group control, but summary.json has 40"),
        ("patterns.csv", without_row, "pattern 1 has 19 regions, but summary.json has 20"),
        ("people.csv", without_row, r"\(participant sub-0002 has 0 rows in it and 1 there\)"),
        ("people.csv", shortened, r"\(participant sub-0000 has 0 rows in it and 1 there\)"),
        ("people.csv", lambda folder, name: without_row(folder, name, -1), "it has 116 rows, but .* says 117 were"),
        ("z_scores.csv", without_row, "participant sub-0002 has 0 rows"),
        ("variables.csv", without_row, "participant sub-0002 has 0 rows"),
        ("variables.csv", upside_down, "its people are in another order"),
        ("variables.csv", lambda folder, name: (folder / name).write_text(""), "not a table"),
        ("variables.csv", lambda folder, name: (folder / name).write_text("age\n"), "'participant_id' is missing"),
        ("variables.csv", lambda folder, name: (folder / name).write_bytes(b"participant_id\n\xff\n"), "not UTF-8"),
        ("model.safetensors", lambda folder, name: (folder / name).write_text("other"), "not the model of this run"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(run, undrawn, name, change, expected):
    add_analyses(run)
    people = pd.read_csv(run / "r_indices.csv")["participant_id"]
    for table in ("z_scores.csv", "variables.csv"):
        people.to_csv(run / table, index=False)
    (run / "model.safetensors").write_text("own")
    change_summary(run, model_sha256=hashlib.sha256(b"own").hexdigest())
    write_report(run, run / "sound.html")
    change(run, name)
    with pytest.raises(ValueError, match=rf"^{re.escape(name)} in .*{expected}.*--overwrite"):
        write_report(run)


def test_no_chosen_row(run):
    selection = pd.read_csv(run / "selection.csv").assign(chosen=False)
    selection.to_csv(run / "selection.csv", index=False)
    with pytest.raises(ValueError, match="one row with chosen = true, found 0"):
        write_report(run)


def test_unknown_group(run):
    text = (run / "r_indices.csv").read_text().replace(",control,", ",healthy,")
    (run / "r_indices.csv").write_text(text)
    with pytest.raises(ValueError, match="column group has 'healthy'"):
        write_report(run)
