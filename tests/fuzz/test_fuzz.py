"""A small sample of the cases; ``python -m tests.fuzz`` runs all of them, in processes with bounds."""

import os
import time
from itertools import chain

import numpy as np
import pandas as pd
import pytest

from rindices.cohort.cells import with_numbers
from tests.fuzz import TARGETS
from tests.fuzz.engine import Case, Failure, attempt, outcomes
from tests.fuzz.grids import compare, draw_grid

SAMPLES = {"tables": 60, "models": 120, "checkpoints": 150}


@pytest.fixture(scope="module")
def targets():
    return {name: make() for name, make in TARGETS.items()}


@pytest.mark.filterwarnings("default::RuntimeWarning")  # forged numbers may overflow
@pytest.mark.parametrize("name", list(TARGETS))
def test_a_sample_of_the_cases(targets, tmp_path, name):
    target, number = targets[name], SAMPLES[name]
    systematic = range(0, target.n_systematic, 1 + target.n_systematic // number)
    drawn = range(target.n_systematic, target.n_systematic + number)
    verdicts = set()
    for place in chain(systematic, drawn):
        outcome = attempt(target, 0, place, tmp_path)
        assert not outcome.trouble, f"{name}, seed 0, case {place}: {outcome.mutations}\n{outcome.trouble}"
        verdicts.add(outcome.verdict)
    assert verdicts == {"read", "refused"}


@pytest.mark.parametrize("name", list(TARGETS))
def test_a_case_follows_from_its_number(targets, name):
    target = targets[name]
    for number in range(target.n_systematic, target.n_systematic + 20):
        first, second = (target.make(number, np.random.default_rng([0, number])) for _ in range(2))
        assert (first.content, first.mutations) == (second.content, second.mutations)


def test_a_changed_value_is_noticed():
    grid = draw_grid(np.random.default_rng(0))
    frame = with_numbers(pd.DataFrame(grid.rows, columns=grid.header), ("participant_id", "diagnosis"))
    compare(grid, frame)
    frame.loc[7, "lHip"] = np.nextafter(frame.loc[7, "lHip"], 0)
    with pytest.raises(Failure, match="column lHip"):
        compare(grid, frame)


class Faulty:
    """A reader that fails in every way that there is."""

    n_systematic = 0

    def make(self, number, rng):
        return Case("file", bytes([number]), (f"mutation {number}",))

    def judge(self, case, path):
        number = path.read_bytes()[0]
        if number == 1:
            raise KeyError("an exception")
        if number == 2:
            bytearray(1 << 33)
        if number == 3:
            os._exit(1)
        if number == 4:
            begun = time.process_time()
            while time.process_time() < begun + 5.2:
                pass
        return "read"


@pytest.mark.slow
def test_every_way_to_fail_is_told_and_kept(tmp_path):
    found = list(outcomes(Faulty, 0, range(6), tmp_path))
    assert [one.verdict for one in found] == ["read", "failed", "failed", "failed", "failed", "read"]
    for outcome, word in zip(found[1:5], ("KeyError", "MemoryError", "died", "took 5"), strict=True):
        assert word in outcome.trouble
        assert (tmp_path / f"0-{outcome.number}-file").read_bytes() == bytes([outcome.number])
        assert word in (tmp_path / f"0-{outcome.number}.txt").read_text()
