import importlib.util
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from rindices.judging.agreement import concordance

SCRIPT = Path(__file__).parents[2] / "experiments" / "scoring.py"


@pytest.fixture(scope="module")
def script():
    specification = importlib.util.spec_from_file_location("scoring", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("n_components", [3, 4])
def test_no_other_choice_of_components_and_signs_is_better(script, n_components):
    rng = np.random.default_rng(n_components)
    truth = rng.uniform(size=(30, 3))
    components = np.round(truth @ rng.standard_normal((3, n_components)) + rng.standard_normal((30, n_components)), 1)
    found = script.best_components(components, truth)

    def mean(order, signs):
        pairs = zip(truth.T, (components[:, list(order)] * signs).T, strict=True)
        return np.mean([concordance(severity, component) for severity, component in pairs])

    choices = product(permutations(range(n_components), 3), product((-1, 1), repeat=3))
    assert found.concordances.mean() == pytest.approx(max(mean(order, np.array(signs)) for order, signs in choices))
    assert found.concordances.mean() == pytest.approx(mean(found.order, found.signs))


def test_a_component_stands_for_one_severity_only(script):
    """The first component, and it turned around, would suit both severities."""
    severity = np.arange(20.0)
    truth = np.column_stack([severity, -severity])
    components = np.column_stack([severity, np.random.default_rng(0).uniform(size=20)])
    assert sorted(script.best_components(components, truth).order) == [0, 1]
