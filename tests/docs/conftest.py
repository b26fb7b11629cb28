"""Commands as given on the pages, run here with very short trainings and without drawing anything."""

from dataclasses import replace
from pathlib import Path

import pytest

from rindices import plots, presets
from rindices.cli.console_and_exits import set_output
from rindices.pages import report
from rindices.run import report_and_share
from tests.docs import given
from tests.test_cli import run


def rindices(*words, code=0):
    """Run a command that must end with this exit code, in this process, and return its output."""
    result = run(*words)
    set_output()  # --quiet must not silence later commands
    assert result.exit_code == code, f"rindices {' '.join(map(str, words))}\n{result.output}"
    return result.output


@pytest.fixture(scope="package")
def short_trainings(quick_preset):
    """Make all presets as short as tests allow; reports and pictures, which are tested elsewhere, stay empty."""

    def written(folder, out=None, **_):
        path = Path(out or Path(folder, "report.html"))
        path.write_text("<!doctype html>")
        return path

    with pytest.MonkeyPatch.context() as patch:
        for module in (report, report_and_share):
            patch.setattr(module, "write_report", written)
        patch.setattr(plots, "figure_png", lambda figure, path: path.write_bytes(b""))
        for name in list(presets.PRESETS):
            patch.setitem(presets.PRESETS, name, lambda name=name: replace(quick_preset, name=name))
        yield


@pytest.fixture(scope="package")
def finished_run(short_trainings, tmp_path_factory):
    """Return the folder of a run on a table with sites, visits, scores and people left out."""
    folder = tmp_path_factory.mktemp("given")
    people = given.visits().assign(mmse=lambda table: table.index % 13)
    people.loc[given.NOT_LEARNED_FROM, "icv"] = 0.0
    people.to_csv(folder / "everything.csv", index=False)
    roles = "--visit session --site site --covariates age,sex,icv --clinical mmse,apoe4 --control CN --patients MCI,AD"
    options = [*roles.split(), "--patterns", "3", "--repetitions", "2", "--drop-missing", "--bids"]
    rindices("fit", folder / "everything.csv", "--out", folder / "run", *options)
    return folder / "run"
