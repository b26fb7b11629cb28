"""What is written of a finished run."""

import json

import numpy as np
import pandas as pd
import pytest

from rindices.pages.report import make_report
from rindices.record import Summary
from rindices.run.fit_table import carry_out
from rindices.run.plan import planned
from rindices.run.write_results import write_bids
from rindices.settings import ExecutionSettings, OutputSettings, SearchSettings, TableSettings
from rindices.simulate import simulate_cohort


@pytest.mark.parametrize("n_found", [1, 3])
@pytest.mark.filterwarnings("ignore:Only .* controls and .* patients:UserWarning")
def test_patterns_are_compared_with_a_truth_of_another_number(tmp_path, n_found):
    cohort = simulate_cohort("basic", n_controls=40, n_patients=40, n_patterns=2, seed=0)
    regions = cohort.table.columns[4:20]
    cohort.save(tmp_path / "people.csv")
    search = SearchSettings(n_found, n_repetitions=2, preset="linear")
    plan = planned(
        tmp_path / "people.csv", tmp_path / "run", TableSettings(features=tuple(regions)), search, OutputSettings()
    )
    recovery = carry_out(plan, ExecutionSettings(), truth=cohort.truth).recovery
    assert recovery.n_known == 2
    n_compared = min(n_found, 2)
    assert len({*recovery.matched_truth}) == len({*recovery.matched_patterns}) == n_compared
    assert {*recovery.matched_patterns} <= {*range(1, n_found + 1)}
    page = make_report(tmp_path / "run").html
    assert f"The data contain 2 patterns and the run found {n_found}" in page
    for number, value in zip(recovery.matched_patterns, recovery.per_pattern, strict=True):
        assert f"pattern {number}: {value:.3f}" in page


SUMMARY = Summary(
    status="unfinished",
    source="volumes.csv",
    versions={"rindices": "1.2.3", "jax": "0.8"},
    control_labels=("CN",),
    patient_labels=("AD",),
    verdict="reproducible",
    reliable=True,
)
VISITS = SUMMARY.model_copy(update={"visits": True})


def table(**more):
    columns = {
        "participant_id": ["sub-01", "0002", "sub-03"],
        "diagnosis": ["CN", "AD", "n/a"],
        "group": ["control", "patient", "other"],
        "r1": [0.01, 1.2345678, -0.1],
        "r1_sd": [0.1, np.nan, 0.2],
        "flags": ["", "an\toutlier:\nlHip", ""],
    }
    return pd.DataFrame(columns | more)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_table_its_dictionary_and_the_description(tmp_path):
    paths = write_bids(tmp_path, table(), SUMMARY)
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        "dataset_description.json",
        "phenotype/r_indices.tsv",
        "phenotype/r_indices.json",
    ]
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(paths)  # nothing half-written
    assert paths[1].read_bytes().decode() == (
        "participant_id\tdiagnosis\tgroup\tr1\tr1_sd\tflags\n"
        "sub-01\tCN\tcontrol\t0.01\t0.1\tn/a\n"
        "0002\tAD\tpatient\t1.23457\tn/a\tan outlier: lHip\n"
        "sub-03\tn/a\tother\t-0.1\t0.2\tn/a\n"
    )
    sidecar = read(paths[2])
    assert set(sidecar) == {"MeasurementToolMetadata", *table().columns}
    assert all(sidecar[name]["Description"] for name in table().columns)
    assert set(sidecar["group"]["Levels"]) == {"control", "patient", "other"}
    assert sidecar["diagnosis"]["Levels"] == {"AD": "counted as patient", "CN": "counted as control"}
    assert sidecar["r1"]["Units"] == "arbitrary"
    assert "Maximum" not in sidecar["r1"]  # R-indices are not clipped
    assert "interpret" not in sidecar["MeasurementToolMetadata"]["Description"]
    description = read(paths[0])
    assert (description["Name"], description["DatasetType"]) == ("R-indices of volumes.csv", "derivative")
    assert (description["BIDSVersion"].split(".")[0], description["GeneratedBy"][0]["Name"]) == ("1", "rindices")
    assert description["GeneratedBy"][0]["Version"] == "1.2.3"
    assert "Surreal-GAN" in description["HowToAcknowledge"]
    assert "SourceDatasets" not in description


def test_what_is_known_of_the_source_and_of_the_reliability(tmp_path):
    known = {"source_doi": "doi:10.1/x", "verdict": "not found again", "reliable_reason": "Halves disagree."}
    paths = write_bids(tmp_path, table(), SUMMARY.model_copy(update=known))
    assert read(paths[0])["SourceDatasets"] == [{"DOI": "doi:10.1/x"}]
    assert (
        "The groups differ, but the patterns were not found again. Halves disagree."
        in read(paths[2])["MeasurementToolMetadata"]["Description"]
    )


@pytest.mark.parametrize(
    ("visits", "heading", "cell"),
    [
        (["ses-01", "ses-02", "ses-01"], "session_id", "ses-02"),
        (["ses-01", "baseline", "ses-01"], "visit", "baseline"),
        ([1.0, 2.0, 1.0], "visit", "2"),
    ],
)
def test_visits_are_sessions_where_they_are_called_so(tmp_path, visits, heading, cell):
    paths = write_bids(tmp_path, table(visit=visits, years=[0.0, 1.5, 0.0], first_visit=[True, False, True]), VISITS)
    header, _, second, _ = (line.split("\t") for line in paths[1].read_text().splitlines())
    assert (header[:2], second[1], second[-2:]) == (["participant_id", heading], cell, ["1.5", "false"])
    assert all(read(paths[2])[name]["Description"] for name in header)


def test_written_again(tmp_path):
    write_bids(tmp_path, table(), SUMMARY)
    write_bids(tmp_path, table().iloc[:1], SUMMARY)
    assert len((tmp_path / "phenotype" / "r_indices.tsv").read_text().splitlines()) == 2
