"""A run that is killed goes on when its command is repeated, and ends with the same bits."""

import signal
import time

import numpy as np
import pytest

from tests.survival.conftest import (
    FINISHED,
    UNFINISHED,
    assert_kept,
    assert_same,
    ended,
    finished_chunks,
    held,
    is_done,
)


def kill(process):
    """Kill a process; return whether it was still there."""
    killed = process.poll() is None
    process.kill()
    process.communicate()
    return killed


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(start, tmp_path, undisturbed):
    out = tmp_path / "run"
    assert kill(held(start("--no-report", hold=(UNFINISHED, 1))))
    assert list(out.glob(f"journal/*{UNFINISHED}"))
    assert kill(held(start("--no-report", hold=(FINISHED, 1))))
    chunks = finished_chunks(out)
    assert chunks
    process = held(start("--no-report", "--quiet", hold=(FINISHED, 1)))  # the lock was there, but nobody held it
    assert len(finished_chunks(out)) > len(chunks)
    assert_kept(chunks, finished_chunks(out))
    process.send_signal(signal.SIGCONT)
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
