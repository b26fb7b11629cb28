"""One run a folder, which says no more than is there; writes that fail, and a run made again from its record."""

import builtins
import errno
import io
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from rindices import files
from rindices.core import devices
from rindices.record import worker_of
from rindices.training import execution
from rindices.training.chunks import train_chunk
from tests.pages.server.conftest import TOKEN, client_of  # noqa: F401 (a fixture)
from tests.pages.server.test_pages import watched
from tests.survival.conftest import (
    COMMAND,
    FINISHED,
    PATIENCE,
    assert_same,
    contents,
    ended,
    finished_chunks,
    fit,
    held,
    results,
    send,
    shortened,
    status,
)

RESULTS = ("model.safetensors", "r_indices.csv", "patterns.csv", "selection.csv", "r_indices.png", "report.html")
KINDS = ("data-*.safetensors", "data-*.unfinished", "plan.json", "run.toml", "summary.json", "holder.txt", *RESULTS)
ERRORS, ALWAYS = {"full": errno.ENOSPC, "broken": errno.EIO, "forbidden": errno.EACCES}, 1_000_000


class Fault:
    """Makes writes of files of one kind fail when they are opened, when they are flushed, or when they are renamed."""

    def __init__(self, monkeypatch, kind, stage, number, times):
        self.kind, self.stage, self.number, self.left = kind, stage, number, times
        for module in (builtins, io):
            monkeypatch.setattr(module, "open", self._before(module.open, "open", self._writes))
        monkeypatch.setattr(files, "_flush", self._before(files._flush, "flush", self._half))
        monkeypatch.setattr(Path, "replace", self._before(Path.replace, "rename", lambda *_: True))

    def _before(self, function, stage, condition):
        def faulty(path, *args, **kwargs):
            if self.left and stage == self.stage and self._is_ours(path) and condition(path, *args, **kwargs):
                self.left -= 1
                raise OSError(self.number, os.strerror(self.number), str(path))
            return function(path, *args, **kwargs)

        return faulty

    def _is_ours(self, path):
        return isinstance(path, str | Path) and Path(Path(path).name.removeprefix(".")).match(f"{self.kind}*.partial")

    @staticmethod
    def _writes(path, mode="r", *_, **__):
        return any(letter in mode for letter in "wax+")

    @staticmethod
    def _half(path):
        os.truncate(path, path.stat().st_size // 2)
        return True


def check_agreement(outcome, out):
    """Exit code, last line, status and report say the same."""
    last = outcome.output.splitlines()[-1]
    page = (out / "report.html").read_text(encoding="utf-8") if (out / "report.html").exists() else ""
    assert "Traceback" not in outcome.output
    assert isinstance(outcome.exception, SystemExit | None)
    if outcome.exit_code == 0:
        assert (status(out), last[:5]) == ("done", "Done ")
        assert all((out / name).exists() for name in RESULTS)
        assert "This run failed" not in page
    else:
        full = os.strerror(errno.ENOSPC) in outcome.output
        expected = (
            (2, f"Failed. Free space on the disk of {out}") if full else (3, "Failed. Once this is fixed, repeat")
        )
        assert (outcome.exit_code, last[: len(expected[1])]) == expected
        assert status(out) in ("failed", "unfinished", None)
        assert not page or "This run failed" in page
        assert any(os.strerror(number) in outcome.output for number in ERRORS.values())


FAULTS = [
    pytest.param(
        kind, stage, number, times, id=f"{kind}-{stage}-{name}-{times}", marks=() if quick else pytest.mark.slow
    )
    for kind in KINDS
    for stage in (("open", "rename") if kind == "r_indices.png" else ("open", "rename", "flush"))  # it is not flushed
    for name, number in ERRORS.items()
    for times in (1, ALWAYS)
    for quick in [number == errno.ENOSPC and times == ALWAYS and stage == ("rename" if ".png" in kind else "flush")]
]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("kind", "stage", "number", "times"), FAULTS)
def test_any_fault_of_any_write(table, tmp_path, faultless, kind, stage, number, times):
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as monkeypatch:
        fault, outcome = Fault(monkeypatch, kind, stage, number, times), fit(table, "--out", out)
    assert fault.left < times, "nothing failed"
    check_agreement(outcome, out)
    if outcome.exit_code == 0:
        assert_same(out, faultless)
    again = fit(table, "--out", out)
    check_agreement(again, out)
    assert again.exit_code == 0
    assert_same(out, faultless)
    assert not list(out.rglob("*.partial"))


@pytest.mark.usefixtures("short")
def test_what_was_trained_is_kept_when_the_folder_becomes_read_only(table, tmp_path, faultless, monkeypatch):
    out = tmp_path / "run"

    def access(path, mode, access=os.access):
        return not list(out.glob("journal/data-*.safetensors")) and access(path, mode)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "access", access)
        outcome = fit(table, "--out", out)
    assert (outcome.exit_code, "is not writable" in outcome.output, status(out)) == (2, True, "unfinished")
    assert list(out.glob("journal/data-*.safetensors"))  # the other one may have been on its way
    assert fit(table, "--out", out).exit_code == 0
    assert_same(out, faultless)


class Killed(Exception):
    """The process would be gone by now."""


class Kill:
    """Keeps a run folder as it was before one of the changes of its files, and lets the command end as it may.

    Changes are counted: a file that is written is renamed when it is whole, which is one; a file that is removed is
    another. A file that is being written reaches the disk in half.
    """

    def __init__(self, monkeypatch, folder, moment):
        self.folder, self.left, self.happened = folder, moment, False
        self.snapshot = folder.with_name("snapshot")
        monkeypatch.setattr(os, "unlink", self._watched(os.unlink))
        monkeypatch.setattr(Path, "replace", self._watched(Path.replace))

    def _watched(self, function):
        def changed(path, *args, **kwargs):
            # Within a folder that is removed as a whole, files are named without it.
            if "dir_fd" in kwargs or (self.folder in (Path(path), *Path(path).parents) and Path(path).exists()):
                self.left -= 1
                if self.left < 0 and not self.happened:  # later changes are those of a process that is no more
                    self._strike(Path(path), writes=bool(args))
            return function(path, *args, **kwargs)

        return changed

    def _strike(self, path, writes):
        self.happened = True
        shutil.copytree(self.folder, self.snapshot)
        if writes and path.suffix == ".partial":  # others are whole, and only get another place
            half = self.snapshot / path.relative_to(self.folder)
            os.truncate(half, half.stat().st_size // 2)
        raise Killed

    def bury(self):
        """Put the folder back as the kill left it."""
        if self.happened:
            shutil.rmtree(self.folder)
            self.snapshot.rename(self.folder)


def tables_and_models(folder):
    """Return the results of a run as they are on disk; a journal is no result."""
    kept = {name: text for name, text in contents(folder).items() if name.suffix in (".csv", ".safetensors")}
    return {name: text for name, text in kept.items() if name.parts[0] != "journal"}


@pytest.fixture(scope="module")
def whole(table, tmp_path_factory):
    """Return the tables and models of a run that nothing happened to, with all cores: they change nothing."""
    out = tmp_path_factory.mktemp("whole") / "run"
    with shortened():
        assert fit(table, "--out", out, "--no-report").exit_code == 0
    return tables_and_models(out)


# A run has nearly so many moments, the last are beyond its end; in those from 3 to 9 it trains.
MOMENTS = [pytest.param(moment, marks=() if moment in (4, 8) else pytest.mark.slow) for moment in range(46)]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("again", [False, True], ids=["first", "overwritten"])
def test_a_run_killed_at_any_moment_leaves_whole_files_and_goes_on(table, tmp_path, monkeypatch, whole, moment, again):
    monkeypatch.setattr(devices, "n_cores", lambda: 1)  # so that a moment is always the same
    out, line = tmp_path / "run", (table, "--out", tmp_path / "run", "--no-report")
    if again:
        assert fit(*line).exit_code == 0
    with monkeypatch.context() as patch:
        kill, outcome = Kill(patch, out, moment), fit(*line, *["--overwrite"] * again)
    assert kill.happened or outcome.exit_code == 0, outcome.output
    kill.bury()
    found = tables_and_models(out)
    assert found == {name: whole[name] for name in found}
    lost = whole.keys() - found.keys()  # models may still lie in the journal
    assert status(out) != "done" or all((out / "journal" / name.name).is_file() for name in lost)
    assert fit(*line).exit_code == 0
    assert (status(out), tables_and_models(out)) == ("done", whole)
    assert not [path for path in tmp_path.rglob("*") if path.name == "journal" or path.suffix == ".partial"]


def test_a_second_process_is_refused_and_the_first_unharmed(start, tmp_path, undisturbed):
    first = held(start("--no-report", hold=(FINISHED, 1)))  # so that it does not end before the others ask
    for options in ((), ("--overwrite",)):
        code, _, err = ended(start(*options))
        told = f"Another process ({first.pid} on {os.uname().nodename}, since 20" in err
        assert (code, told) == (2, True)
    assert send(first, signal.SIGCONT)[0] == 0
    assert_same(tmp_path / "run", undisturbed)


MORE = ("--patterns", "2-3", "--repetitions", 4)


@pytest.mark.usefixtures("short")
def test_more_of_a_finished_run_is_as_in_one_go(table, tmp_path, monkeypatch):
    trained = []

    def noted(chunk, *arguments, **options):
        trained.extend(chunk.members)
        return train_chunk(chunk, *arguments, **options)

    monkeypatch.setattr(execution, "train_chunk", noted)
    out, one_go = tmp_path / "run", tmp_path / "one"
    assert fit(table, "--out", out, "--no-report").exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        Fault(patch, "r_indices.csv", "flush", errno.ENOSPC, ALWAYS)
        outcome = fit(table, "--out", out, "--no-report", *MORE)
        assert (outcome.exit_code, "--repetitions 2 then, 4 now" in outcome.output) == (2, True)
    assert (fit(table, "--out", out, "--no-report", *MORE).exit_code, len(trained)) == (0, len(set(trained)))
    assert (fit(table, "--out", one_go, "--no-report", *MORE).exit_code, len(trained)) == (0, 2 * len(set(trained)))
    assert_same(out, results(one_go))
    cut = min((out / "trained").iterdir())
    os.truncate(cut, cut.stat().st_size // 2)
    outcome = fit(table, "--out", out, "--no-report", *MORE, "--exhaustive")
    assert outcome.exit_code == 0
    assert f"{cut.name} in the journal was damaged and has been retrained." in outcome.output
    assert len(list((out / "trained").iterdir())) == len(set(trained)) == 8


@pytest.mark.usefixtures("short")
def test_a_run_can_be_made_again_from_its_record_and_with_nothing_else(table, tmp_path, faultless):
    record, again, other = tmp_path / "run" / "run.toml", tmp_path / "again", tmp_path / "other.csv"
    assert fit(table, "--out", record.parent).exit_code == 0
    outcome = fit("--config", record, "--out", again, "--quiet")
    assert (outcome.exit_code, outcome.output) == (0, "")
    assert_same(again, faultless)
    other.write_text(table.read_text().replace(".", ".1", 1))
    for options, told in ((("--seed", 4), "--seed"), ((other,), "its contents differ")):
        outcome = fit(*options, "--config", record, "--out", tmp_path / "third")
        assert (outcome.exit_code, told in outcome.output) == (2, True)
    outcome = fit(other, "--out", record.parent)
    assert (outcome.exit_code, "  sha256: " in outcome.output) == (2, True)


@pytest.mark.usefixtures("short")
def test_lines_of_json(table, tmp_path):
    for options, ends, code in (((), "done", 0), (("--patterns", 3), "failed", 2)):
        outcome = fit(table, "--out", tmp_path / "run", "--log-json", *options)
        lines = [json.loads(line) for line in outcome.stdout.splitlines()]
        assert (outcome.exit_code, lines[-1]["status"], lines[-1]["exit_code"]) == (code, ends, code)
        assert code or {"table", "progress", "done"} <= {line["event"] for line in lines}


# A training that the page in the browser started: watched, killed, and gone on with; it is stopped in tests/pages


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    assert condition()


def test_training_survives_being_killed(client_of, table, tmp_path, undisturbed, monkeypatch):  # noqa: F811
    folder, run = tmp_path / "study", tmp_path / "study" / "run"
    folder.mkdir()
    shutil.copy(table, folder)
    client = client_of(folder, (sys.executable, str(COMMAND)))
    client.get("/enter", params={"token": TOKEN})
    monkeypatch.setenv("RINDICES_HOLD", ".safetensors 1")
    asked = {"table": table.name, "chosen": "yes", "patterns": "2-3", "repetitions": "4", "out": "run"}
    client.post("/train", params=asked, follow_redirects=False)
    wait_for(lambda: worker_of(run) and finished_chunks(run))
    os.kill(worker_of(run), signal.SIGKILL)
    wait_for(lambda: worker_of(run) is None)
    assert "This run is not finished" in client.get("/run?run=run").text
    assert finished_chunks(run)

    monkeypatch.delenv("RINDICES_HOLD")
    client.post("/continue?run=run", follow_redirects=False)
    seen = watched(client, "run")
    assert seen[-1]["state"] == "done"
    assert max(row["n_models"] for one in seen for row in one["agreed"]) >= 4  # so short ones are hardly ever sound
    assert_same(run, undisturbed)
    assert 'class="verdict' in client.get("/run?run=run").text
