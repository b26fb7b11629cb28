"""A run that is killed goes on when its command is repeated, and ends with the same bits."""

import time

import numpy as np
import pytest

from tests.survival.conftest import assert_kept, assert_same, ended, finished_chunks, is_done, until


def kill(process):
    """Kill a process; return whether it was still there."""
    killed = process.poll() is None
    process.kill()
    process.communicate()
    return killed


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(start, tmp_path, undisturbed):
    out = tmp_path / "run"
    process = start("--no-report")
    until(lambda: list(out.glob("journal/*.unfinished")), process)
    assert kill(process)
    process = start("--no-report")
    until(lambda: finished_chunks(out), process)
    assert kill(process)
    chunks = finished_chunks(out)
    process = start("--no-report", "--quiet")  # the lock is still there, but nobody holds it
    until(lambda: len(finished_chunks(out)) > len(chunks), process)
    assert_kept(chunks, finished_chunks(out))
    assert ended(process) == (0, "", "")
    assert_same(out, undisturbed)
    assert not (out / "journal").exists()


@pytest.mark.slow
def test_20_kills_at_random_moments(start, tmp_path, undisturbed):
    """A run that ends before it is killed makes room for another: all parts of a run are hit, its end too."""
    random, killed, number = np.random.default_rng(1), 0, 0
    while killed < 20:
        out, chunks = tmp_path / f"run{number}", {}
        while killed < 20 and not is_done(out):
            process = start("--no-report", out=out.name)
            time.sleep(random.uniform(1.0, 10.0))
            killed += kill(process)
            if not is_done(out):
                after = finished_chunks(out)
                assert_kept(chunks, after)
                chunks = after
        assert ended(start("--no-report", out=out.name))[0] == 0
        assert_same(out, undisturbed)
        assert not (out / "journal").exists()
        number += 1
