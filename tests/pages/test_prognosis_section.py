import re

import numpy as np
import pandas as pd

from rindices.analysis import FollowUp, prognosis, survival_curves
from rindices.pages.report import make_report
from tests.pages.made_run import change_summary, make_run
from tests.pages.page import missing


def with_follow_up(folder, **told):
    """Make a run whose people were followed up."""
    make_run(folder, n_patterns=2)
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.uniform(size=(90, 2)), columns=["severity1", "severity2"])
    time = rng.exponential(np.exp(-2 * scores["severity1"].to_numpy()))
    follow_up = FollowUp(time, (time < 1).astype(float))
    (folder / "analysis").mkdir(exist_ok=True)
    table = prognosis(scores, follow_up, pd.DataFrame({"age": rng.normal(size=90)}), n_resamples=5)
    table.to_csv(folder / "analysis" / "prognosis.csv", index=False)
    survival_curves(scores, follow_up).to_csv(folder / "analysis" / "survival_curves.csv", index=False)
    change_summary(folder, follow_up={"time": "years", "event": "converted"} | told)
    return table


def test_report_has_hazard_ratios_and_curves(tmp_path):
    table, report = with_follow_up(tmp_path / "run"), make_report(tmp_path / "run")
    ratio = f"{table['hazard_ratio'][0]:.2f}"
    assert re.search(rf"Pattern 1: hazard ratio {ratio} \(95 % interval", report.html)
    assert "time: <code>years</code>" in report.html
    assert "cumulative incidence" not in report.html
    assert "follow_up" in [name for name, *_ in report.gallery.figures]


def test_competing_events_and_entry_are_said(tmp_path):
    with_follow_up(tmp_path / "run", competing="died", entry="came")
    page = make_report(tmp_path / "run").html
    assert missing(page, "Other events (died) end the observation", "with entry times") == []


def test_runs_without_follow_up_have_no_such_section(tmp_path):
    make_run(tmp_path / "run")
    assert "Follow-up and prognosis" not in make_report(tmp_path / "run").html
