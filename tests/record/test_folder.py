import os
import platform
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest

from rindices.errors import InputError
from rindices.record import (
    DONE,
    FAILED,
    RESULTS,
    UNFINISHED,
    RunSettings,
    RunTable,
    Summary,
    check_free,
    discard,
    held,
    is_complete,
    locked,
    read_settings,
    status_of,
    write_summary,
)
from rindices.settings import SearchSettings

TABLE = RunTable(path="table.csv", sha256="abc", covariates=("age", "sex"))
SETTINGS = RunSettings(
    command={"line": "rindices fit table.csv"},
    table=TABLE,
    training=SearchSettings(n_patterns=(2, 3)),
    versions={"jax": "0.8.0"},
    device={"platform": "cpu"},
)


def altered(table=None, training=None, **sections):
    """Return other settings: of the table, of the training, or whole sections."""
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


# Whose folder is it?


def test_new_and_empty_folders_and_those_of_runs_are_free(out):
    check_free(out)
    assert not out.exists()
    out.mkdir()
    check_free(out)
    begin(out)
    for name in ("model.safetensors", "r_indices.csv", "report.html", ".r_indices.csv.123.partial"):
        (out / name).write_text("")
    check_free(out)


def test_files_of_others_are_named_and_kept(out):
    begin(out)
    for name in ("thesis.docx", ".hidden", "data.partial"):
        (out / name).write_text("mine")
    with pytest.raises(InputError, match=r"already holds other files: \.hidden, data\.partial, thesis\.docx\."):
        check_free(out)
    assert (out / "thesis.docx").read_text() == "mine"


def test_file_in_the_place_of_the_folder_is_refused(out):
    out.write_text("")
    with pytest.raises(InputError, match="is a file, but a folder is needed"):
        check_free(out)
    with pytest.raises(InputError, match="is a file, not a folder"):
        check_free(out / "below")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be written")
def test_folder_that_cannot_be_written_is_refused(out):
    out.mkdir(mode=0o500)
    with pytest.raises(InputError, match="cannot be written to"):
        check_free(out)


# Which run is it?


def test_new_run_says_what_it_is_and_that_it_is_not_finished(out):
    assert status_of(out) is None
    with held(out, SETTINGS) as goes_on:
        assert not goes_on
        assert status_of(out) == UNFINISHED
        assert read_settings(out / "run.toml").training == SETTINGS.training


def test_same_run_goes_on_and_keeps_its_journal(out):
    begin(out)
    (out / "journal" / "data-3-abc.safetensors").write_text("chunk")
    (out / "run.toml").write_text((out / "run.toml").read_text() + "# a mark\n")
    for name in ("r_indices.csv", ".r_indices.csv.99.partial"):
        (out / name).write_text("half")
    assert begin(out)
    assert (out / "journal" / "data-3-abc.safetensors").read_text() == "chunk"
    assert "# a mark" in (out / "run.toml").read_text()
    assert sorted(path.name for path in out.iterdir()) == ["journal", "run.toml", "summary.json"]


def test_run_that_failed_goes_on_as_one_that_is_not_finished(out):
    begin(out)
    finish(out, FAILED)
    with held(out, SETTINGS) as goes_on:
        assert goes_on
        assert status_of(out) == UNFINISHED


def test_the_same_table_elsewhere_by_another_command_is_the_same_run(out):
    begin(out)
    assert begin(out, altered(table={"path": "moved/table.csv"}, command={"line": "other"}))


OTHERS = {
    "sha256: abc then, xyz now": {"table": {"sha256": "xyz"}},
    "n_patterns: 2, 3 then, 2, 3, 4, 5 and 1 more now": {"training": {"n_patterns": (2, 3, 4, 5, 6)}},
    "max_steps: not given then, 100 now": {"training": {"max_steps": 100}},
    "jax: 0.8.0 then, 0.9.0 now": {"versions": {"jax": "0.9.0"}},
    "platform: cpu then, gpu now": {"device": {"platform": "gpu"}},
}


@pytest.mark.parametrize(("difference", "change"), OTHERS.items())
def test_other_runs_are_refused_with_their_differences(out, difference, change):
    begin(out)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    with pytest.raises(InputError) as error:
        begin(out, altered(**change))
    lines = str(error.value).splitlines()
    assert lines[0] == f"The folder {out} holds another run:"
    assert lines[1:-1] == [f"  {difference}"]
    assert "overwrite=True" in lines[-1]
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    with pytest.raises(InputError, match="holds another run"):
        is_complete(out, altered(**change))


def test_overwriting_removes_the_other_run_and_its_journal(out):
    begin(out)
    finish(out)
    (out / "model.safetensors").write_text("old")
    (out / "journal" / "data-3-abc.safetensors").write_text("chunk")
    new = altered(training={"preset": "paper"})
    assert not begin(out, new, overwrite=True)
    assert status_of(out) == UNFINISHED
    assert read_settings(out / "run.toml").training.preset == "paper"
    assert sorted(path.name for path in out.iterdir()) == ["journal", "run.toml", "summary.json"]
    assert not (out / "journal" / "data-3-abc.safetensors").exists()


def test_half_written_files_are_removed_and_files_of_others_are_not(out):
    begin(out)
    halves = [out / ".model.safetensors.5.partial", out / "journal" / ".data-3-abc.safetensors.5.partial"]
    (out / "thesis.docx").write_text("mine")
    for overwrite in (False, True):
        for half in halves:
            half.write_text("half")
        begin(out, overwrite=overwrite)
        assert not any(half.exists() for half in halves)
    assert (out / "thesis.docx").read_text() == "mine"


def test_run_without_its_settings_is_refused(out):
    begin(out)
    (out / "run.toml").unlink()
    with pytest.raises(InputError, match=r"without its run\.toml.\n.*overwrite=True"):
        begin(out)
    assert not begin(out, overwrite=True)


def test_settings_that_cannot_be_read_are_refused(out):
    begin(out)
    for text in (b"a = ", b"\xff\xfe"):
        (out / "run.toml").write_bytes(text)
        with pytest.raises(InputError, match="cannot be read as the settings of a run"):
            begin(out)
    with pytest.raises(InputError, match="There is no file"):
        read_settings(out / "none.toml")


# How far did it get?


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", "\xff"])
def test_summary_that_cannot_be_read_is_that_of_an_unfinished_run(out, damage):
    out.mkdir()
    (out / "summary.json").write_bytes(damage.encode("latin-1"))
    assert status_of(out) == UNFINISHED


def test_only_a_finished_run_is_complete(out):
    assert not is_complete(out, SETTINGS)
    begin(out)
    assert not is_complete(out, SETTINGS)
    finish(out, FAILED)
    assert not is_complete(out, SETTINGS)
    finish(out)
    assert is_complete(out, SETTINGS)


def test_finished_run_without_all_of_its_results_is_not_complete(out):
    begin(out)
    finish(out)
    for name in ("r_indices.csv", "people.csv"):
        (out / name).unlink()
    with pytest.raises(
        InputError, match=r"2 of its results are no longer there: r_indices\.csv, people\.csv\.\n.*overwrite"
    ):
        is_complete(out, SETTINGS)


def test_finished_run_stays_complete_on_another_machine(out):
    """Only a run that goes on there could mix bits of two machines."""
    begin(out)
    elsewhere = altered(versions={"jax": "0.9.0"}, device={"platform": "gpu"})
    with pytest.raises(InputError, match="holds another run"):
        is_complete(out, elsewhere)
    finish(out)
    assert is_complete(out, elsewhere)
    with pytest.raises(InputError, match=r"preset: fast then, paper now"):
        is_complete(out, elsewhere.model_copy(update={"training": SearchSettings(preset="paper")}))


# Who is at work in it?

HOLD = """
import sys
from pathlib import Path
from rindices.record import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(out):
    """Let another process hold the folder; it ends at the latest with the test."""
    command = [sys.executable, "-c", HOLD, str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_second_process_is_refused_and_told_who_holds_the_folder(out):
    with another_process(out) as process:
        with pytest.raises(InputError) as error:
            begin(out)
        assert f"Another process ({process.pid} on {platform.node()}, since 20" in str(error.value)
        assert not (out / "run.toml").exists()
        process.stdin.close()
        process.wait(600)
        assert process.returncode == 0
        assert not begin(out)


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_lock_of_a_killed_process_is_recovered(out):
    with another_process(out) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(600)
    assert (out / "journal" / "lock").exists()
    holder = out / "journal" / "holder.txt"
    assert holder.read_text().startswith(f"{process.pid} on ")
    with locked(out):
        assert holder.read_text().startswith(f"{os.getpid()} on ")


def test_same_process_cannot_hold_a_folder_twice(out):
    with locked(out):
        (out / "journal" / "holder.txt").unlink()
        with pytest.raises(InputError, match=rf"Another process \(unknown\) is at work in {out}"), locked(out):
            pass
    with locked(out):
        pass


def test_folder_is_given_back_after_an_error(out):
    with pytest.raises(RuntimeError), held(out, SETTINGS):
        raise RuntimeError
    assert begin(out)


def test_run_that_never_began_leaves_nothing(out):
    begin(out)
    discard(out)
    assert not out.exists()
    begin(out)
    (out / "thesis.docx").write_text("mine")
    discard(out)
    assert [path.name for path in out.iterdir()] == ["thesis.docx"]


def test_finished_run_needs_no_journal(out):
    begin(out)
    finish(out)
    discard(out, only_journal=True)
    assert not (out / "journal").exists()
    assert status_of(out) == DONE
