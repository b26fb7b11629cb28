"""A run that is killed goes on when its command is repeated, and ends with the same bits."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from tests.survival.conftest import assert_kept, assert_same, ended, finished_chunks


def kill_again_and_again(start, out, moments):
    """Start the run and kill it after each of some seconds; return how many were killed before they ended."""
    chunks, killed = {}, 0
    for moment in moments:
        process = start("--no-report")
        time.sleep(moment)
        killed += process.poll() is None
        process.kill()
        process.communicate()
        status = json.loads((out / "summary.json").read_text())["status"] if (out / "summary.json").exists() else None
        if status == "done":
            return killed
        after = finished_chunks(out)
        assert_kept(chunks, after)
        chunks = after
    return killed


@pytest.mark.parametrize(
    "moments",
    [(5.0, 6.0), pytest.param(tuple(np.random.default_rng(0).uniform(0.5, 7.0, 20)), marks=pytest.mark.slow)],
    ids=["twice", "20 times"],
)
def test_a_killed_run_goes_on_and_ends_with_the_same_bits(start, tmp_path, undisturbed, moments):
    out = tmp_path / "run"
    assert kill_again_and_again(start, out, moments)
    assert (out / "journal" / "lock").exists()  # which nobody holds any more
    assert ended(start("--no-report", "--quiet")) == (0, "", "")
    assert_same(out, undisturbed)
    assert not (out / "journal").exists()


@pytest.mark.slow
def test_20_kills_at_random_moments_of_whichever_run_there_is(start, tmp_path, undisturbed):
    """Runs that end before their kill make room for another, so all parts of a run are hit, its end too."""
    random, killed, number = np.random.default_rng(1), 0, 0
    while killed < 20:
        out = tmp_path / f"run{number}"
        chunks = {}
        while killed < 20 and not _is_done(out):
            process = start("--no-report", out=out.name)
            time.sleep(random.uniform(2.0, 12.0))
            killed += process.poll() is None
            process.kill()
            process.communicate()
            if not _is_done(out):
                assert_kept(chunks, chunks := finished_chunks(out))
        assert ended(start("--no-report", out=out.name))[0] == 0
        assert_same(out, undisturbed)
        number += 1


def _is_done(out: Path) -> bool:
    path = out / "summary.json"
    return path.exists() and json.loads(path.read_text())["status"] == "done"
