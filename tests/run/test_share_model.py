"""A model that is passed on: what the archive holds, that nobody is in it, and that no hostile one is believed."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rindices import presets
from rindices.cli import app
from rindices.model import read_header
from rindices.problems import InputError
from rindices.record import read_summary
from rindices.run.report_and_share import CARD, EXAMPLES, FILES, MANIFEST, SCORES, example_people, verify_model


def invoke(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def table(small_table, small_labels):
    rng, table = np.random.default_rng(2), small_table.copy()
    table.insert(0, "participant_id", [f"person-{number:02d}" for number in range(80)])
    table.insert(1, "diagnosis", np.where(small_labels, "AD|<b>", "CN"))
    table.insert(2, "age", rng.uniform(55, 85, 80))
    table.insert(3, "sex", np.tile([0, 1], 40))
    table.insert(4, "site", np.tile(["Ulm", "Ulm", "Bern", "Bern"], 20))
    return table


@pytest.fixture(scope="module")
def run(table, quick_preset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    table.to_csv(folder / "people.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(presets.PRESETS, "fast", lambda: quick_preset)
        roles = ("--covariates", "age,sex", "--site", "site", "--unit", "mL", "--no-report", "--repetitions", "3")
        code, said = invoke("fit", folder / "people.csv", "--out", folder / "run", *roles)
    assert code == 0, said
    return folder / "run"


@pytest.fixture(scope="module")
def archive(run):
    path = run.parent / "model.zip"
    given = ("--disease", "Alzheimer's disease", "--segmentation", "FreeSurfer 7.4", "--licence", "cc-by-4.0")
    code, said = invoke("share", run, "--out", path, *given)
    assert code == 0, said
    assert "Missing from the card: atlas" in said
    return path


def contents(archive):
    with zipfile.ZipFile(archive) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def packed(files, path, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return path


def test_the_receiver_can_verify_it_and_has_the_same_model(archive, run, tmp_path):
    code, said = invoke("verify", archive, "--out", tmp_path / "got.safetensors")
    assert (code, "reproduces the enclosed scores of 20 fictitious people" in said) == (0, True), said
    assert (tmp_path / "got.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    assert verify_model(archive).difference == 0


def test_the_card_says_what_the_run_and_the_user_know(archive, run):
    card = contents(archive)[CARD].decode()
    front = card.split("---\n")[1]
    assert not [part for part in ('license: "cc-by-4.0"', "library_name: rindices") if part not in front]
    for told in (
        "| Disease | Alzheimer's disease |",
        "| Trained on | 40 controls (CN), 40 patients (AD\\|\\<b\\>) |",
        "| Sites | 2 |",
        "| Segmentation | FreeSurfer 7.4 |",
        "| Atlas | not stated |",
        f"| Verdict | {read_summary(run).state} |",
        "is not a diagnosis.**",
        "With so few people, they include the uncertainty about the patterns themselves.",
    ):
        assert told in card, told


def test_nobody_is_in_it(archive, table):
    files = contents(archive)
    assert set(files) == {*FILES, MANIFEST}
    for name, content in files.items():
        assert b"person-" not in content, name
    made = pd.read_csv(io.BytesIO(files[EXAMPLES]))
    assert not np.isin(made.iloc[:, 4:].to_numpy(), table.iloc[:, 5:].to_numpy()).any()
    scores = pd.read_csv(io.BytesIO(files[SCORES]), dtype={"flags": str})
    assert not scores["flags"].fillna("").str.contains("outside the training range").any()
    assert scores["r1"].nunique() == 20


def test_examples_depend_on_the_contract_alone(archive, run):
    made = example_people(read_header(run / "model.safetensors").contract)
    kept = pd.read_csv(io.BytesIO(contents(archive)[EXAMPLES]))
    pd.testing.assert_frame_equal(made, kept, check_dtype=False, rtol=1e-5)


def test_the_same_run_gives_the_same_archive(archive, run, tmp_path):
    given = ("--disease", "Alzheimer's disease", "--segmentation", "FreeSurfer 7.4", "--licence", "cc-by-4.0")
    assert invoke("share", run, "--out", tmp_path / "again.zip", *given)[0] == 0
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def signed(files):
    """Return files with a manifest that fits them, as somebody with bad intentions would."""

    manifest = json.loads(files[MANIFEST])
    manifest["sha256"] = {name: hashlib.sha256(files[name]).hexdigest() for name in FILES}
    return files | {MANIFEST: json.dumps(manifest).encode()}


def test_changed_and_hostile_archives_are_refused(archive, tmp_path):
    files = contents(archive)
    other_scores = files[SCORES].replace(b"example-01,n/a,other,0.", b"example-01,n/a,other,5.")
    assert other_scores != files[SCORES]
    bad = {
        "was changed after": files | {CARD: b"# another card"},
        "does not reproduce the enclosed scores": signed(files | {SCORES: other_scores}),
        "has no scores": signed(files | {SCORES: b"\x00,\xff\n1,2\n"}),
        "should contain": files | {"../../evil.sh": b"#!/bin/sh"},
        "was not packed by": signed(files | {EXAMPLES: b"0," * 10_000_000}),
        "manifest.json cannot be used": files | {MANIFEST: b'{"format": "one"}'},
        "later version": files | {MANIFEST: files[MANIFEST].replace(b'"format": 1', b'"format": 2')},
    }
    for number, (told, content) in enumerate(bad.items()):
        path = packed(content.items(), tmp_path / f"bad{number}.zip")
        with pytest.raises(InputError, match=told):
            verify_model(path, tmp_path / "out.safetensors")
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = packed([*files.items(), (CARD, b"twice")], tmp_path / "twice.zip")
    with pytest.raises(InputError, match="should contain"):
        verify_model(path)
    for name, content in {"cut": archive.read_bytes()[:5000], "none": b"", "text": b"not a zip"}.items():
        (tmp_path / f"{name}.zip").write_bytes(content)
        with pytest.raises(InputError, match="cannot be read as a zip file"):
            verify_model(tmp_path / f"{name}.zip")
    assert not (tmp_path / "out.safetensors").exists()
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name]
