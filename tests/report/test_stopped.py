"""The report of a run that failed or is not finished."""

import pytest

from rindices.report import write_report
from tests.report.made_run import CALIBRATED, change_summary, save_summary
from tests.report.page import POLICY, SCRIPT, report_of


def stop_run(folder, **summary):
    folder.mkdir()
    save_summary(folder, summary)
    return folder


@pytest.mark.parametrize(
    ("status", "headline"), [("failed", "This run failed"), ("unfinished", "This run is not finished")]
)
@pytest.mark.parametrize("complete", [False, True])
def test_stopped_run_shows_no_results(run, status, headline, complete):
    change_summary(run, status=status, failure="Out of memory.", warnings=["One region is constant."], null=CALIBRATED)
    if not complete:
        for name in ("r_indices.csv", "patterns.csv", "selection.csv"):
            (run / name).unlink()
    page = report_of(run)
    assert page.headings[:3] == [(1, "R-indices report"), (2, headline), (2, "Warnings")]
    assert "Out of memory." in page.words
    assert "repeat the same command. It goes on where it stopped." in page.words
    assert "One region is constant." in page.words
    assert 'command = "rindices fit volumes.csv"' in page.words
    assert "Patients60" in page.words.replace(" ", "")
    assert "jax0.7.0" in page.words.replace(" ", "")
    assert not page.every("img")
    for word in ("greement", "reproducible", "reliable", "Training steps", "each of 3", "0.95", "Quartiles"):
        assert word not in page.words, word


def test_stopped_run_with_almost_nothing_known(tmp_path):
    page = report_of(stop_run(tmp_path / "run", status="failed"))
    assert "Reason: it is not known." in page.words
    assert [text for _, text in page.headings] == ["R-indices report", "This run failed"]
    [policy] = [meta["content"] for meta in page.every("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy == POLICY


def test_stopped_run_with_hostile_text(tmp_path):
    folder = stop_run(tmp_path / "run", status="failed", failure=SCRIPT, warnings=[SCRIPT], source=SCRIPT)
    (folder / "run.toml").write_bytes(f"{SCRIPT}</code>".encode() + b"\xff")
    page = report_of(folder)
    assert not page.every("script")
    assert page.words.count(SCRIPT) == 4


def test_stopped_run_replaces_an_older_report(run, undrawn):
    before = write_report(run).read_text(encoding="utf-8")
    change_summary(run, status="failed", failure="Disk full.")
    after = write_report(run).read_text(encoding="utf-8")
    assert "This run failed" not in before
    assert "This run failed" in after
