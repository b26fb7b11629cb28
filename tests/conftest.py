"""Small cohorts and settings that the tests share, all of one shape so that few programs are compiled."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rindices.cli.console_and_exits import set_output
from rindices.core import devices
from rindices.core.train import TrainingPeople
from rindices.presets import Schedule, fast

devices.prepare()  # before anything computes with JAX

N_REGIONS, N_PATTERNS, BATCH_SIZE = 12, 3, 8


def pytest_configure(config):
    """Ignore compilation-cache warnings when another process is writing the program, as happens outside of tests."""
    config.addinivalue_line("filterwarnings", f"ignore:{devices.CACHE_WARNING}:UserWarning")


@pytest.fixture(autouse=True)
def _usual_output():
    """Restore the usual output after each test, which a command may have switched to JSON or silence."""
    yield
    set_output()


@pytest.fixture(scope="session")
def small_truth():
    """Severities of the 40 patients of `small_people`."""
    return np.random.default_rng(1).uniform(size=(40, N_PATTERNS))


@pytest.fixture(scope="session")
def small_people(small_truth):
    """40 controls and 40 patients, scaled; each of three patterns shrinks four of twelve regions."""
    controls, before = 1 + 0.1 * np.random.default_rng(0).standard_normal((2, 40, N_REGIONS))
    patterns = np.repeat(np.eye(N_PATTERNS), N_REGIONS // N_PATTERNS, axis=1)
    methods = dict.fromkeys(range(1, N_PATTERNS + 1), "ica")
    return TrainingPeople(controls, before - 0.4 * small_truth @ patterns, methods=methods)


@pytest.fixture(scope="session")
def small_table(small_people):
    """Regions of `small_people` as a table in mm³, controls first."""
    volumes = 5000 * np.concatenate([small_people.controls, small_people.patients])
    return pd.DataFrame(volumes, columns=[f"region{i}" for i in range(N_REGIONS)])


@pytest.fixture(scope="session")
def small_labels(small_people):
    """0 for the controls, 1 for the patients of `small_table`."""
    return np.repeat([0, 1], [len(small_people.controls), len(small_people.patients)])


@pytest.fixture(scope="session")
def quick_preset():
    """Return a short `fast` for tests of everything around training: batches of 8, checkpoints at steps 20 and 40."""
    return replace(fast(), schedule=Schedule(BATCH_SIZE, 20, 40, checkpoint_every=20, whitening=0.0))
