"""Folders of segmentation programs, BIDS datasets and further tables become one table."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from rindices.interop.muse import MUSE_REGIONS
from rindices.run.gather_folder import gather_folder
from rindices.settings import GatherSettings
from rindices.tables import join_by_id, read_source, read_table
from tests.pages.page import missing
from tests.refusal import refused_with
from tests.tables.trees import ASEG, CORTEX, subject, subjects_dir
from tests.test_cli import told


def gathered(folder, out, **settings):
    return (
        gather_folder(folder, out, GatherSettings(**settings)),
        pd.read_csv(out),
        json.loads(out.with_suffix(".json").read_text(encoding="utf-8")),
    )


def test_forty_subjects_of_freesurfer_become_a_table(tmp_path):
    folder, measures = subjects_dir(tmp_path / "subjects"), ("volume", "thickness", "area")
    found, table, dictionary = gathered(folder, tmp_path / "t.csv", measures=measures)
    assert table["participant_id"].tolist() == [f"sub-{number:04d}" for number in range(40)]
    cortex = [f"{side}_{name}_{one}" for side in ("lh", "rh") for one in measures for name in CORTEX]
    assert list(table.columns) == [
        "participant_id",
        *ASEG[:-1],
        "eTIV",
        "lhSurfaceHoles",
        "rhSurfaceHoles",
        "lhEulerNumber",
        "rhEulerNumber",
        *cortex,
        "program",
    ]
    assert (found.n_people, found.n_regions, found.programs, found.notes) == (
        40,
        35,
        {"FreeSurfer 7.4.1": 40},
        ("Columns excluded because they are 0 for everyone: 5th-Ventricle.",),
    )
    assert (table["lhEulerNumber"] == 2 - 2 * table["lhSurfaceHoles"]).all()
    assert dictionary["Left-Hippocampus"] == {"Description": "left hippocampus", "Units": "mm3"}
    units = {"lh_cuneus_area": "mm2", "rh_insula_thickness": "mm", "eTIV": "mm3"}
    assert {name: dictionary[name].get("Units") for name in units} == units
    lines = (folder / "sub-0007/stats/rh.aparc.stats").read_text().splitlines()
    person = table.set_index("participant_id").loc["sub-0007"]
    for name, _, area, volume, thickness, *_ in (line.split() for line in lines if line[0] != "#"):
        assert person[[f"rh_{name}_{one}" for one in measures]].tolist() == [
            float(volume),
            float(thickness),
            float(area),
        ]


def test_a_gathered_table_is_checked_with_its_dictionary(tmp_path):
    folder, table = subjects_dir(tmp_path / "subjects"), tmp_path / "t.csv"
    said, line = told("gather", folder, "--out", table), ("check", table, "--dictionary", tmp_path / "t.json")
    assert not missing(said, "40 rows, 15 regions.", f"rindices {' '.join(map(str, line))}")
    groups = {"participant_id": [f"sub-{number:04d}" for number in range(40)], "diagnosis": ["CN", "AD"] * 20}
    pd.DataFrame(groups).to_csv(tmp_path / "labels.csv", index=False)
    told(*line, "--join", tmp_path / "labels.csv", "--exclude", "*Holes,*EulerNumber")


def spoilt(folder):
    """Make a SUBJECTS_DIR with every defect that occurs in practice."""
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
    "sub-0004": "aseg.stats has only 4 of 6 rows",
    "sub-0005": "aseg.stats has no rows",
    "sub-begun": "it has no stats folder",
    "sub-copied": "the same values as sub-0002",
    "sub-gone": "it is a broken link",
    "linked": "it is the same folder as sub-0001",
}


def test_who_cannot_be_used_is_named_and_left_out_only_if_asked(tmp_path):
    folder = spoilt(tmp_path / "subjects")
    said = refused_with("7 entries in", gathered, folder, tmp_path / "t.csv")
    assert not missing(said, "leave_out=True", *(f"{name}: {problem}" for name, problem in EXPECTED.items()))
    assert not list(tmp_path.glob("t.*"))
    found, table, _ = gathered(folder, tmp_path / "t.csv", leave_out=True)
    assert (found.left_out, table["participant_id"].tolist()) == (
        EXPECTED | {"sub-0006": "rh.aparc.stats is missing"},
        ["sub-0000", "sub-0001", "sub-0002", "sub-0007"],
    )
    assert "These folders are FreeSurfer templates and were ignored: fsaverage, lh.EC_average." in found.notes
    assert "--leave-out" in told("gather", folder, "--out", tmp_path / "other.csv", code=2)


def test_who_lacks_a_file_has_gaps(tmp_path):
    (subjects_dir(tmp_path / "subjects", 3) / "sub-0001/stats/rh.aparc.stats").unlink()
    found, table, _ = gathered(tmp_path / "subjects", tmp_path / "t.csv")
    assert "sub-0001 has no value in 5 of 20 columns (rh.aparc.stats is missing)." in found.notes
    assert table.set_index("participant_id").loc["sub-0001"].isna().sum() == 5
    (tmp_path / "subjects/sub-0002/stats/rh.aparc.stats").unlink()  # most people lack it, so nobody is left out for it
    assert gathered(tmp_path / "subjects", tmp_path / "u.csv", leave_out=True)[0].left_out == {}


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
    path, line = folder / "sub-0001/stats" / file, ("gather", folder, "--out", tmp_path / "t.csv")
    path.write_text(path.read_text().replace(text, other) if other else text)
    assert f"sub-0001: {file} " in told(*line, "--measures", "volume,thickness", code=2)


def test_longitudinal_folders_are_visits_and_sessions_may_have_folders_of_their_own(tmp_path):
    folder = subjects_dir(tmp_path / "subjects", 4)
    for number, scan in enumerate(("anna_1", "anna_2", "bert_1")):
        subject(folder, f"{scan}.long.{scan[:4]}", 50 + number)
        subject(tmp_path / "sessions", f"{scan[:4]}/ses-{scan[-1]}", number)
    subject(folder, "anna", 60)
    (folder / "anna" / "base-tps").write_text("anna_1\nanna_2\n")
    refused_with(r"4 entries(?s:.*)longitudinal stream(?s:.*)longitudinal=True", gathered, folder, tmp_path / "t.csv")
    _, table, _ = gathered(folder, tmp_path / "t.csv", longitudinal=True)
    assert [*table[["participant_id", "session"]].itertuples(index=False, name=None)] == [
        ("anna", "anna_1"),
        ("anna", "anna_2"),
        ("bert", "bert_1"),
    ]
    _, table, _ = gathered(folder, tmp_path / "t.csv", leave_out=True)
    assert ("session" in table, len(table)) == (False, 4)
    table = gathered(tmp_path / "sessions", tmp_path / "t.csv")[1]
    assert table["participant_id"].tolist() == ["anna_ses-1", "anna_ses-2", "bert_ses-1"]


@pytest.mark.parametrize("name", ["aseg+DKT", "aseg+DKT.VINN"])
def test_fastsurfer_without_surfaces(tmp_path, name):
    """The lines are as FastSurfer's segstats.py writes them."""
    cortex = [f"ctx-{side}-{region}" for side in ("lh", "rh") for region in ("cuneus", "insula")]
    for number in range(3):
        stats = subject(tmp_path / "subjects", f"sub-{number}", number, regions=(*ASEG[:-1], *cortex, "5th-Ventricle"))
        text = (stats / "aseg.stats").read_text().replace("# cvs_version 7.4.1", "# FastSurfer_version 2.4.0+a1b2c3")
        for file in [*stats.iterdir()]:
            file.unlink()
        (stats / f"{name}.stats").write_text(text)
    found, table, dictionary = gathered(tmp_path / "subjects", tmp_path / "t.csv")
    assert (found.programs, dictionary["ctx-lh-insula"]["Units"]) == ({"FastSurfer 2.4.0": 3}, "mm3")
    assert f"No folder contains a cortical parcellation, so only these files were read: {name}.stats." in found.notes
    assert {"Left-Hippocampus", *cortex} <= {*table.columns}


def test_parcellations_are_chosen_or_found(tmp_path):
    mapped, out = subjects_dir(tmp_path / "fastsurfer", 3, stem="aparc.DKTatlas.mapped"), tmp_path / "t.csv"
    found, table, _ = gathered(mapped, out)
    assert (found.programs, found.notes[0], "lh_cuneus_volume" in table) == (
        {"FastSurfer with FreeSurfer 7.4.1": 3},
        "No folder contains aparc.stats files, so the cortical regions come from aparc.DKTatlas.",
        True,
    )
    refused_with(
        r"files for the destrieux atlas, such as lh\.aparc\.a2009s\.stats\.", gathered, mapped, out, atlas="destrieux"
    )
    refused_with("`atlas` should be 'dk', 'dkt' or 'destrieux', but got 'aal'", gathered, mapped, out, atlas="aal")


def test_versions_that_name_a_region_otherwise_share_a_column(tmp_path):
    folder = subjects_dir(tmp_path / "subjects", 2)
    old = ("Left-Lateral-Ventricle", "Left-Thalamus-Proper", *ASEG[2:])
    subject(folder, "sub-old", 9, version="$Id: mri_segstats.c,v 1.121 2016/05/31 17:27:11 greve Exp $", regions=old)
    found, table, _ = gathered(folder, tmp_path / "t.csv")
    assert found.programs == {"FreeSurfer 7.4.1": 2, "FreeSurfer (mri_segstats 1.121)": 1}
    assert table.filter(like="Left-Thalamus").notna().all().to_dict() == {"Left-Thalamus": True}
    assert "(see the program column), so the measurements may not be comparable" in told(
        "gather", folder, "--out", tmp_path / "t.csv"
    )


def test_tables_of_dlmuse(tmp_path):
    columns, folder = ["702", "701", "601", *map(str, MUSE_REGIONS)], tmp_path / "out"
    values = np.random.default_rng(0).uniform(1000, 9000, (4, len(columns))).round(1)
    table = pd.DataFrame(values, pd.Index(list("abcd"), name="MRID"), columns)
    (folder / "parts").mkdir(parents=True)
    for person in table.index:
        table.loc[[person]].to_csv(folder / "parts" / f"{person}_DLMUSE_Volumes.csv")
    table[:2].to_csv(folder / "DLMUSE_Volumes.csv")
    found, whole, dictionary = gathered(folder, tmp_path / "t.csv")
    assert (whole["participant_id"].tolist(), list(whole.columns[1:]), dictionary["47"]) == (
        ["a", "b", "c", "d"],
        ["702", *columns[3:], "program"],
        {"Description": "right hippocampus", "Units": "mm3"},
    )
    assert (found.n_regions, *found.notes) == (
        145,
        "Sums of regions were not copied: 701, 601.",
        "2 people appear in more than one file, with identical values; each is included once.",
    )
    for again, message in (
        (table[:1].assign(**{"47": 1.0}).to_csv(), "a occurs 3 times, with different values"),
        (f"MRID,{','.join(columns)}\ne,1,2\n", "the row for e has 3 cells instead of 149"),
    ):
        (folder / "again.csv").write_text(again)
        refused_with(message, gathered, folder, tmp_path / "t.csv")


def test_tables_of_synthseg_and_their_quality(tmp_path):
    columns = ["subject", "total intracranial", "left cerebral cortex", "left hippocampus", "right hippocampus", "csf"]
    rows = [[f"sub-{n}", 1.4e6 + n, 2e5 + n, 4000.0 + n, 4100.0 + n, 900.0 + n] for n in range(3)]
    (tmp_path / "synthseg").mkdir()
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "synthseg" / "volumes.csv", index=False)
    quality = {"subject": ["sub-0", "sub-1", "sub-2"], "general white matter": [0.9, 0.8, 0.7], "thalamus": 0.8}
    pd.DataFrame(quality).to_csv(tmp_path / "synthseg" / "qc.csv", index=False)
    found, table, dictionary = gathered(tmp_path / "synthseg", tmp_path / "t.csv")
    assert list(table.columns[1:]) == [*columns[1:], "qc general white matter", "qc thalamus", "program"]
    assert (found.programs, table["qc general white matter"].tolist(), dictionary["total intracranial"]) == (
        {"SynthSeg": 3},
        [0.9, 0.8, 0.7],
        {"Description": "intracranial volume", "Units": "mm3"},
    )
    pd.DataFrame(quality).replace(0.8, "low").to_csv(tmp_path / "synthseg" / "qc.csv", index=False)
    refused_with(
        r"a value for sub-0 in qc\.csv is not a number .* 'low'", gathered, tmp_path / "synthseg", tmp_path / "t.csv"
    )


def test_files_of_cat12(tmp_path):
    form = (
        "<?xml version='1.0'?><S><neuromorphometrics><names>{}</names><version>1233</version>"
        "<data><Vgm>[{}]</Vgm></data></neuromorphometrics></S>"
    )
    items = "".join(f"<item>{name}</item>" for name in ("l3thVen", "lHip", "rHip", "lAmy"))
    (tmp_path / "label").mkdir()
    for person in range(3):
        numbers = ";".join(str(value + person) for value in (0.04, 3.5, 3.6, 1.5))
        (tmp_path / f"label/catROI_IXI{person}.xml").write_text(form.format(items, numbers))
    found, table, dictionary = gathered(tmp_path, tmp_path / "t.csv")
    assert (list(table.columns), table["lHip"].tolist(), found.programs, dictionary["lHip"]["Units"]) == (
        ["participant_id", "lHip", "rHip", "lAmy", "program"],
        [3.5, 4.5, 5.5],
        {"CAT12 r1233": 3},
        "mL",
    )
    for broken in ("<S><neuromorpho", form.format("<item>lHip</item>", "4,1")):
        (tmp_path / "label/catROI_IXI9.xml").write_text(broken)
        refused_with(r"catROI_IXI9\.xml cannot be read", gathered, tmp_path, tmp_path / "t.csv")


PEOPLE = "participant_id\tage\tsex\tgroup\nsub-01\t61\t0\t1\nsub-02\tn/a\t1\t2\nsub-03\t72.5\t1\t2\n"
VOLUMES = "participant_id\tlHip\trHip\nsub-03\t3.5\t3.4\nsub-01\t4.5\tn/a\nsub-02\t4.0\t3.9\n"
SESSIONS = (
    "participant_id\tsession_id\tlHip\nsub-01\tses-01\t4.5\nsub-01\tses-02\t4.4\nsub-02\tses-01\t4.0\n"
    "sub-03\tses-01\t3.5\nsub-03\tses-02\t3.4\n"
)
SCORES = "participant_id\tsession_id\tmmse\nsub-03\tses-02\t25\nsub-01\tses-01\t30\nsub-03\tses-01\t27\n"


def dataset(folder, people=PEOPLE, sidecar=None, **phenotype):
    """Write a BIDS dataset: tables as text, dictionaries as Python objects."""
    root = folder / "study"
    (root / "phenotype").mkdir(parents=True)
    (root / "participants.tsv").write_bytes(people.encode())
    if sidecar is not None:
        (root / "participants.json").write_text(json.dumps(sidecar))
    for name, content in phenotype.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (root / "phenotype" / ".".join(name.rsplit("_", 1))).write_bytes(text.encode())
    return root


@pytest.mark.parametrize("whole", [True, False])
def test_a_dataset_is_joined_by_participant_in_the_order_of_the_participants(tmp_path, whole):
    levels = {"sex": {"Levels": {"0": "M", "1": "F"}}, "group": {"Levels": {"1": "Control", "2": "Patient"}}}
    units = {"lHip": {"Units": "mm3"}, "sex": {"Description": "not the main table's word"}}
    root = dataset(tmp_path, sidecar=levels, volumes_tsv="\ufeff" + VOLUMES.replace("\n", "\r\n"), volumes_json=units)
    (root / "dataset_description.json").write_text('{"Name": "x", "DatasetDOI": "doi:10.0.2.3/dfjj.10"}')
    (root / "phenotype" / "._volumes.tsv").write_bytes(b"\x00\x05")
    for path in (root, root / "participants.tsv", str(root)):
        source = read_source(path, diagnosis_column="group", whole=whole)
        assert list(source.frame.columns) == ["participant_id", "age", "sex", "group", "lHip", "rHip"]
        np.testing.assert_array_equal(source.frame[["lHip", "rHip"]], [[4.5, np.nan], [4.0, 3.9], [3.5, 3.4]])
        assert source.frame[["participant_id", "group"]].sum().tolist() == ["sub-01sub-02sub-03", "122"]
        assert (source.dictionary["sex"].levels, source.dictionary["lHip"].unit) == ({"0": "M", "1": "F"}, "mm3")
        files = ("participants.tsv", "participants.json", "phenotype/volumes.tsv", "phenotype/volumes.json")
        assert source[1:2] + source[3:6] == (None, tuple(root / name for name in files), (), "doi:10.0.2.3/dfjj.10")


def test_any_other_table_is_read_now_or_later(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("participant_id,diagnosis,age\n001,1,61\n\n002,2,72\n")
    (tmp_path / "people.json").write_text('{"age": {"Units": "year"}}')  # honoured for .tsv only
    source = read_source(path)
    pd.testing.assert_frame_equal(source.frame, read_table(path))
    assert source[1:] == (None, {}, (path,), (), None, "participant_id")
    later = read_source(path, whole=False)
    ages = pd.concat(later.table.batches())["age"].tolist()
    assert (later.frame.empty, later.files, ages) == (True, (path,), ["61", "72"])
    assert read_source(path, whole=False, join=[path]).table is None


@pytest.mark.parametrize(("text", "honoured"), [('{"age": {"Units": "year"}}', True), ('[{"age": 61}]', False)])
def test_a_json_file_beside_a_tsv_file_is_its_dictionary_if_it_looks_like_one(tmp_path, text, honoured):
    path = tmp_path / "people.tsv"
    path.write_text("participant_id\tage\n001\t61\n")
    path.with_suffix(".json").write_text(text)
    source = read_source(path)
    files = (path, path.with_suffix(".json")) if honoured else (path,)
    assert (bool(source.dictionary), source.files) == (honoured, files)


@pytest.mark.parametrize(
    ("visit", "message"),
    [
        (None, r"phenotype/scores\.tsv has more than one row with 'sub-03' \(rows 2 and 4\).*\n.*visit='session_id'"),
        ("session", r"participants\.tsv has no column 'session', which was specified with `visit`"),
    ],
)
def test_sessions_of_a_person_need_a_visit_column(tmp_path, visit, message):
    refused_with(message, read_source, dataset(tmp_path, scores_tsv=SCORES), visit_column=visit)


def test_every_session_becomes_a_row_and_tables_meet_in_it(tmp_path):
    source = read_source(dataset(tmp_path, volumes_tsv=SESSIONS, scores_tsv=SCORES), visit_column="session_id")
    rows = source.frame.sort_values(["participant_id", "session_id"])
    assert list(rows.columns) == ["participant_id", "session_id", "age", "sex", "group", "mmse", "lHip"]
    expected = [[61, 30, 4.5], [61, np.nan, 4.4], [np.nan, np.nan, 4.0], [72.5, 27, 3.5], [72.5, 25, 3.4]]
    np.testing.assert_array_equal(rows[["age", "mmse", "lHip"]], expected)
    assert any("row numbers refer to the joined table" in note for note in source.notes)
    people = "participant_id\tsession_id\tage\nsub-01\tses-01\t61\nsub-01\tses-02\tn/a\nsub-03\tses-01\t72\n"
    traits = "participant_id\tapoe\tage\nsub-03\t44\t72.0\nsub-01\t34\t61\n"  # a gap is not a contradiction
    frame = read_source(dataset(tmp_path / "other", people, scores_tsv=SCORES, traits_tsv=traits)).frame
    np.testing.assert_array_equal(frame[["age", "mmse", "apoe"]], [[61, 30, 34], [61, np.nan, 34], [72, 27, 44]])


def test_further_tables_are_joined(tmp_path):
    main, scores = tmp_path / "volumes.csv", tmp_path / "scores.tsv"
    main.write_text("id,lHip\n001,4.5\n\n002,4.0\n003,3.5\n")
    scores.write_text("id\tmmse\tapoe\n003\t25\te4\n001\t30\te3\n009\t29\te3\n")
    (tmp_path / "scores.json").write_text('{"mmse": {"Units": "points"}}')
    source = read_source(main, id_column="id", join=[scores])
    # The index tells the rows of the main table's file.
    pd.testing.assert_series_equal(source.frame["mmse"], pd.Series([30, np.nan, 25], [0, 2, 3], name="mmse"))
    assert (source.dictionary["mmse"].unit, source.files, *map(str, source.notes)) == (
        "points",
        (main, scores, tmp_path / "scores.json"),
        "No match was found in the main table for 1 row of scores.tsv, whose values are not used (participants 009).",
        "No match was found in scores.tsv for 1 row of the main table, so values from scores.tsv are missing there "
        "(participants 002).",
    )


MAIN = pd.DataFrame({"id": ["a", "a", "b"], "visit": [1.0, 2.0, 1.0], "x": [1.0, 2.0, 3.0]})


def test_visits_are_joined_however_they_are_written():
    other = pd.DataFrame({"id": ["a", "b", "a"], "visit": ["2.0", "1", "1"], "y": ["second", "b", "first"]})
    joined, notes = join_by_id(MAIN, other, "id", "visit", source="y.csv")
    assert (joined["y"].tolist(), list(joined.columns), notes) == (
        ["first", "second", "b"],
        ["id", "visit", "x", "y"],
        [],
    )


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"id": ["a", None], "visit": [1, 2]},
            r"Every row of y\.csv needs a value in 'id' and 'visit', but it is missing in row 3",
        ),
        (
            {"id": ["a", "a"], "visit": [1, 1]},
            r"has more than one row with 'a' and '1' \(rows 2 and 3\).*\nKeep one row per person and visit",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(other, message):
    refused_with(message, join_by_id, MAIN, pd.DataFrame(other), "id", "visit", source="y.csv")
