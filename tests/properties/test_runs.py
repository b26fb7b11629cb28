"""A run folder, whatever happens to it: begun, killed, out of space, damaged, asked for something else, gone on with.

Whenever it says that it is done, its results are those of a run that nothing happened to, bit for bit; at any other
time it holds whole files of this run only.
"""

import shutil
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from rindices.run.folder import status_of
from typer.testing import CliRunner

from rindices import load_model
from rindices.cli import app
from rindices.cli.console import set_output
from rindices.core import devices
from tests.properties.disturbance import FullDisk, Kill
from tests.properties.strategies import SEEDS
from tests.survival.conftest import fit, shorten
from tests.survival.conftest import table as table
from tests.survival.test_damage import cut, empty, flip
from tests.survival.test_folder import contents

# A run has nearly so many, the last are beyond its end; in those from 8 to 24 it trains.
MOMENTS = st.integers(8, 24) | st.integers(0, 90)
OTHER_SETTINGS = st.sampled_from(
    [(), ("--seed", 7), ("--steps", 30), ("--repetitions", 3), ("--orthogonality", 0.3), ("--latent", "correlated")]
)


def results(folder):
    """Return the tables and the model of a run as they are on disk."""
    return {name: text for name, text in contents(folder).items() if name.suffix in (".csv", ".safetensors")}


def command(*words):
    """Run a command of `rindices` in this process."""
    return CliRunner().invoke(app, [str(word) for word in words])


class Runs(RuleBasedStateMachine):
    """All that can happen to a run folder, in any order."""

    table: Path
    other_table: Path  # one number is another
    expected: dict
    folder: Path

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        shorten(self.patch)
        self.patch.setattr(devices, "n_cores", lambda: 1)  # so that a moment is always the same
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.out, self.killed = self.folder / "run", False

    def teardown(self):
        """Whatever happened, the same command ends well; and other tests are left as they were."""
        try:
            self.complete()
            self.what_is_there_is_whole()
        finally:
            self.patch.undo()
            set_output()

    @property
    def status(self):
        """How far the run is, by its own account."""
        return status_of(self.out)

    def fit(self, *options, table=None):
        """Ask for the run; return the outcome."""
        outcome = fit(table or self.table, "--out", self.out, "--patterns", 3, "--no-report", *options)
        assert "Traceback" not in outcome.output
        return outcome

    def complete(self, *options):
        """The run goes on, or is begun, and is complete."""
        outcome = self.fit(*options)
        assert outcome.exit_code == 0, outcome.output
        assert self.status == "done"
        assert not (self.out / "journal").exists()
        self.killed = False

    def refused(self, message, *options, **other):
        """A command that is the user's mistake changes nothing."""
        before = contents(self.out)
        outcome = self.fit(*options, **other)
        assert outcome.exit_code == 2, outcome.output
        assert message in outcome.output
        assert contents(self.out) == before

    @rule()
    def go_on(self):
        """Repeat the command."""
        self.complete()

    @initialize(moment=MOMENTS, torn=st.booleans())
    def begin(self, moment, torn):
        """Begin a run, and kill it."""
        self.kill(moment, torn, ())

    @rule(moment=MOMENTS, torn=st.booleans(), options=st.sampled_from([(), (), ("--overwrite",)]))
    def kill(self, moment, torn, options):
        """Kill the run at a moment; it may be complete before."""
        with pytest.MonkeyPatch.context() as patch:
            kill = Kill(patch, self.out, moment, torn)
            outcome = self.fit(*options)
        assert kill.happened or outcome.exit_code == 0, outcome.output
        kill.bury()
        self.killed |= kill.happened

    @rule(moment=MOMENTS, times=st.sampled_from([1, 1000]))
    def run_out_of_space(self, moment, times):
        """The disk is full for a moment, or for good; what the command says is what the folder says."""
        with pytest.MonkeyPatch.context() as patch:
            FullDisk(patch, self.out, moment, times)
            outcome = self.fit()
        assert outcome.exit_code in (0, 3), outcome.output
        assert (self.status == "done") == (outcome.exit_code == 0)
        if outcome.exit_code == 3:
            assert "No space left on device" in outcome.output
            assert outcome.output.splitlines()[-1].startswith("Failed. Repeat the same command")

    @precondition(lambda self: self.status is not None)
    @rule(option=OTHER_SETTINGS)
    def ask_for_another_run(self, option):
        """Another setting, or the same of another table, is refused."""
        if option:
            self.refused("holds another run", *option)
        else:
            self.refused("sha256", table=self.other_table)

    @precondition(lambda self: self.status is not None)
    @rule(how=st.sampled_from([empty, cut, Path.unlink]))
    def mislay_the_settings(self, how):
        """Without its settings a run is not gone on with; with them it is."""
        settings = self.out / "run.toml"
        before = settings.read_bytes()
        how(settings)
        self.refused("run.toml" if how is Path.unlink else str(self.out))
        settings.write_bytes(before)

    @precondition(lambda self: (self.out / "summary.json").exists())
    @rule(which=st.integers(0, 99), how=st.sampled_from([cut, empty, flip, Path.unlink]))
    def damage(self, which, how):
        """Cut, change or lose the summary, or a file that the run would go on from."""
        found = [path for path in sorted(self.out.glob("journal/*")) if path.stat().st_size > 5]
        path = [self.out / "summary.json", *found][which % (len(found) + 1)]
        if path.name != "summary.json" or how is not flip:  # which may be a number in it
            how(path)

    @precondition(lambda self: self.status == "done")
    @rule(name=st.sampled_from(["r_indices.csv", "model.safetensors", "patterns.csv"]))
    def spoil_a_result_and_make_the_run_again(self, name):
        """Whatever became of a result, the run can be made again in its place."""
        flip(self.out / name)
        self.complete("--overwrite")

    @precondition(lambda self: self.status == "done")
    @rule(seed=SEEDS, n_people=st.integers(1, 5), lacking=st.booleans())
    def apply(self, seed, n_people, lacking):
        """New people get the R-indices of the model, or a refusal and no file."""
        rng, people, out = np.random.default_rng(seed), pd.read_csv(self.table), self.folder / "scores.csv"
        regions = list(people.columns[2:])
        new = people.iloc[rng.integers(len(people), size=n_people)].reset_index(drop=True)
        new[regions] *= rng.uniform(0.8, 1.2, new[regions].shape)
        new["participant_id"] = [f"new{k}" for k in range(n_people)]
        asked = new[rng.permutation(new.columns)].drop(columns=regions[:1] if lacking else [])
        asked.to_csv(self.folder / "new.csv", index=False)
        outcome = command("apply", self.out / "model.safetensors", self.folder / "new.csv", "--out", out)
        assert outcome.exit_code == (2 if lacking else 0), outcome.output
        assert out.exists() == (not lacking)
        if not lacking:
            expected = load_model(self.out / "model.safetensors").transform(new[regions])
            found = pd.read_csv(out, dtype=str)
            assert found["participant_id"].tolist() == new["participant_id"].tolist()
            assert found[["r1", "r2", "r3"]].to_numpy().tolist() == [[f"{r:.6g}" for r in row] for row in expected]
            out.unlink()

    @precondition(lambda self: self.status is not None and not (self.out / "report.html").exists())
    @rule()
    def report(self):
        """A report reads the folder and changes nothing else; of a run that is not done it shows no results."""
        before, done = results(self.out), self.status == "done"
        outcome = command("report", self.out)
        assert outcome.exit_code in ((0,) if done else (0, 2)), outcome.output
        assert "Traceback" not in outcome.output
        assert results(self.out) == before
        assert (self.status == "done") == done

    @invariant()
    def what_is_there_is_whole(self):
        """All results that are there are the expected ones, and all of them once the run says so."""
        found = results(self.out) if self.out.exists() else {}
        found = {name: text for name, text in found.items() if name.parts[0] != "journal"}
        assert found == {name: self.expected[name] for name in found}
        if self.status == "done":
            assert found.keys() == self.expected.keys()

    @invariant()
    def nothing_half_written_is_left_but_by_a_kill(self):
        """Commands that end by themselves leave nothing half-written, and a complete run clears up."""
        assert self.killed or not list(self.folder.rglob("*.partial"))


@pytest.fixture
def machine(table, tmp_path, monkeypatch):
    """Return the machine with its table, and what an undisturbed run of it gives."""
    people = pd.read_csv(table)
    people.iloc[0, 2] *= 1.01
    people.to_csv(tmp_path / "other.csv", index=False)
    with monkeypatch.context() as patch:  # with all cores: they change nothing
        shorten(patch)
        assert fit(table, "--out", tmp_path / "undisturbed", "--patterns", 3, "--no-report").exit_code == 0
    given = {"table": table, "other_table": tmp_path / "other.csv", "folder": tmp_path / "disturbed"}
    return type("Given", (Runs,), given | {"expected": results(tmp_path / "undisturbed")})


def test_whatever_happens_to_a_run_its_results_are_those_of_an_undisturbed_one(machine):
    run_state_machine_as_test(machine, settings=settings(max_examples=settings.default.max_examples // 2))


@pytest.mark.slow
def test_a_run_killed_at_any_moment_leaves_whole_files_and_goes_on(machine):
    for moment in count():
        runs = machine()
        try:
            runs.kill(moment, True, ())
            killed = runs.killed
            runs.what_is_there_is_whole()
            runs.teardown()
        finally:
            runs.patch.undo()
        if not killed:
            break
    assert moment > 50, "a run has more moments than that"
