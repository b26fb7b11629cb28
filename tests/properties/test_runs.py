"""A run folder, whatever happens to it: begun, killed, damaged, asked for something else, gone on with.

Whenever it says that it is done, its results are those of a run that nothing happened to, bit for bit; at any other
time it holds whole files of this run only.
"""

import json
import os
import shutil
from itertools import count
from pathlib import Path

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

from rindices.core import devices
from tests.survival.conftest import contents, fit, shortened
from tests.survival.conftest import table as table

# A run has nearly so many, the last are beyond its end; in those from 3 to 9 it trains.
MOMENTS = st.integers(3, 9) | st.integers(0, 45)
OTHER_SETTINGS = st.sampled_from(
    [(), ("--seed", 7), ("--steps", 30), ("--repetitions", 1), ("--orthogonality", 0.3), ("--latent", "correlated")]
)


def results(folder):
    """Return the tables and the model of a run as they are on disk; a journal is no result."""
    kept = {name: text for name, text in contents(folder).items() if name.suffix in (".csv", ".safetensors")}
    return {name: text for name, text in kept.items() if name.parts[0] != "journal"}


def cut(path):
    """Lose the second half of a file."""
    os.truncate(path, path.stat().st_size // 2)


def flip(path):
    """Change a byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


class Killed(Exception):
    """The process would be gone by now."""


class Kill:
    """Keeps a run folder as it was before one of the changes of its files, and lets the command end as it may.

    Changes are counted: a file that is written is renamed when it is whole, which is one; a file that is removed is
    another. With `torn`, a file that is being written reached the disk in half.
    """

    def __init__(self, monkeypatch, folder, moment, torn):
        self.folder, self.left, self.torn, self.happened = Path(folder), moment, torn, False
        self.snapshot = folder.with_name("snapshot")
        monkeypatch.setattr(os, "unlink", self._watched(os.unlink))
        monkeypatch.setattr(Path, "replace", self._watched(Path.replace))

    def _watched(self, function):
        def changed(path, *args, **kwargs):
            # Within a folder that is removed as a whole, files are named without it.
            if "dir_fd" in kwargs or (self.folder in (Path(path), *Path(path).parents) and Path(path).exists()):
                self.left -= 1
                if self.left < 0 and not self.happened:  # later changes are those of a process that is no more
                    self._strike(Path(path), writes=bool(args))
            return function(path, *args, **kwargs)

        return changed

    def _strike(self, path, writes):
        self.happened = True
        shutil.copytree(self.folder, self.snapshot)
        if self.torn and writes and path.suffix == ".partial":  # others are whole, and only get another place
            cut(self.snapshot / path.relative_to(self.folder))
        raise Killed

    def bury(self):
        """Put the folder back as the kill left it."""
        if self.happened:
            shutil.rmtree(self.folder)
            self.snapshot.rename(self.folder)


class Runs(RuleBasedStateMachine):
    """All that can happen to a run folder, in any order."""

    table: Path
    other_table: Path  # one number is another
    expected: dict
    folder: Path

    def __init__(self):
        super().__init__()
        self.patch, self.short = pytest.MonkeyPatch(), shortened()
        self.short.__enter__()
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
            self.short.__exit__(None, None, None)

    @property
    def done(self):
        """Whether the run is complete by its own account."""
        try:
            return json.loads((self.out / "summary.json").read_text())["status"] == "done"
        except (FileNotFoundError, ValueError):
            return False

    def fit(self, *options, table=None):
        """Ask for the run; return the outcome."""
        outcome = fit(table or self.table, "--out", self.out, "--patterns", 3, "--no-report", *options)
        assert "Traceback" not in outcome.output
        return outcome

    @rule()
    def complete(self):
        """The run goes on, or is begun, and is complete."""
        outcome = self.fit()
        assert outcome.exit_code == 0, outcome.output
        assert self.done
        assert not (self.out / "journal").exists()
        self.killed = False

    @initialize(moment=MOMENTS, torn=st.booleans())
    def begin(self, moment, torn):
        """Begin a run, and kill it."""
        self.kill(moment, torn, ())

    @rule(moment=MOMENTS, torn=st.booleans(), options=st.sampled_from([(), (), ("--overwrite",)]))
    def kill(self, moment, torn, options):
        """Kill the run at a moment; it may be complete before."""
        with pytest.MonkeyPatch.context() as patch:
            kill, outcome = Kill(patch, self.out, moment, torn), self.fit(*options)
        assert kill.happened or outcome.exit_code == 0, outcome.output
        kill.bury()
        self.killed |= kill.happened

    @precondition(lambda self: (self.out / "run.toml").exists())
    @rule(options=OTHER_SETTINGS)
    def ask_for_another_run(self, options):
        """Another setting, or the same of another table, is refused and changes nothing."""
        before = contents(self.out)
        outcome = self.fit(*options, table=None if options else self.other_table)
        assert outcome.exit_code == 2, outcome.output
        assert contents(self.out) == before

    @precondition(lambda self: (self.out / "summary.json").exists())
    @rule(which=st.integers(0, 99), how=st.sampled_from([cut, flip, Path.unlink]))
    def damage(self, which, how):
        """Cut, change or lose the summary, or a file that the run would go on from."""
        found = [path for path in sorted(self.out.glob("journal/*")) if path.stat().st_size > 5]
        path = [self.out / "summary.json", *found][which % (len(found) + 1)]
        if path.name != "summary.json" or how is not flip:  # which may be a number in it
            how(path)

    @invariant()
    def what_is_there_is_whole(self):
        """All results that are there are the expected ones, and all of them once the run says so.

        Models may still lie in the journal, if the run was killed before they found their place.
        """
        found = results(self.out) if self.out.exists() else {}
        assert found == {name: self.expected[name] for name in found}
        lost = self.expected.keys() - found.keys()
        assert not self.done or all(self.killed and (self.out / "journal" / name.name).is_file() for name in lost)

    @invariant()
    def nothing_half_written_is_left_but_by_a_kill(self):
        """Commands that end by themselves leave nothing half-written, and a complete run clears up."""
        assert self.killed or not list(self.folder.rglob("*.partial"))


@pytest.fixture
def machine(table, tmp_path):
    """Return the machine with its table, and what an undisturbed run of it gives."""
    people = pd.read_csv(table)
    people.iloc[0, 2] *= 1.01
    people.to_csv(tmp_path / "other.csv", index=False)
    with shortened():  # with all cores: they change nothing
        assert fit(table, "--out", tmp_path / "undisturbed", "--patterns", 3, "--no-report").exit_code == 0
    given = {"table": table, "other_table": tmp_path / "other.csv", "folder": tmp_path / "disturbed"}
    return type("Given", (Runs,), given | {"expected": results(tmp_path / "undisturbed")})


def test_whatever_happens_to_a_run_its_results_are_those_of_an_undisturbed_one(machine):
    run_state_machine_as_test(machine, settings=settings(max_examples=settings.default.max_examples // 2))


@pytest.mark.slow
def test_a_run_killed_at_any_moment_leaves_whole_files_and_goes_on(machine):
    for moment in count():
        runs = machine()
        runs.kill(moment, True, ())
        killed = runs.killed
        runs.what_is_there_is_whole()
        runs.teardown()
        if not killed:
            break
    assert moment > 20, "a run has more moments than that"
