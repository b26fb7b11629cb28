"""A small sample of the cases; ``python -m tests.fuzz`` runs all of them, in processes with bounds."""

from itertools import chain

import numpy as np
import pandas as pd
import pytest

from tests.fuzz import TARGETS
from tests.fuzz.engine import Failure, attempt
from tests.fuzz.tables import NUMBERS, compare, draw_grid

SAMPLES = {"tables": 60, "models": 120, "checkpoints": 150}


@pytest.mark.filterwarnings("ignore::rindices.problems.OutsideTraining")  # of forged ranges
@pytest.mark.filterwarnings("default::RuntimeWarning")  # forged numbers may overflow
@pytest.mark.parametrize("name", list(TARGETS))
def test_a_sample_of_the_cases(tmp_path, name):
    target, number = TARGETS[name](), SAMPLES[name]
    systematic = range(0, target.n_systematic, 1 + target.n_systematic // number)
    drawn = range(target.n_systematic, target.n_systematic + number)
    found = [attempt(target, 0, place, tmp_path) for place in chain(systematic, drawn)]
    assert [f"{name}, seed 0, case {one.number}: {one.trouble}" for one in found if one.trouble] == []
    assert {one.verdict for one in found} == {"read", "refused"}
    for place in drawn[:20]:  # a case follows from its number
        first, second = (target.make(place, np.random.default_rng([0, place])) for _ in range(2))
        assert (first.content, first.mutations) == (second.content, second.mutations)


def test_a_changed_value_is_noticed():
    grid = draw_grid(np.random.default_rng(0))
    frame = pd.DataFrame(grid.rows, columns=grid.header)
    frame = frame.astype({name: float for name in NUMBERS if name in frame})
    compare(grid, frame)
    frame.loc[7, "lHip"] = np.nextafter(frame.loc[7, "lHip"], 0)
    with pytest.raises(Failure, match="column lHip"):
        compare(grid, frame)
