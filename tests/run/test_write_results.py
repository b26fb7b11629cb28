"""What is written of a finished run."""

import pytest

from rindices.pages.report import make_report
from rindices.run.fit_table import carry_out
from rindices.run.plan import planned
from rindices.settings import ExecutionSettings, OutputSettings, SearchSettings, TableSettings
from rindices.simulate import simulate_cohort


@pytest.mark.parametrize("n_found", [1, 3])
@pytest.mark.filterwarnings("ignore:Only .* controls and .* patients:UserWarning")
def test_patterns_are_compared_with_a_truth_of_another_number(tmp_path, n_found):
    cohort = simulate_cohort("basic", n_controls=40, n_patients=40, n_patterns=2, seed=0)
    regions = cohort.table.columns[4:20]
    cohort.save(tmp_path / "people.csv")
    search = SearchSettings(n_found, n_repetitions=2, preset="linear")
    plan = planned(
        tmp_path / "people.csv", tmp_path / "run", TableSettings(features=tuple(regions)), search, OutputSettings()
    )
    recovery = carry_out(plan, ExecutionSettings(), truth=cohort.truth).recovery
    assert recovery.n_known == 2
    n_compared = min(n_found, 2)
    assert len({*recovery.matched_truth}) == len({*recovery.matched_patterns}) == n_compared
    assert {*recovery.matched_patterns} <= {*range(1, n_found + 1)}
    page = make_report(tmp_path / "run").html
    assert f"The data contain 2 patterns and the run found {n_found}" in page
    for number, value in zip(recovery.matched_patterns, recovery.per_pattern, strict=True):
        assert f"pattern {number}: {value:.3f}" in page
