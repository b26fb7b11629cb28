"""Folders of segmentation programs become one table."""

import json
import shutil
import time

import numpy as np
import pandas as pd
import pytest

from rindices import InputError
from rindices.interop.muse import muse_regions
from rindices.run.gather_folder import gather_folder
from rindices.settings import GatherSettings
from tests.tables.trees import ASEG, CORTEX, subject, subjects_dir
from tests.test_cli import run, succeed


def gathered(folder, out, **settings):
    found = gather_folder(folder, out, GatherSettings(**settings))
    return found, pd.read_csv(out), json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))


def test_forty_subjects_of_freesurfer_become_a_table(tmp_path):
    folder = subjects_dir(tmp_path / "subjects")
    found, table, dictionary = gathered(folder, tmp_path / "t.csv", measures=("volume", "thickness", "area"))
    assert table["participant_id"].tolist() == [f"sub-{number:04d}" for number in range(40)]
    cortex = [
        f"{side}_{name}_{measure}"
        for side in ("lh", "rh")
        for measure in ("volume", "thickness", "area")
        for name in CORTEX
    ]
    quality = ["eTIV", "lhSurfaceHoles", "rhSurfaceHoles", "lhEulerNumber", "rhEulerNumber"]
    assert list(table.columns) == ["participant_id", *ASEG[:-1], *quality, *cortex, "program"]
    assert (found.n_people, found.n_regions, found.programs) == (40, 35, {"FreeSurfer 7.4.1": 40})
    assert found.notes == ("Excluded because they are 0 in everyone: 5th-Ventricle.",)
    assert (table["lhEulerNumber"] == 2 - 2 * table["lhSurfaceHoles"]).all()
    units = {
        name: dictionary[name].get("Units")
        for name in ("Left-Hippocampus", "lh_cuneus_area", "rh_insula_thickness", "eTIV")
    }
    assert list(units.values()) == ["mm3", "mm2", "mm", "mm3"]
    assert dictionary["Left-Hippocampus"]["Description"] == "left hippocampus"
    lines = [
        line.split() for line in (folder / "sub-0007/stats/rh.aparc.stats").read_text().splitlines() if line[0] != "#"
    ]
    person = table.set_index("participant_id").loc["sub-0007"]
    for name, _, area, volume, thickness, *_ in lines:
        expected = [float(volume), float(thickness), float(area)]
        assert [person[f"rh_{name}_{measure}"] for measure in ("volume", "thickness", "area")] == expected


def test_a_gathered_table_is_checked_with_its_dictionary(tmp_path):
    subjects_dir(tmp_path / "subjects")
    assert "convert it to a table with rindices gather" in " ".join(run("check", tmp_path / "subjects").output.split())
    result = succeed("gather", tmp_path / "subjects", "--out", tmp_path / "t.csv")
    assert "40 rows, 15 regions." in result.output
    assert f"rindices check {tmp_path / 't.csv'} --dictionary {tmp_path / 't.json'}" in " ".join(result.output.split())
    groups = {"participant_id": [f"sub-{number:04d}" for number in range(40)], "diagnosis": ["CN", "AD"] * 20}
    pd.DataFrame(groups).to_csv(tmp_path / "labels.csv", index=False)
    options = [
        "--dictionary",
        tmp_path / "t.json",
        "--join",
        tmp_path / "labels.csv",
        "--exclude",
        "*Holes,*EulerNumber",
    ]
    succeed("check", tmp_path / "t.csv", *options)


def spoilt(folder):
    """A tree in which all that happens has happened."""
    subjects_dir(folder, 8)
    for template in ("fsaverage", "lh.EC_average"):
        subject(folder, template, 90)
    (folder / "linked").symlink_to("sub-0001")
    (folder / "sub-gone").symlink_to("nowhere")
    shutil.copytree(folder / "sub-0002", folder / "sub-copied")
    cut = folder / "sub-0003/stats/lh.aparc.stats"
    cut.write_text(cut.read_text()[:-60])
    few = folder / "sub-0004/stats/aseg.stats"
    few.write_text("\n".join(few.read_text().splitlines()[:-2]) + "\n")
    (folder / "sub-0005/stats/aseg.stats").write_text("")
    (folder / "sub-0006/stats/rh.aparc.stats").unlink()
    (folder / "sub-begun/mri").mkdir(parents=True)
    (folder / "logs").mkdir()
    return folder


EXPECTED = {
    "sub-0003": "lh.aparc.stats ends in the middle of a line",
    "sub-0004": "aseg.stats has 4 of 6 rows",
    "sub-0005": "aseg.stats has no rows",
    "sub-begun": "no folder stats",
    "sub-copied": "the same numbers as sub-0002",
    "sub-gone": "a broken link",
    "linked": "the same folder as sub-0001",
}


def test_who_cannot_be_used_is_named_and_left_out_only_if_asked(tmp_path):
    folder = spoilt(tmp_path / "subjects")
    with pytest.raises(InputError) as caught:
        gathered(folder, tmp_path / "t.csv")
    assert "7 entries in" in str(caught.value)
    assert all(f"{name}: {problem}" in str(caught.value) for name, problem in EXPECTED.items())
    assert "leave_out=True" in str(caught.value)
    assert not list(tmp_path.glob("t.*"))
    found, table, _ = gathered(folder, tmp_path / "t.csv", leave_out=True)
    assert found.left_out == EXPECTED
    assert table["participant_id"].tolist() == ["sub-0000", "sub-0001", "sub-0002", "sub-0006", "sub-0007"]
    assert "Ignored FreeSurfer templates: fsaverage, lh.EC_average." in found.notes
    assert "sub-0006 lacks 5 of 20 columns (rh.aparc.stats is missing)." in found.notes
    assert table.set_index("participant_id").loc["sub-0006"].isna().sum() == 5
    result = run("gather", folder, "--out", tmp_path / "other.csv")
    assert (result.exit_code, "--leave-out" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("file", "text", "other"),
    [
        ("aseg.stats", "# Measure EstimatedTotalIntraCranialVol, eTIV, Estimated", None),
        ("aseg.stats", "Volume_mm3", "Volume"),
        ("rh.aparc.stats", "ThickAvg", "Thick"),
        ("lh.aparc.stats", " 2.", " two."),
    ],
)
def test_a_damaged_file_is_named_and_no_trouble_inside(tmp_path, file, text, other):
    folder = subjects_dir(tmp_path / "subjects", 3)
    path = folder / "sub-0001/stats" / file
    path.write_text(path.read_text().replace(text, other) if other else text)
    result = run("gather", folder, "--out", tmp_path / "t.csv", "--measures", "volume,thickness")
    assert (result.exit_code, f"sub-0001: {file} " in result.output) == (2, True), result.output


def test_longitudinal_folders_are_visits(tmp_path):
    folder = subjects_dir(tmp_path / "subjects", 4)
    for number, scan in enumerate(("anna_1", "anna_2", "bert_1")):
        subject(folder, f"{scan}.long.{scan[:4]}", 50 + number)
    subject(folder, "anna", 60)
    (folder / "anna" / "base-tps").write_text("anna_1\nanna_2\n")
    with pytest.raises(InputError, match=r"4 entries(?s:.*)longitudinal stream(?s:.*)longitudinal=True"):
        gathered(folder, tmp_path / "t.csv")
    _, table, _ = gathered(folder, tmp_path / "t.csv", longitudinal=True)
    assert table[["participant_id", "session"]].to_numpy().tolist() == [
        ["anna", "anna_1"],
        ["anna", "anna_2"],
        ["bert", "bert_1"],
    ]
    _, table, _ = gathered(folder, tmp_path / "t.csv", leave_out=True)
    assert "session" not in table
    assert len(table) == 4


def test_sessions_may_have_folders_of_their_own(tmp_path):
    for number, place in enumerate(("sub-1/ses-1", "sub-1/ses-2", "sub-2/ses-1")):
        subject(tmp_path / "subjects", place, number)
    _, table, _ = gathered(tmp_path / "subjects", tmp_path / "t.csv")
    assert table["participant_id"].tolist() == ["sub-1_ses-1", "sub-1_ses-2", "sub-2_ses-1"]


@pytest.mark.parametrize("name", ["aseg+DKT", "aseg+DKT.VINN"])
def test_fastsurfer_without_surfaces(tmp_path, name):
    """The lines are those that segstats.py of FastSurfer writes."""
    cortex = [f"ctx-{side}-{region}" for side in ("lh", "rh") for region in ("cuneus", "insula")]
    for number in range(3):
        stats = subject(tmp_path / "subjects", f"sub-{number}", number, regions=(*ASEG[:-1], *cortex, "5th-Ventricle"))
        for file in stats.glob("?h.*"):
            file.unlink()
        text = (stats / "aseg.stats").read_text().replace("# cvs_version 7.4.1", "# FastSurfer_version 2.4.0+a1b2c3")
        (stats / f"{name}.stats").write_text(text)
        (stats / "aseg.stats").unlink()
    found, table, dictionary = gathered(tmp_path / "subjects", tmp_path / "t.csv")
    assert found.programs == {"FastSurfer 2.4.0": 3}
    assert f"No folder contains a cortical parcellation; only {name}.stats was read." in found.notes
    assert {"Left-Hippocampus", *cortex} <= {*table.columns}
    assert dictionary["ctx-lh-insula"]["Units"] == "mm3"


def test_parcellations_are_chosen_or_found(tmp_path):
    mapped = subjects_dir(tmp_path / "fastsurfer", 3, stem="aparc.DKTatlas.mapped")
    found, table, _ = gathered(mapped, tmp_path / "t.csv")
    assert found.programs == {"FastSurfer with FreeSurfer 7.4.1": 3}
    assert found.notes[0] == "There is no aparc.stats, so the cortical regions come from aparc.DKTatlas."
    assert "lh_cuneus_volume" in table
    with pytest.raises(InputError, match=r"No folder contains destrieux files \(lh\.aparc\.a2009s\.stats"):
        gathered(mapped, tmp_path / "t.csv", atlas="destrieux")
    with pytest.raises(InputError, match=r"`atlas` should be one of dk, dkt, destrieux, but got 'aal'"):
        gathered(mapped, tmp_path / "t.csv", atlas="aal")
    refused = run("gather", mapped, "--out", tmp_path / "t.csv", "--measures", "curvature")
    assert refused.exit_code == 2
    assert "--measures should be one or more of volume, thickness, area, but got 'curvature'" in refused.output


def test_versions_that_name_a_region_otherwise_share_a_column(tmp_path):
    folder = subjects_dir(tmp_path / "subjects", 2)
    old = ("Left-Lateral-Ventricle", "Left-Thalamus-Proper", *ASEG[2:])
    subject(folder, "sub-old", 9, version="$Id: mri_segstats.c,v 1.121 2016/05/31 17:27:11 greve Exp $", regions=old)
    found, table, _ = gathered(folder, tmp_path / "t.csv")
    assert found.programs == {"FreeSurfer 7.4.1": 2, "FreeSurfer (mri_segstats 1.121)": 1}
    assert table["Left-Thalamus"].notna().all()
    assert "Left-Thalamus-Proper" not in table
    assert "not be comparable; see the column program" in run("gather", folder, "--out", tmp_path / "t.csv").output


def test_tables_of_dlmuse(tmp_path):
    rng = np.random.default_rng(0)
    columns = ["MRID", "702", "701", "601", *map(str, muse_regions().index)]
    table = pd.DataFrame(rng.uniform(1000, 9000, (4, len(columns) - 1)), columns=columns[1:]).round(1)
    table.insert(0, "MRID", list("abcd"))
    folder = tmp_path / "out"
    for row in range(4):
        (folder / "parts").mkdir(parents=True, exist_ok=True)
        table.iloc[[row]].to_csv(folder / "parts" / f"{'abcd'[row]}_DLMUSE_Volumes.csv", index=False)
    table.iloc[:2].to_csv(folder / "DLMUSE_Volumes.csv", index=False)
    found, whole, dictionary = gathered(folder, tmp_path / "t.csv")
    assert whole["participant_id"].tolist() == ["a", "b", "c", "d"]
    assert list(whole.columns[1:]) == ["702", *columns[4:], "program"]
    assert (found.n_regions, dictionary["47"]) == (145, {"Description": "right hippocampus", "Units": "mm3"})
    assert found.notes == (
        "2 sums of regions were not copied, such as 701, 601.",
        "2 people are in several files with the same numbers; each is used once.",
    )
    table.assign(**{"47": 1.0}).iloc[[0]].to_csv(folder / "again.csv", index=False)
    with pytest.raises(InputError, match="a occurs 3 times, with different numbers"):
        gathered(folder, tmp_path / "t.csv")
    (folder / "again.csv").write_text(",".join(columns) + "\ne,1,2\n")
    with pytest.raises(InputError, match=r"again\.csv has 3 of 149 cells in this row"):
        gathered(folder, tmp_path / "t.csv")


def test_tables_of_synthseg_and_their_quality(tmp_path):
    columns = ["subject", "total intracranial", "left cerebral cortex", "left hippocampus", "right hippocampus", "csf"]
    rows = [[f"sub-{n}", 1.4e6 + n, 2e5 + n, 4000.0 + n, 4100.0 + n, 900.0 + n] for n in range(3)]
    folder = tmp_path / "synthseg"
    folder.mkdir()
    pd.DataFrame(rows, columns=columns).to_csv(folder / "volumes.csv", index=False)
    quality = {"subject": ["sub-0", "sub-1", "sub-2"], "general white matter": [0.9, 0.8, 0.7], "thalamus": 0.8}
    pd.DataFrame(quality).to_csv(folder / "qc.csv", index=False)
    found, table, dictionary = gathered(folder, tmp_path / "t.csv")
    assert list(table.columns[1:]) == [*columns[1:], "qc general white matter", "qc thalamus", "program"]
    assert table["qc general white matter"].tolist() == [0.9, 0.8, 0.7]
    assert dictionary["total intracranial"] == {"Description": "intracranial volume", "Units": "mm3"}
    assert found.programs == {"SynthSeg": 3}


def test_files_of_cat12(tmp_path):
    form = (
        "<?xml version='1.0'?><S><neuromorphometrics><names>{}</names><version>1233</version>"
        "<data><Vgm>[{}]</Vgm></data></neuromorphometrics></S>"
    )
    names = ("l3thVen", "lHip", "rHip", "lAmy")
    folder = tmp_path / "label"
    folder.mkdir()
    for person in range(3):
        items = "".join(f"<item>{name}</item>" for name in names)
        numbers = ";".join(str(value + person) for value in (0.04, 3.5, 3.6, 1.5))
        (folder / f"catROI_IXI{person}.xml").write_text(form.format(items, numbers))
    found, table, dictionary = gathered(tmp_path, tmp_path / "t.csv")
    assert list(table.columns) == ["participant_id", "lHip", "rHip", "lAmy", "program"]
    assert table["lHip"].tolist() == [3.5, 4.5, 5.5]
    assert (found.programs, dictionary["lHip"]["Units"]) == ({"CAT12 r1233": 3}, "mL")
    (folder / "catROI_IXI9.xml").write_text("<S><neuromorpho")
    with pytest.raises(InputError, match=r"catROI_IXI9\.xml cannot be read"):
        gathered(tmp_path, tmp_path / "t.csv")


def test_other_folders_are_refused(tmp_path):
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    for folder, words in ((tmp_path, "contains no recognised files"), (tmp_path / "no", "is not a folder")):
        result = run("gather", folder, "--out", tmp_path / "t.csv")
        assert result.exit_code == 2
        assert words in " ".join(result.output.split())
    assert "but got t.tsv" in run("gather", tmp_path, "--out", "t.tsv").output


@pytest.mark.slow
def test_a_thousand_subjects_take_less_than_half_a_minute(tmp_path):
    folder, start = subjects_dir(tmp_path / "subjects", 1000), time.perf_counter()
    found, *_ = gathered(folder, tmp_path / "t.csv")
    assert found.n_people == 1000
    assert time.perf_counter() - start < 30
