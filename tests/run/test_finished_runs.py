"""Finished runs: comparison of two, follow-up that comes later, and shared models."""

import hashlib
import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rindices import InputError, presets
from rindices.judging.agreement_and_misfit import concordance
from rindices.model import read_header
from rindices.record import read_summary
from rindices.run.compare_runs import compare_runs
from rindices.run.report_and_share import CARD, EXAMPLES, FILES, MANIFEST, SCORES, example_people, verify_model
from tests import longevity
from tests.pages.made_run import add_analyses, add_visits, make_run, rewrite
from tests.pages.page import Page, missing
from tests.test_cli import told

# Two runs compared through their folders


@pytest.fixture
def runs(tmp_path):
    """Return two runs of the same people; the second swaps patterns 1 and 2 and changes one person's severity."""
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        make_run(folder)
    table = pd.read_csv(second / "r_indices.csv")
    own, other = ([f"severity{pattern}{end}" for end in ("", "_low", "_high")] for pattern in (1, 2))
    table[own + other] = table[other + own].to_numpy()
    table.loc[50, own] += 3
    table.to_csv(second / "r_indices.csv", index=False)
    rewrite(second / "patterns.csv", pattern=lambda maps: maps["pattern"].replace({1: 2, 2: 1}))
    return first, second


def test_patterns_are_matched_and_who_moved_is_found(runs):
    found = compare_runs(*runs)
    assert (found.matched_by, found.unmatched, found.n_patients, len(found.people)) == ("people", ((), ()), 60, 112)
    assert {(pair.first, pair.second): pair.moved for pair in found.pairs} == {(1, 2): 0, (2, 1): 1, (3, 3): 0}
    assert found.people["participant_id"][0] == "sub-0050"
    a, b = (pd.read_csv(run / "r_indices.csv") for run in runs)
    own, other, patients = a["severity2"], b["severity1"], a["group"] == "patient"
    [pair] = [pair for pair in found.pairs if pair.first == 2]
    expected = (concordance(own[patients].to_numpy(), other[patients].to_numpy()), (other - own).mean(), 1)
    assert (pair.concordance, pair.difference, pair.map_correlation) == pytest.approx(expected)


def make_others(run, start, *more):
    """Change the ids of a run's people from this one on."""
    for name in ("r_indices", "z_scores", "variables", "people", *more):
        rewrite(
            run / f"{name}.csv",
            participant_id=lambda table: table["participant_id"].mask(
                table["participant_id"] >= start, "other-" + table["participant_id"]
            ),
        )


@pytest.fixture
def visited(runs):
    """Return the two runs with two visits of each person."""
    for folder in runs:
        add_analyses(folder)
        add_visits(folder)
    return runs


def test_another_number_of_patterns_leaves_some_without_a_partner(runs, tmp_path):
    make_run(tmp_path / "two", n_patterns=2)
    found, turned = compare_runs(runs[0], tmp_path / "two"), compare_runs(tmp_path / "two", runs[0])
    assert (len(found.pairs), len(found.unmatched[0]), found.unmatched[1]) == (2, 1, ())
    assert {(pair.second, pair.first) for pair in turned.pairs} == {pair[:2] for pair in found.pairs}
    assert ("n_patterns", "3", "2") in found.settings


def test_a_pattern_that_no_common_patient_has_is_matched_without_a_concordance(runs):
    for folder, columns in zip(runs, (["severity3"], ["severity1", "severity3"]), strict=True):
        table = pd.read_csv(folder / "r_indices.csv")
        table.loc[table["group"] == "patient", columns] = 0.0
        table.loc[table["severity2"] < 0.5, ["severity2", "severity2_low"]] = 0.0
        table.to_csv(folder / "r_indices.csv", index=False)
    found = {pair[:2]: pair.concordance for pair in compare_runs(*runs).pairs}
    assert ({pair for pair, order in found.items() if not np.isnan(order)}, len(found)) == ({(1, 2)}, 3)
    told("compare", *runs)


def test_a_person_counts_once_however_many_visits(visited):
    make_others(visited[1], "sub-0057", "analysis/drivers")
    found = compare_runs(*visited)
    assert (len(found.people), found.n_patients, found.matched_by) == (57, 17, "maps")
    assert set(found.people["visit"]) == {"bl"}
    make_others(visited[1], "", "analysis/drivers")
    found = compare_runs(*visited)
    assert (found.matched_by, {pair[:2] for pair in found.pairs}) == ("maps", {(1, 2), (2, 1), (3, 3)})
    assert not missing(told("compare", *visited), "0 people are in both", "correlation of the maps 1.00")


def test_other_labels_of_visits_and_exchanged_groups_are_told(visited):
    path, turned = visited[1] / "r_indices.csv", {"control": "patient", "patient": "control"}
    firsts = pd.read_csv(path).groupby("group")["participant_id"].first()[[*turned]]
    rewrite(
        path,
        visit=lambda table: table["visit"].replace({"bl": "1", "m12": "2"}),
        group=lambda table: table["group"].mask(table["participant_id"].isin(firsts), table["group"].map(turned)),
    )
    found = compare_runs(*visited)
    assert (len(found.people), found.n_patients, found.matched_by) == (112, 60, "people")
    assert not missing(
        told("compare", *visited),
        "The runs share no visit labels (m12, bl versus 2, 1), so each person's first visits",
        "2 people are controls in one run and patients in the other",
    )


def test_tables_and_a_page_without_ids(runs, tmp_path):
    out = tmp_path / "compared"
    assert missing(told("compare", *runs, "--out", out), "1 person with non-overlapping intervals", "sub-") == ["sub-"]
    assert {path.name for path in out.iterdir()} == {"compare.html", "patterns.csv", "people.csv", "regions.csv"}
    page = Page((out / "compare.html").read_text(encoding="utf-8"))
    assert ("sub-" in page.words, len(page.every("script")), len(page.every("svg"))) == (False, 0, 6)
    told("compare", *runs, "--out", out, "--show-ids")
    assert "sub-0050" in (out / "compare.html").read_text(encoding="utf-8")


def test_nothing_is_written_into_a_run_or_beside_other_files(runs, tmp_path):
    inside, words = runs[0] / "compared", "is in the run folder"
    for out, said in ((inside, words), (runs[1], words), (tmp_path, "other files")):
        assert said in told("compare", *runs, "--out", out, code=2)
    assert not inside.exists()


# Follow-up that comes later: for a finished run, and for people to whom a model is applied


HERE = Path(longevity.__file__).parent


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a folder with a finished run and the follow-up of its people; higher severities convert sooner."""
    folder = tmp_path_factory.mktemp("later")
    shutil.copytree(HERE / "runs/finished", folder / "run")
    people = pd.read_csv(folder / "run/r_indices.csv").drop_duplicates("participant_id")
    time = np.random.default_rng(0).exponential(3, len(people)) * np.exp(-2 * people["severity1"])
    later = {"participant_id": people["participant_id"], "years": time.clip(upper=4), "converted": 1.0 * (time < 4)}
    pd.DataFrame(later).to_csv(folder / "later.csv", index=False)
    return folder


def test_a_run_is_reported_again_with_what_became_of_its_people(finished, tmp_path):
    run, named = shutil.copytree(finished / "run", tmp_path / "run"), ("--time", "years", "--event", "converted")
    told("report", run, "--clinical", finished / "later.csv", *named)
    summary = read_summary(run)
    assert dict(summary.follow_up) == {"time": "years", "event": "converted"}
    assert not {"years", "converted"} & {*summary.clinical}
    hazards = (run / "analysis/prognosis.csv").read_bytes()
    assert pd.read_csv(io.BytesIO(hazards))["hazard_ratio"][0] > 1.05
    assert "Follow-up and prognosis" in (run / "report.html").read_text(encoding="utf-8")
    told("report", run, "--subgroup-limits", "0.3,0.6")  # the prognosis is kept
    assert (run / "analysis/prognosis.csv").read_bytes() == hazards


# Shared models: the archive's contents, no data of any person, and hostile archives that are rejected


@pytest.fixture(scope="module")
def table(small_table, small_labels):
    columns = {
        "participant_id": [f"person-{number:02d}" for number in range(80)],
        "diagnosis": np.where(small_labels, "AD|<b>", "CN"),
        "age": np.random.default_rng(2).uniform(55, 85, 80),
        "sex": np.tile([0, 1], 40),
        "site": np.tile(["Ulm", "Ulm", "Bern", "Bern"], 20),
    }
    return pd.DataFrame(columns).join(small_table)


@pytest.fixture(scope="module")
def shared(table, quick_preset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    table.to_csv(folder / "people.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(presets.PRESETS, "fast", lambda: quick_preset)
        roles = ("--covariates", "age,sex", "--site", "site", "--unit", "mL", "--no-report", "--repetitions", "3")
        told("fit", folder / "people.csv", "--out", folder / "run", *roles)
    return folder / "run"


GIVEN = ("--disease", "Alzheimer's disease", "--segmentation", "FreeSurfer 7.4", "--licence", "cc-by-4.0")


@pytest.fixture(scope="module")
def archive(shared):
    path = shared.parent / "model.zip"
    assert "Missing from the card: atlas" in told("share", shared, "--out", path, *GIVEN)
    return path


def contents(archive):
    with zipfile.ZipFile(archive) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def packed(files, path, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return path


def test_the_receiver_can_verify_it_and_has_the_same_model(archive, shared, tmp_path):
    said = told("verify", archive, "--out", tmp_path / "got.safetensors")
    assert "reproduces the scores of the 20 simulated people in the archive" in said
    assert (tmp_path / "got.safetensors").read_bytes() == (shared / "model.safetensors").read_bytes()
    assert verify_model(archive).difference == 0


def test_the_card_says_what_the_run_and_the_user_know(archive, shared):
    card = contents(archive)[CARD].decode()
    expected = (
        'license: "cc-by-4.0"',
        "library_name: rindices",
        "| Disease | Alzheimer's disease |",
        "| Trained on | 40 controls (CN), 40 patients (AD\\|\\<b\\>) |",
        "| Sites | 2 |",
        "| Segmentation | FreeSurfer 7.4 |",
        "| Atlas | not stated |",
        f"| Verdict | {read_summary(shared).verdict} |",
        "is not a diagnosis.**",
        "Because there are so few people, the intervals include the uncertainty about the patterns themselves.",
    )
    assert not missing(card, *expected)
    assert not missing(card.split("---\n")[1], *expected[:2])


def test_nobody_is_in_it(archive, table):
    files = contents(archive)
    assert {name: b"person-" in content for name, content in files.items()} == dict.fromkeys([*FILES, MANIFEST], False)
    made, scores = (pd.read_csv(io.BytesIO(files[name])) for name in (EXAMPLES, SCORES))
    assert not np.isin(made.iloc[:, 4:].to_numpy(), table.iloc[:, 5:].to_numpy()).any()
    assert b"outside the training range" not in files[SCORES]
    assert scores["r1"].nunique() == 20


def test_the_same_run_gives_the_same_archive(archive, shared, tmp_path):
    told("share", shared, "--out", tmp_path / "again.zip", *GIVEN)
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    made = example_people(read_header(shared / "model.safetensors").contract)  # they depend on nothing else
    kept = pd.read_csv(io.BytesIO(contents(archive)[EXAMPLES]))
    pd.testing.assert_frame_equal(made, kept, check_dtype=False, rtol=1e-5)


def signed(files):
    """Return files with a matching manifest, as an attacker would make one."""
    sums = {name: hashlib.sha256(files[name]).hexdigest() for name in FILES}
    return files | {MANIFEST: json.dumps(json.loads(files[MANIFEST]) | {"sha256": sums}).encode()}


def test_changed_and_hostile_archives_are_refused(archive, tmp_path):
    files, path = contents(archive), tmp_path / "bad.zip"
    other_scores = files[SCORES].replace(b"example-01,n/a,other,0.", b"example-01,n/a,other,5.")
    assert other_scores != files[SCORES]
    with pytest.warns(UserWarning, match="Duplicate name"):
        packed([*files.items(), (CARD, b"twice")], path)
    twice = path.read_bytes()
    bad = {
        "was changed after": files | {CARD: b"# another card"},
        "does not reproduce the scores supplied with it": signed(files | {SCORES: other_scores}),
        "has no scores": signed(files | {SCORES: b"\x00,\xff\n1,2\n"}),
        "should contain": files | {"../../evil.sh": b"#!/bin/sh"},
        "was not packed by": signed(files | {EXAMPLES: b"0," * 10_000_000}),
        "manifest.json cannot be used": files | {MANIFEST: b'{"format": "one"}'},
        "later version": files | {MANIFEST: files[MANIFEST].replace(b'"format": 1', b'"format": 2')},
    }
    hostile = [(words, packed(content.items(), path).read_bytes()) for words, content in bad.items()]
    no_zip = [("cannot be read as a zip file", content) for content in (archive.read_bytes()[:5000], b"", b"not a zip")]
    for words, content in (*hostile, ("should contain", twice), *no_zip):
        path.write_bytes(content)
        with pytest.raises(InputError, match=words):
            verify_model(path, tmp_path / "out.safetensors")
    assert [*tmp_path.rglob("*")] == [path]  # neither a model nor evil.sh
