"""Run folders: ownership, identity and status of the run, locks, and files that are read back as they were written."""

import errno
import hashlib
import json
import math
import os
from contextlib import suppress
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from rindices import SearchSettings
from rindices.judging import agreement_and_misfit as agreement
from rindices.problems import InputError
from rindices.record import (
    DONE,
    FAILED,
    RESULTS,
    UNFINISHED,
    Results,
    RunSettings,
    RunTable,
    Summary,
    check_free,
    discard,
    held,
    is_complete,
    keep_trained,
    locked,
    more_of,
    read_run,
    read_settings,
    read_summary,
    status_of,
    write_summary,
    write_tables,
)
from rindices.record.run_folder import progress_of, worker_of
from tests.pages.made_run import add_analyses, add_truth, change_summary, make_run
from tests.refusal import refused_with

TABLE = RunTable(path="table.csv", sha256="abc", covariates=("age", "sex"))
SETTINGS = RunSettings(
    command={"line": "rindices fit table.csv"},
    table=TABLE,
    training=SearchSettings(n_patterns=(2, 3)),
    versions={"jax": "0.8.0"},
    device={"platform": "cpu"},
)


def altered(table=None, training=None, **sections):
    """Return settings with changes to the table, the training or whole sections."""
    sections |= {"table": replace(TABLE, **table or {}), "training": replace(SETTINGS.training, **training or {})}
    return SETTINGS.model_copy(update=sections)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run"


def begin(out, settings=SETTINGS, **options):
    with held(out, settings, **options) as goes_on:
        return goes_on


def finish(out, status=DONE):
    write_summary(out, Summary.model_construct(status=status))
    for name in RESULTS if status == DONE else ():
        (out / name).write_text("")


# Ownership of a folder


def test_new_and_empty_folders_and_those_of_runs_are_free_and_those_of_others_not(out):
    check_free(out)
    assert not out.exists()
    out.mkdir()
    check_free(out)
    begin(out)
    for name in ("model.safetensors", "r_indices.csv", "report.html", ".r_indices.csv.123.partial"):
        (out / name).touch()
    check_free(out)
    for name in ("thesis.docx", ".hidden", "data.partial"):
        (out / name).touch()
    refused_with(r"already contains other files: \.hidden, data\.partial, thesis\.docx\.", check_free, out)


# Identity of a run


@pytest.mark.parametrize("status", [UNFINISHED, FAILED])
def test_same_run_goes_on_and_keeps_its_journal_and_another_in_its_place_does_not(out, status):
    """The same run has the same table and training, wherever the table is now and whatever the command was."""
    assert (status_of(out), is_complete(out, SETTINGS), begin(out)) == (None, False, False)
    assert (status_of(out), read_settings(out / "run.toml").training) == (UNFINISHED, SETTINGS.training)
    chunk, mine = out / "journal" / "data-3-abc.safetensors", out / "thesis.docx"
    mine.write_text("mine")
    chunk.write_text("chunk")
    (out / "run.toml").write_text((out / "run.toml").read_text() + "# a mark\n")
    halves = [out / "r_indices.csv", out / ".r_indices.csv.99.partial", out / "journal" / ".data-3-abc.9.partial"]
    moved, other = (
        altered(table={"path": "moved/table.csv"}, command={"line": "other"}),
        altered(training={"preset": "paper"}),
    )
    for settings, overwrite in ((moved, False), (other, True)):
        for half in halves:
            half.write_text("half")
        finish(out, status)
        assert not is_complete(out, moved)
        with suppress(RuntimeError), held(out, settings, overwrite=overwrite) as goes_on:
            assert (goes_on, status_of(out)) == (not overwrite, UNFINISHED)
            raise RuntimeError  # releases the folder
        assert not [half for half in halves if half.exists()]
        assert ("# a mark" in (out / "run.toml").read_text(), chunk.exists(), mine.read_text()) == (
            not overwrite,
            not overwrite,
            "mine",
        )
        assert sorted(path.name for path in out.iterdir()) == ["journal", "run.toml", "summary.json", "thesis.docx"]
    assert read_settings(out / "run.toml").training == other.training


OTHERS = {
    "sha256: abc before, xyz now": {"table": {"sha256": "xyz"}},
    "n_patterns: 2, 3 before, 3, 4, 5, 6 and 1 more now": {"training": {"n_patterns": (3, 4, 5, 6, 7)}},
    "n_patterns: 2, 3 before, auto now": {"training": {"n_patterns": "auto"}},
    "n_repetitions: 10 before, 5 now": {"training": {"n_repetitions": 5}},
    "max_steps: not given before, 100 now": {"training": {"max_steps": 100}},
    "jax: 0.8.0 before, 0.9.0 now": {"versions": {"jax": "0.9.0"}},
    "platform: cpu before, gpu now": {"device": {"platform": "gpu"}},
}


@pytest.mark.parametrize(("difference", "change"), OTHERS.items())
def test_other_runs_are_refused_with_their_differences(out, monkeypatch, difference, change):
    monkeypatch.setattr("time.strftime", lambda _: "then")  # the holder is recorded with the time
    begin(out)
    before = {path: path.read_bytes() for path in out.rglob("*.*")}
    first, *lines, last = refused_with("contains a different run", begin, out, altered(**change)).splitlines()
    assert (first, lines) == (f"The folder {out} contains a different run:", [f"  {difference}"])
    assert "overwrite=True" in last
    assert {path: path.read_bytes() for path in out.rglob("*.*")} == before
    refused_with("contains a different run", is_complete, out, altered(**change))


MORE = altered(training={"n_patterns": (2, 3, 4), "n_repetitions": 20})


@pytest.mark.parametrize("killed", [False, True])
def test_more_is_added_to_a_finished_run_whose_models_are_there(out, killed):
    begin(out)
    (out / "journal" / "data-3-abc.safetensors").write_text("chunk")
    refused_with("n_repetitions: 10 before, 20 now", is_complete, out, MORE)  # begun but not finished
    finish(out)
    if not killed:
        keep_trained(out)
    assert (is_complete(out, MORE), (out / "journal").exists(), more_of(out, MORE)["n_repetitions"]) == (
        False,
        False,
        "10 before, 20 now",
    )
    refused_with(
        r"jax: 0\.8\.0 before, 0\.9\.0 now", is_complete, out, MORE.model_copy(update={"versions": {"jax": "0.9.0"}})
    )
    assert begin(out, MORE)
    assert (read_settings(out / "run.toml").training, (out / "model.safetensors").exists()) == (MORE.training, False)
    [chunk] = (out / "trained").iterdir()
    assert chunk.read_text() == "chunk"
    chunk.unlink()
    finish(out)
    refused_with(
        "Its models are missing, so it cannot be extended",
        is_complete,
        out,
        altered(training={"n_patterns": (2, 3, 4), "n_repetitions": 30}),
    )


def test_models_depend_neither_on_how_many_there_are_nor_on_where_the_table_is():
    assert MORE.fingerprint() == altered(table={"path": "moved/table.csv"}).fingerprint() == SETTINGS.fingerprint()
    for change in OTHERS.values():
        assert (altered(**change).fingerprint() != SETTINGS.fingerprint()) == {
            "n_patterns",
            "n_repetitions",
        }.isdisjoint(change.get("training", ()))


# Status of a run


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", "\xff"])
def test_summary_that_cannot_be_read_is_that_of_an_unfinished_run(out, damage):
    out.mkdir()
    (out / "summary.json").write_bytes(damage.encode("latin-1"))
    assert status_of(out) == UNFINISHED


def test_finished_run_stays_complete_on_another_machine(out):
    """Only resuming a run there could mix results of two machines."""
    begin(out)
    elsewhere = altered(versions={"jax": "0.9.0"}, device={"platform": "gpu"})
    refused_with("contains a different run", is_complete, out, elsewhere)
    finish(out)
    assert is_complete(out, elsewhere)
    refused_with(
        r"preset: fast before, paper now",
        is_complete,
        out,
        elsewhere.model_copy(update={"training": SearchSettings(preset="paper")}),
    )


# Locks


def test_same_process_cannot_hold_a_folder_twice(out):
    with locked(out):
        (out / "journal" / "holder.txt").unlink()
        with pytest.raises(InputError, match=rf"Another process \(unknown\) is already using {out}"), locked(out):
            pass
    with locked(out):
        pass


@pytest.mark.parametrize(
    "trouble",
    [
        *(OSError(number, "no locks") for number in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)),
        NotImplementedError(),
    ],
)
def test_a_disk_without_locks_keeps_nobody_out(out, monkeypatch, trouble):
    monkeypatch.setattr("filelock.FileLock.acquire", Mock(side_effect=trouble))
    with locked(out):
        assert worker_of(out) == os.getpid()
    monkeypatch.setattr("filelock.FileLock.acquire", Mock(side_effect=OSError(errno.EIO, "broken")))
    with pytest.raises(OSError, match="broken"), locked(out):
        pass


def test_a_journal_that_a_lock_kept_is_removed_after_it(out):
    with locked(out):
        keep_trained(out)
        (out / "journal").mkdir()  # as Windows leaves it
    assert not (out / "journal").exists()


def test_run_that_never_began_leaves_nothing_but_what_is_of_others(out):
    begin(out)
    discard(out)
    assert not out.exists()
    begin(out)
    (out / "thesis.docx").touch()
    discard(out)
    assert [path.name for path in out.iterdir()] == ["thesis.docx"]


# Files of a run are read back as they were written; missing, damaged and foreign ones are refused


ODD = ["007", "=1+1", "NA"]


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    add_truth(folder, make_run(folder, n_patterns=2, n_regions=6))
    add_analyses(folder)
    (folder / "model.safetensors").write_text("own")
    change_summary(folder, model_sha256=hashlib.sha256(b"own").hexdigest())
    return folder


def test_tables_are_read_as_they_were_written(tmp_path):
    r_indices = pd.DataFrame({"participant_id": ODD, "visit": ["1", "02", ""], "first_visit": True, "diagnosis": ODD})
    scores = {"r1": [0.25, math.nan, 1.0], "r1_sd": 0.5, "flags": "", "severity1": [0.5, math.nan, 1.0]}
    r_indices = r_indices.assign(group=["control", "patient", "other"], **scores)
    patterns = pd.DataFrame({"region": ODD, "pattern": 1, "change_sd": 1.5, "change_percent": 2.5, "spread_sd": 0.5})
    people = r_indices[["participant_id", "diagnosis", "group"]].assign(used=True, reason="", distance=1.5, flags=ODD)
    variables = pd.DataFrame({"age": [70.5, math.nan, 60.0], "@sex": ["F", math.nan, "+M"]})
    results = Results(r_indices, pd.DataFrame(1.5, index=range(3), columns=ODD), variables, patterns, people)
    (tmp_path / "analysis").mkdir()
    (tmp_path / "analysis" / "change.csv").write_text("of an earlier time")
    write_tables(tmp_path, results, {"drivers": patterns.assign(participant_id=ODD, rank=1, z=0.5)})
    counts = {"n_controls": 1, "n_patients": 1, "n_other": 1, "n_features": 3, "n_patterns": 1}
    summary = Summary(status=DONE, applied=True, warnings=(), variables=results.kinds, n_read=3, **counts)
    write_summary(tmp_path, summary)
    found = read_run(tmp_path)
    assert (found.summary, list(found.analyses)) == (summary, ["drivers"])
    for name in ("r_indices", "z_scores", "variables", "patterns", "people"):
        pd.testing.assert_frame_equal(getattr(found.results, name), getattr(results, name), check_dtype=False)


def test_what_is_not_a_number_is_null_and_what_is_not_said_is_not_written(tmp_path):
    write_summary(tmp_path, Summary(status="failed", agreement={"pattern_agreement": math.nan}))
    assert '"pattern_agreement": null' in (tmp_path / "summary.json").read_text()
    assert set(read_summary(tmp_path).model_fields_set) == {"status", "agreement"}


@pytest.mark.parametrize("patterns", [(2, 3), "auto"])
def test_settings_are_read_as_they_were_written(tmp_path, patterns):
    table = RunTable(path='a "b"\n\x7f.csv', sha256="abc", covariates=("age", "sex"), missing=["-9999"], control="CN")
    training = SearchSettings(n_patterns=patterns, orthogonality=(0.2,), max_steps=300)
    settings = altered(training=vars(training)).model_copy(update={"table": table, "plan": {"models_per_chunk": 3}})
    (tmp_path / "run.toml").write_text(settings.text(), encoding="utf-8")
    found = read_settings(tmp_path / "run.toml")
    assert (found.sections(), found.training) == (settings.sections(), training)
    moved = settings.model_copy(update={"command": {"line": "rindices fit"}, "plan": {}})
    assert moved.fingerprint() == found.fingerprint() == settings.fingerprint()


@pytest.mark.parametrize(
    "name",
    [
        *(f"{name}.csv" for name in ("r_indices", "patterns", "selection", "z_scores", "variables", "people", "truth")),
        *("summary.json", "run.toml"),
    ],
)
def test_missing_and_damaged_files_are_named(run, name):
    for damage in (
        b"",
        b"\xff\xfe\x00",
        (run / name).read_bytes().replace(b"participant_id", b"id").replace(b"pattern", b"model", 3),
    ):
        (run / name).write_bytes(damage)
        refused_with(name, read_run, run)
    (run / name).unlink()
    refused_with(name, read_run, run)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"n_patients": True}, "n_patients"),
        ({"n_patterns": 2.5}, "n_patterns"),
        ({"reliable": "yes"}, "reliable"),
        ({"dreams": 3}, "dreams"),
        ({"members_left_out": [{"member": 4}]}, "reason"),
        ({"status": "stopped"}, "status"),
        ({"search": {"runners_up": [{"n_patterns": 2}]}}, "orthogonality"),
        ({"evidence": {"eigenvalues": ["0.5"]}}, "eigenvalues"),
        ({"evidence": {"p": "small"}}, "p"),
        ({"verdict": "surely"}, "verdict"),
        ({"balance": [{"variable": "age"}]}, "kind"),
        ({"correlation": [[1.0, None], [0.5, 1.0]]}, "correlation"),
    ],
)
def test_damaged_summary_says_where(run, changes, name):
    change_summary(run, **changes)
    refused_with(f"summary.json .*{name}", read_run, run)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        *(
            (f"{name}.csv", lambda rows: rows[::-1], " .*a different order")
            for name in ("z_scores", "variables", "people")
        ),
        ("patterns.csv", lambda rows: [row.replace(",1,", ",one,") for row in rows], ""),
        ("r_indices.csv", lambda rows: [row.replace(",control,", ",healthy,") for row in rows], ""),
        ("model.safetensors", lambda rows: ["other"], ".*not this run's model"),
        *(
            (f"{name}.csv", change, "")
            for name in ("r_indices", "patterns", "people", "z_scores", "variables")
            for change in (lambda rows: rows[1:], lambda rows: [*rows, rows[0]], lambda rows: [])
        ),
    ],
)
def test_tables_with_other_rows_order_or_words_and_another_model_are_refused(run, name, change, said):
    read_run(run)
    header, *rows = (run / name).read_text().splitlines(keepends=True)
    (run / name).write_text("".join([header, *change(rows)]))
    refused_with(name + said, read_run, run)


def test_agreement_so_far_is_of_all_sound_models_in_the_journal(tmp_path):
    rng = np.random.default_rng(0)
    shared = rng.uniform(size=(60, 2))
    models = np.stack([shared, np.clip(shared + rng.normal(0, 0.1, shared.shape), 0, 1), np.full_like(shared, 0.5)])
    (tmp_path / "journal").mkdir()
    for some in (models[:1], models[1:]):
        path, chunk = tmp_path / "journal" / f"data-{len(some)}.safetensors", [[[2, 0.8], 0, 0]] * len(some)
        save_file({"r_indices": np.stack([0 * some, some])}, path, {"chunk": json.dumps(chunk)})  # at two steps
    (found,) = progress_of(tmp_path, running=True).agreed
    expected = agreement.mean_agreement(agreement.pairwise(models[:2])).pattern_agreement
    assert (found.n_patterns, found.n_models, found.value) == (2, 3, pytest.approx(expected))
    assert 0.8 < expected < 1


def test_time_left_does_not_count_what_came_before_the_first_steps(tmp_path):
    line = '{"event": "progress", "time": "2026-01-01T10:00:%02d+0000", "stage": "Training", "done": %d, "total": 1100}'
    for now, rate, left in ([(0, 0), (30, 100)], None, None), ([(0, 0), (30, 100), (31, 200), (32, 300)], 100, 8):
        (tmp_path / "run.training.log").write_text("\n".join(line % at for at in now))
        assert progress_of(tmp_path / "run", running=True) == (
            "running",
            "Training",
            now[-1][1] / 1100,
            rate,
            left,
            (),
            "",
        )


@pytest.mark.parametrize(("event", "state"), [("progress", "unfinished"), ("error", "refused")])
def test_a_training_without_a_folder_was_refused_only_where_it_says_so(tmp_path, event, state):
    (tmp_path / "run.training.log").write_text(f'A warning.\n{{"event": "{event}"}}\n')
    assert progress_of(tmp_path / "run", running=False).state == state
