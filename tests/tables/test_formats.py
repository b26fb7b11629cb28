"""Tables written by other programs pass `check` in at most two tries, with the options that its message proposes."""

import json
import os
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from rindices.cli.console_and_exits import set_output
from rindices.tables import read_source
from tests.pages.page import missing
from tests.test_cli import run as run_command

FORMATS = Path(os.environ.get("RINDICES_DATA", "nowhere")).parent / "formats"
pytestmark = pytest.mark.skipif(not FORMATS.is_dir(), reason="needs the tables of other programs beside RINDICES_DATA")

# For each file: a region, columns that are not regions, and the number of regions.
FILES = {
    "abide_asegstats2table_first120.tsv": (
        "Left-Hippocampus",
        ("IntraCranialVol", "Left-WM-hypointensities", "TotalGrayVol"),
        45,
    ),
    "aomic_aparcstats2table_lh_thickness.tsv": ("lh_insula_thickness", ("eTIV", "lh_MeanThickness_thickness"), 34),
    "aomic_aparcstats2table_rh_thickness.tsv": ("rh_insula_thickness", ("eTIV", "BrainSegVolNotVent"), 34),
    "mlni_feature.tsv": ("ROI7", ("session_id",), 18),
    "made_up_values/abcd_smrip10201.txt": ("smri_vol_cdk_linguallh", ("interview_age", "collection_id"), 12),
    "made_up_values/adni_UCSFFSX51.csv": ("ST29SV", ("IMAGEUID", "ST10CV", "VISCODE", "ST13TS"), 99),
    "made_up_values/ants_DKT_volume.csv": ("left insula", ("AGE", "SITE", "SEX", "VOLUME"), 62),
    "made_up_values/enigma_CorticalMeasuresENIGMA_ThickAvg.csv": (
        "L_insula_thickavg",
        ("session", "ICV", "LThickness"),
        68,
    ),
    "made_up_values/enigma_LandRvolumes.csv": ("Lthal", ("ICV", "TotGMVol"), 16),
    "made_up_values/nichart_DLMUSE_Volumes.csv": (
        "DL_MUSE_Volume_47",
        ("DL_MUSE_Volume_702", "DL_MUSE_Volume_701", "DL_MUSE_Volume_601", "DL_MUSE_Volume_301"),
        145,
    ),
    "made_up_values/synthseg_volumes.csv": ("ctx-lh-insula", ("total intracranial", "left cerebral cortex"), 98),
    "made_up_values/ukb_fields.csv": ("25782-2.0", ("31-0.0", "21003-2.0", "54-2.0", "26521-2.0"), 139),
}


def run(*line, code=0):
    """Run a command and check its exit code, unless that is None."""
    set_output()
    done = run_command(*line, *["--no-spectrum"] * (line[0] == "check"))
    assert code in (None, done.exit_code), done.output
    return done


def with_labels(table, folder, **columns):
    """Return options to join a made-up labels file (alternating groups), with ids as another program writes them."""
    source = read_source(table)
    if "diagnosis" in source.frame:
        return ()
    ids = source.frame[source.id_column].drop_duplicates().astype(str).str.removesuffix(".0")
    pd.DataFrame({"subject": ids, "diagnosis": ["CN", "PT"] * (len(ids) // 2), **columns}).to_csv(
        folder / "labels.csv", index=False
    )
    return "--join", folder / "labels.csv"


def proposed(said):
    """Return the options that a message proposes, as a user would copy them."""
    options = re.findall(r"--(?:exclude|features|clinical|visit|id|diagnosis) (?:'[^']*'|[^\s;,.A-Z]\S*)", said)
    return shlex.split(options[-1].rstrip(".;,")) if options else []


@pytest.mark.parametrize("name", FILES)
def test_each_programs_table_passes_within_two_tries_and_is_trained_on(name, tmp_path):
    region, no_regions, number = FILES[name]
    table, options = FORMATS / name, with_labels(FORMATS / name, tmp_path)
    run(
        *("fit", table, *options, "--out", tmp_path / "run", "--preset", "linear", "--no-report"),
        *("--patterns", "1", "--repetitions", "2"),
    )
    assert len(pd.read_csv(tmp_path / "run" / "r_indices.csv")) == len(read_source(table).frame)
    found = run("check", table, *options, code=None)
    if found.exit_code:
        options += (*proposed(found.output),)
    columns = json.loads(run("check", table, *options, "--json").output)["columns"]
    roles = {column["name"]: column["role"] for column in columns}
    assert (roles[region], {roles[one] for one in no_regions}, [*roles.values()].count("a region")) == (
        "a region",
        {"no role"},
        number,
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "nichart_DLMUSE_Volumes.csv",
            (
                "DL_MUSE_Volume_601 and 111 more are not regions (a sum of MUSE's regions)",
                "--proportion DL_MUSE_Volume_702",
                "--features muse72",
            ),
        ),
        (
            "ukb_fields.csv",
            ("--covariates 31-0.0", "--covariates 21003-2.0", "--site 54-2.0", "--proportion 26521-2.0"),
        ),
    ],
)
def test_sums_are_said_and_columns_are_offered_as_what_they_are(tmp_path, name, expected):
    table = FORMATS / "made_up_values" / name
    assert not missing(run("check", table, *with_labels(table, tmp_path)).output, *expected)


def test_the_72_regions_of_muse_may_be_named_at_once(tmp_path):
    table = FORMATS / "made_up_values/nichart_DLMUSE_Volumes.csv"
    found = run("check", table, *with_labels(table, tmp_path), "--features", "muse72", "--json")
    assert [column["role"] for column in json.loads(found.output)["columns"]].count("a region") == 72


def test_participants_without_measures_are_refused_with_the_way_to_join_them(tmp_path):
    table = FORMATS / "aomic_participants.tsv"
    said = run("check", table, *with_labels(table, tmp_path), code=2).output
    assert "join the table that contains the regions with --join FILE" in said
    said = run("check", FORMATS / "bids_ds000030_participants.tsv", code=2).output
    assert not missing(said, "bart (always 1)", "--join FILE")


def test_a_subject_of_freesurfer_is_gathered(tmp_path):
    run("gather", FORMATS / "freesurfer_tree", "--out", tmp_path / "one.csv")
    row = pd.read_csv(tmp_path / "one.csv").iloc[0]
    assert (row["participant_id"], row[["Left-Hippocampus", "lh_insula_volume"]].gt(1000).all()) == ("sub-0001", True)
