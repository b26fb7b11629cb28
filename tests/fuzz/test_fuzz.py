"""A small sample of the cases; ``make fuzz`` runs all of them, with bounds of time and memory."""

import os
from itertools import chain
from pathlib import Path

import pytest

from tests.fuzz.engine import attempt
from tests.fuzz.models import Checkpoints, Models
from tests.fuzz.tables import Tables

SEED, CASES = int(os.environ.get("RINDICES_FUZZ_SEED", 0)), int(os.environ.get("RINDICES_FUZZ", 0))


@pytest.mark.filterwarnings("ignore::rindices.problems.OutsideTraining")  # from forged ranges
@pytest.mark.filterwarnings("default::RuntimeWarning")  # forged numbers may overflow
@pytest.mark.parametrize(("kind", "sample"), [(Tables, 60), (Models, 120), (Checkpoints, 150)])
def test_files_are_read_or_refused(tmp_path, kind, sample):
    folder, target = Path("fuzz-failures") if CASES else tmp_path, kind()
    folder.mkdir(exist_ok=True)
    systematic = range(0, target.n_systematic, 1 if CASES else 1 + target.n_systematic // sample)
    numbers = chain(systematic, range(target.n_systematic, target.n_systematic + (CASES or sample)))
    found = [attempt(target, SEED, number, folder, bounded=CASES > 0) for number in numbers]
    assert not any(trouble for _, trouble in found), "\n".join(trouble for _, trouble in found if trouble)
    assert {verdict for verdict, _ in found} == {"read", "refused"}
