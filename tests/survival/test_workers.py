"""Processes of ours end with the command, however it ends, and clusters of two runs do not disturb each other."""

import psutil
import pytest

from tests.survival.conftest import PATIENCE, assert_same, ended, until

WHERE = [("--workers", "2"), ("--dask", "local", "--workers", "2")]


@pytest.mark.slow
@pytest.mark.parametrize("trains", [False, True], ids=["starting", "training"])
@pytest.mark.parametrize("where", WHERE, ids=["processes", "dask"])
def test_a_killed_command_takes_its_processes_along(start, tmp_path, where, trains):
    out, process = tmp_path / "run", start("--no-report", *where)
    command, children = psutil.Process(process.pid), []

    def begun():
        children[:] = command.children(recursive=True)
        return bool(list(out.glob("journal/data-*"))) if trains else len(children) >= 2

    until(begun, process)
    process.kill()
    process.communicate()
    assert len(children) >= 2
    _, alive = psutil.wait_procs(children, timeout=PATIENCE / 4)  # joblib's own processes would stay for five minutes
    assert not alive


@pytest.mark.slow
def test_clusters_of_two_runs_at_the_same_time(start, tmp_path, undisturbed):
    runs = [start("--no-report", *WHERE[1], out=name) for name in ("one", "two")]
    assert [ended(process)[::2] for process in runs] == [(0, ""), (0, "")]
    for name in ("one", "two"):
        assert_same(tmp_path / name, undisturbed)
