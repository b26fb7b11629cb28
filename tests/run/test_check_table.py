"""What is said of a table before anything is trained, and that it is what `fit` says."""

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from rindices.cli import app
from rindices.cli.console_and_exits import set_output
from rindices.run.check_table import CheckedTable, check_table
from rindices.schema.role_guesses import kind_of
from rindices.settings import TableSettings
from rindices.simulate import simulate_cohort
from tests.pages.page import Page

ROLES = ("--covariates", "age,sex", "--site", "site")


@pytest.fixture(scope="module")
def people():
    """120 people with a total, a quality measure, a score, an empty column, and somebody much too small."""
    table = simulate_cohort("basic", n_controls=60, n_patients=60, seed=0).table
    rng = np.random.default_rng(0)
    table.insert(2, "site", np.tile(["A", "B"], 60))
    table["TotalGrayVol"] = table.iloc[:, 5:].sum(axis=1)
    table["qc_rating"] = rng.normal(3, 1, 120)
    table["mmse"] = rng.integers(18, 31, 120).astype(float)
    table["empty"] = np.nan
    table.loc[7, table.columns[5:130]] *= 0.6
    return table.assign(note="text")


def checked(table, folder, *options, code=0):
    path = folder / "people.csv"
    table.to_csv(path, index=False)
    result = CliRunner().invoke(app, ["check", str(path), *options])
    set_output()
    assert result.exit_code == code, result.output
    return result.output


def test_every_column_has_a_part_and_a_reason(people, tmp_path):
    found = CheckedTable.model_validate_json(checked(people, tmp_path, *ROLES, "--json"))
    by_name = {column.name: column for column in found.columns}
    assert list(by_name) == list(people.columns)
    assert {name: by_name[name].role for name in ("age", "site", "lHip", "note", "empty")} == {
        "age": "a covariate",
        "site": "the site",
        "lHip": "a region",
        "note": "no role",
        "empty": "no role",
    }
    assert (by_name["note"].why, by_name["empty"].why) == ("text, not numbers", "no values")
    assert not any(column.suspicion for column in found.columns)
    assert [by_name[name].why for name in ("TotalGrayVol", "qc_rating", "mmse")] == [
        "a total, judging by its name",
        "quality measure",
        "score",
    ]
    assert by_name["lHip"].median == pytest.approx(people["lHip"].median())
    assert {kind: len(names) for kind, names in found.kinds.items()} == {"regions": 128}
    assert [(one.setting, one.value) for one in found.advice if one.setting == "clinical"] == [("clinical", ("mmse",))]


def test_scores_and_qualities_by_name_are_suspects_where_they_are_named(people, tmp_path):
    names = "lHip,rHip,lAmy,rAmy,qc_rating,mmse"
    found = CheckedTable.model_validate_json(checked(people, tmp_path, *ROLES, "--features", names, "--json"))
    suspects = {column.name: column.suspicion for column in found.columns if column.suspicion}
    assert suspects == {"qc_rating": "quality measure", "mmse": "score"}
    assert {kind: len(names) for kind, names in found.kinds.items()} == {
        "regions": 4,
        "quality measures": 1,
        "scores": 1,
    }


def test_people_groups_and_outliers_are_told(people, tmp_path):
    found = CheckedTable.model_validate_json(checked(people, tmp_path, *ROLES, "--json"))
    assert (found.usable, found.n_controls, found.n_patients, found.left_out) == (True, 60, 60, {})
    expected = people["site"][people["diagnosis"] == "CN"].value_counts().sort_index().to_dict()
    assert {row.site: row.used for row in found.flow if row.group == "control"} == {"all": 60, **expected}
    assert [row.variable for row in found.balance] == ["age", "sex", "site"]
    [outlier] = found.outliers
    assert (outlier.row, "smaller than usual overall" in outlier.text) == (9, True)
    region, value = next(iter(outlier.cells.items()))
    assert people.loc[7, region] == pytest.approx(value)
    assert any("computed from other columns: TotalGrayVol" in warning for warning in found.warnings)


def test_a_table_that_fit_refuses_is_told_with_what_helps_and_who_would_remain(people, tmp_path):
    bad = people.copy()
    bad.loc[3, "lHip"], bad["rHip"] = -9, people["rHip"].round(0).where(bad.index != 4)
    said = checked(bad, tmp_path, *ROLES, code=2)
    assert "lHip = -9 in row 5" in said
    assert "Missing values in 1 region column: rHip (1 person)" in said
    left = people["diagnosis"].drop([3, 4]).value_counts()
    assert f"People remaining (with --drop-missing): {left['CN']} controls, {left['PT']} patients" in said
    assert said.splitlines()[-1].startswith("fit would reject this table. Ways to fix this: ")
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "people.csv"), "--out", str(tmp_path / "run"), *ROLES])
    for problem in check_table(tmp_path / "people.csv", TableSettings(covariates="age,sex", site="site")).problems:
        assert problem.text.partition(" row ")[0] in result.output
    assert bad.loc[3, "participant_id"] in result.output
    assert bad.loc[3, "participant_id"] not in said


def test_gaps_that_fit_fills_are_told(people, tmp_path):
    gaps = people.drop(columns="mmse")
    gaps.loc[[3, 4], "lHip"] = np.nan
    found = CheckedTable.model_validate_json(checked(gaps, tmp_path, *ROLES, "--json"))
    assert {column.name: column.missing for column in found.columns if column.missing} == {"lHip": 2}
    assert (found.usable, found.n_controls + found.n_patients) == (True, 120)
    assert any("2 rows have missing regions" in warning for warning in found.warnings)


def test_the_page_has_the_same_and_neither_ids_nor_scripts(people, tmp_path):
    evil = people.rename(columns={"lHip": "<script>alert(1)</script>"})
    checked(evil, tmp_path, *ROLES, "--report", str(tmp_path / "check.html"))
    text = (tmp_path / "check.html").read_text(encoding="utf-8")
    assert "<script" not in text
    words = Page(text).words
    assert "<script>alert(1)</script>" in words
    assert "This table can be used for training" in words
    assert not any(one in words for one in people["participant_id"])


def test_it_is_quick_and_does_not_load_the_engine(people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    code = (
        "import sys; from rindices.run.check_table import check_table; from rindices.settings import TableSettings\n"
        f"check_table({str(tmp_path / 'people.csv')!r}, TableSettings()); print('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split() == ["False"]


@pytest.mark.parametrize(
    ("name", "suspicion"),
    [
        ("EstimatedTotalIntraCranialVol", "head size"),
        ("BrainSegVolNotVent", "total"),
        ("lh_MeanThickness_thickness", "total"),
        ("lhSurfaceHoles", "quality measure"),
        ("AgeAtScan", "age or time"),
        ("years_education", "age or time"),
        ("CDR-sb", "score"),
        ("panss_total", "score"),
        ("memory_score", "score"),
        ("lHip_z_score", ""),
        ("qc_rating", "quality measure"),
        ("Left-Accumbens-area", ""),
        ("lh_precuneus_mean", ""),
        ("average", "total"),
        ("WM-hypointensities", ""),
        ("MUSE_Volume_47", ""),
        ("l", ""),
    ],
)
def test_names_tell_what_is_no_region(name, suspicion):
    assert kind_of(name).suspicion == suspicion


def test_the_document_is_plain_json(people, tmp_path):
    assert json.loads(checked(people, tmp_path, "--json"))["usable"] is True
