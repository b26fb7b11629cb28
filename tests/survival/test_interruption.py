"""A run that is killed, stopped or damaged resumes when its command is repeated, with bit-identical results.

Also: one run per folder, whose status never claims more than is there; failing writes; runs repeated from their record.
"""

import builtins
import errno
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rindices import files
from rindices.core import devices
from rindices.record import worker_of
from rindices.training import execution
from rindices.training.chunks import train_chunk
from tests.pages.page import missing
from tests.pages.server.conftest import TOKEN, client_of  # noqa: F401 (a fixture)
from tests.pages.server.test_pages import watched
from tests.survival.conftest import (
    COMMAND,
    FINISHED,
    PATIENCE,
    UNFINISHED,
    assert_kept,
    assert_same,
    contents,
    ended,
    finished_chunks,
    fit,
    held,
    kill,
    results,
    send,
    status,
    until,
)

TRAINING = (UNFINISHED, 1)  # where a run suspends itself, so that it cannot end before its signal


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(start, out, undisturbed):
    assert kill(held(start("--no-report", hold=TRAINING)))
    assert list(out.glob(f"journal/*{UNFINISHED}"))
    assert kill(held(start("--no-report", hold=(FINISHED, 1))))
    chunks = finished_chunks(out)
    assert chunks
    process = held(start("--no-report", "--quiet", hold=(FINISHED, 1)))  # a lock file was left, but no process held it
    assert len(assert_kept(chunks, out)) > len(chunks)
    assert send(process, signal.SIGCONT) == (0, "", "")
    assert_same(out, undisturbed)
    assert not (out / "journal").exists()


def test_damaged_files_are_trained_again_and_named(start, out, undisturbed):
    assert send(held(start("--no-report", hold=(FINISHED, 2))), signal.SIGTERM)[0] == 143
    cut, flipped, *_ = sorted((out / "journal").glob("*.safetensors"))
    for path in (cut, out / "summary.json", *out.glob("journal/*.unfinished"), out / "journal" / "plan.json"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    contents = bytearray(flipped.read_bytes())
    contents[-5] ^= 1
    flipped.write_bytes(contents)
    code, said, _ = ended(start("--no-report"))
    assert code == 0
    assert_same(out, undisturbed)
    sentences = [
        f"The models stored in {path.name} were damaged, so they were trained again." for path in (cut, flipped)
    ]
    assert not missing(said, *sentences) + missing((out / "summary.json").read_text(), *sentences)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_at_once(start, out, number, code):
    found, _, err = send(held(start(hold=TRAINING)), number)
    assert (found, "To resume, run the same command again" in err, "Traceback" in err) == (code, True, False)
    assert (status(out), (out / "report.html").exists()) == ("unfinished", False)


@pytest.mark.parametrize(
    "seconds", [pytest.param(0.0, marks=pytest.mark.slow), 1.0, pytest.param(2.0, marks=pytest.mark.slow)]
)
def test_ctrl_c_is_obeyed_while_programs_are_loaded_and_compiled(start, seconds):
    """However far the run has got: from its first line of output, when our handler is installed, until it trains."""
    process = start(hold=TRAINING)
    assert process.stdout.readline().startswith("Read ")
    time.sleep(seconds)
    code, _, err = send(process, signal.SIGINT)
    assert (code, "Stopped" in err, "Traceback" in err) == (130, True, False)


DROPPED = """
class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

@exits.guarded
def command():
    Dropped()
    exits.interruptible(lambda _: time.sleep(3600), "Go on.")
"""
# As some C++ libraries do; others end the process with a message of their own.
MADE_ANOTHER_ERROR = """
@exits.guarded
def command():
    import odd
"""
ODD = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
except BaseException:
    pass
raise ImportError("initialisation failed")
"""


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (DROPPED, "Stopped before the run was finished. Go on."),
        (MADE_ANOTHER_ERROR, "Stopped before the results were complete, so no results were written."),
    ],
    ids=["dropped by Python", "made another error by a library"],
)
def test_ctrl_c_is_obeyed_even_where_it_gets_lost(program, told, tmp_path):
    (tmp_path / "odd.py").write_text(ODD)
    begin = "import os, signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # as in command.py
    line = [sys.executable, "-c", f"{begin}from rindices.cli import console_and_exits as exits\n{program}\ncommand()"]
    process = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path)
    assert (process.returncode, process.stderr.splitlines()[-1], "Traceback" in process.stderr) == (130, told, False)


# Cluster workers come and go; our own processes end with the command, however it ends


PROCESSES, LOCAL = ("--workers", "2"), ("--dask", "local", "--workers", "2")


@pytest.fixture
def cluster(tmp_path_factory):
    """Start a scheduler and two single-threaded workers on the loopback address; yield the address and processes."""
    folder = tmp_path_factory.mktemp("cluster")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    worker = ("dask_worker", address, "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--preload", str(COMMAND))
    processes = []
    for program, *options in (("dask_scheduler", "--host", "127.0.0.1", "--port", port), worker, worker):
        line = [sys.executable, "-m", f"distributed.cli.{program}", *options, "--no-dashboard"]
        with (folder / "log").open("a") as log:
            processes.append(subprocess.Popen(line, cwd=folder, stdout=log, stderr=log))
    yield address, processes
    for process in processes:
        kill(process)


@pytest.fixture
def begin(start, tmp_path):
    """Return a function that starts a run and waits for its first chunk: process, run folder, finished chunks."""

    def begin(*where):
        process, out = start("--no-report", *where), tmp_path / "run"
        until(lambda: finished_chunks(out), process)
        return process, out, finished_chunks(out)

    return begin


def test_a_killed_worker_changes_nothing(begin, undisturbed, cluster):
    address, (_, worker, _) = cluster
    process, out, chunks = begin("--dask", address)
    kill(worker)
    until(lambda: len(finished_chunks(out)) > len(chunks), process)
    assert_kept(chunks, out)
    assert ended(process)[::2] == (0, "")
    assert_same(out, undisturbed)


@pytest.mark.parametrize("where", [pytest.param(PROCESSES, marks=pytest.mark.slow), LOCAL], ids=["processes", "dask"])
def test_our_own_processes_give_the_same_and_listen_to_nobody_else(begin, undisturbed, where):
    process, out, _ = begin(*where)
    ours = psutil.Process(process.pid)
    assert {
        connection.laddr.ip
        for one in (ours, *ours.children(recursive=True))
        for connection in one.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    } == ({"127.0.0.1"} if where == LOCAL else set())
    assert ended(process)[::2] == (0, "")
    assert_same(out, undisturbed)


def children_of(process):
    found = psutil.Process(process.pid).children(recursive=True)
    return found if len(found) >= 2 else []


@pytest.mark.slow
@pytest.mark.parametrize("when", ["killed while starting", "killed while training", "stopped while training"])
@pytest.mark.parametrize("where", [PROCESSES, LOCAL], ids=["processes", "dask"])
def test_a_command_takes_its_processes_along(start, tmp_path, where, when):
    process, trains = start("--no-report", *where, alone=True), when.endswith("training")
    until(lambda: list(tmp_path.glob("run/journal/data-*")) if trains else children_of(process), process)
    children = children_of(process)
    if when.startswith("stopped"):
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    else:
        kill(process)
    assert children
    # joblib's default workers would linger for five minutes.
    assert not psutil.wait_procs(children, timeout=PATIENCE / 4)[1]


# Failing writes, and the state in which they leave a folder


RESULTS = ("model.safetensors", "r_indices.csv", "patterns.csv", "selection.csv", "r_indices.png", "report.html")
KINDS = ("data-*.safetensors", "data-*.unfinished", "plan.json", "run.toml", "summary.json", "holder.txt", *RESULTS)
ERRORS, ALWAYS = {"full": errno.ENOSPC, "broken": errno.EIO, "forbidden": errno.EACCES}, 1_000_000


class Fault:
    """Makes writes to one kind of file fail on opening, on flushing or on renaming."""

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
    """Check that exit code, last line, status and report agree."""
    last = outcome.output.splitlines()[-1]
    page = (out / "report.html").read_text(encoding="utf-8") if (out / "report.html").exists() else ""
    assert "Traceback" not in outcome.output
    if outcome.exit_code == 0:
        assert (status(out), last.split()[0] in ("Done", "Already"), "This run failed" in page) == ("done", True, False)
        assert all((out / name).exists() for name in RESULTS)
    else:
        full = os.strerror(errno.ENOSPC) in outcome.output
        told = f"Failed. Free up space on the disk that holds {out}" if full else "Failed. Once this is fixed, "
        code = 2 if full else 3
        assert (outcome.exit_code, last[: len(told)]) == (code, told)
        assert (status(out) != "done", not page or "This run failed" in page) == (True, True)
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
def test_any_fault_of_any_write(table, out, faultless, kind, stage, number, times):
    with pytest.MonkeyPatch.context() as monkeypatch:
        fault, outcome = Fault(monkeypatch, kind, stage, number, times), fit(table, "--out", out)
    assert fault.left < times, "nothing failed"
    check_agreement(outcome, out)
    if outcome.exit_code == 0:
        assert_same(out, results(faultless))
    again = fit(table, "--out", out)
    check_agreement(again, out)
    assert again.exit_code == 0
    assert_same(out, results(faultless))
    assert not list(out.rglob("*.partial"))


class Killed(Exception):
    """The process would have been killed here."""


class Kill:
    """Takes a snapshot of a run folder before one of the changes of its files; the command then ends as it may.

    Changes are counted: renaming a complete file into place is one, removing a file another. Of a file that is being
    written, half reaches the disk.
    """

    def __init__(self, monkeypatch, folder, moment):
        self.folder, self.left, self.happened = folder, moment, False
        self.snapshot = folder.with_name("snapshot")
        monkeypatch.setattr(os, "unlink", self._watched(os.unlink))
        monkeypatch.setattr(Path, "replace", self._watched(Path.replace))

    def _watched(self, function):
        def changed(path, *args, **kwargs):
            # When a whole folder is removed, files are named relative to it.
            if "dir_fd" in kwargs or (self.folder in (Path(path), *Path(path).parents) and Path(path).exists()):
                self.left -= 1
                if self.left < 0 and not self.happened:  # any later change comes after the process would have died
                    self._strike(Path(path), writes=bool(args))
            return function(path, *args, **kwargs)

        return changed

    def _strike(self, path, writes):
        self.happened = True
        shutil.copytree(self.folder, self.snapshot)
        if writes and path.suffix == ".partial":  # other files are complete and merely move
            half = self.snapshot / path.relative_to(self.folder)
            os.truncate(half, half.stat().st_size // 2)
        raise Killed

    def bury(self):
        """Put the folder back as the kill left it."""
        if self.happened:
            shutil.rmtree(self.folder)
            self.snapshot.rename(self.folder)


def tables_and_models(folder):
    """Return the results of a run as bytes on disk, leaving out the journal."""
    kept = {name: text for name, text in contents(folder).items() if name.suffix in (".csv", ".safetensors")}
    return {name: text for name, text in kept.items() if name.parts[0] != "journal"}


# A run makes nearly this many changes (the last moments lie beyond its end); moments 3 to 9 are during training.
MOMENTS = [pytest.param(moment, marks=() if moment in (4, 8) else pytest.mark.slow) for moment in range(46)]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("again", [False, True], ids=["first", "overwritten"])
def test_a_run_killed_at_any_moment_leaves_whole_files_and_goes_on(
    table, tmp_path, monkeypatch, faultless, moment, again
):
    monkeypatch.setattr(devices, "n_cores", lambda: 1)  # so that the order of changes is reproducible
    out, line, whole = tmp_path / "run", (table, "--out", tmp_path / "run", "--no-report"), tables_and_models(faultless)
    if again:
        assert fit(*line).exit_code == 0
    with monkeypatch.context() as patch:
        kill, outcome = Kill(patch, out, moment), fit(*line, *["--overwrite"] * again)
    assert kill.happened or outcome.exit_code == 0, outcome.output
    kill.bury()
    found = tables_and_models(out)
    assert found == {name: whole[name] for name in found}
    lost = whole.keys() - found.keys()  # models may still be in the journal
    assert status(out) != "done" or all((out / "journal" / name.name).is_file() for name in lost)
    assert fit(*line).exit_code == 0
    assert (status(out), tables_and_models(out)) == ("done", whole)
    assert not [path for path in tmp_path.rglob("*") if path.name == "journal" or path.suffix == ".partial"]


def test_a_second_process_is_refused_and_the_first_unharmed(start, tmp_path, undisturbed):
    first = held(start("--no-report", hold=(FINISHED, 1)))  # so that it cannot end before the others start
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
        assert (outcome.exit_code, "--repetitions 2 before, 4 now" in outcome.output) == (2, True)
    assert (fit(table, "--out", out, "--no-report", *MORE).exit_code, len(trained)) == (0, len(set(trained)))
    assert (fit(table, "--out", one_go, "--no-report", *MORE).exit_code, len(trained)) == (0, 2 * len(set(trained)))
    assert_same(out, results(one_go))


# Training started from the browser page: watched, killed and resumed (stopping it is tested in tests/pages)


def test_training_survives_being_killed(client_of, table, tmp_path, undisturbed, monkeypatch):  # noqa: F811
    folder, run = tmp_path / "study", tmp_path / "study" / "run"
    folder.mkdir()
    shutil.copy(table, folder)
    client = client_of(folder, (sys.executable, str(COMMAND)))
    client.get("/enter", params={"token": TOKEN})
    monkeypatch.setenv("RINDICES_HOLD", ".safetensors 1")
    asked = {"table": table.name, "chosen": "yes", "patterns": "2-3", "repetitions": "4", "out": "run"}
    client.post("/train", params=asked, follow_redirects=False)
    until(lambda: worker_of(run) and finished_chunks(run))
    os.kill(worker_of(run), signal.SIGKILL)
    until(lambda: worker_of(run) is None)
    assert "This run is not finished" in client.get("/run?run=run").text

    monkeypatch.delenv("RINDICES_HOLD")
    client.post("/continue?run=run", follow_redirects=False)
    assert 'class="verdict' in watched(client, "run")[-1]
    assert_same(run, undisturbed)
