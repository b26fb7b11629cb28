from dataclasses import replace

import pytest

from rindices.problems import InputError
from rindices.record import (
    DONE,
    FAILED,
    RESULTS,
    UNFINISHED,
    RunSettings,
    RunTable,
    Summary,
    check_free,
    discard,
    held,
    is_complete,
    keep_trained,
    locked,
    more_of,
    read_settings,
    status_of,
    write_summary,
)
from rindices.settings import SearchSettings

TABLE = RunTable(path="table.csv", sha256="abc", covariates=("age", "sex"))
SETTINGS = RunSettings(
    command={"line": "rindices fit table.csv"},
    table=TABLE,
    training=SearchSettings(n_patterns=(2, 3)),
    versions={"jax": "0.8.0"},
    device={"platform": "cpu"},
)


def altered(table=None, training=None, **sections):
    """Return other settings: of the table, of the training, or whole sections."""
    sections |= {"table": replace(TABLE, **table or {}), "training": replace(SETTINGS.training, **training or {})}
    return SETTINGS.model_copy(update=sections)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run"


def begin(out, settings=SETTINGS, **options):
    with held(out, settings, **options) as goes_on:
        return goes_on


def finish(out, status=DONE):
    write_summary(out, Summary.model_construct(status=status))
    for name in RESULTS if status == DONE else ():
        (out / name).write_text("")


# Whose folder is it?


def test_new_and_empty_folders_and_those_of_runs_are_free(out):
    check_free(out)
    assert not out.exists()
    out.mkdir()
    check_free(out)
    begin(out)
    for name in ("model.safetensors", "r_indices.csv", "report.html", ".r_indices.csv.123.partial"):
        (out / name).write_text("")
    check_free(out)


def test_files_of_others_are_named_and_kept(out):
    begin(out)
    for name in ("thesis.docx", ".hidden", "data.partial"):
        (out / name).write_text("mine")
    with pytest.raises(InputError, match=r"already contains other files: \.hidden, data\.partial, thesis\.docx\."):
        check_free(out)
    assert (out / "thesis.docx").read_text() == "mine"


# Which run is it?


def test_new_run_says_what_it_is_and_that_it_is_not_finished(out):
    assert status_of(out) is None
    with held(out, SETTINGS) as goes_on:
        assert not goes_on
        assert (status_of(out), read_settings(out / "run.toml").training) == (UNFINISHED, SETTINGS.training)


def test_same_run_goes_on_and_keeps_its_journal(out):
    begin(out)
    (out / "journal" / "data-3-abc.safetensors").write_text("chunk")
    (out / "run.toml").write_text((out / "run.toml").read_text() + "# a mark\n")
    for name in ("r_indices.csv", ".r_indices.csv.99.partial"):
        (out / name).write_text("half")
    assert begin(out)
    assert (out / "journal" / "data-3-abc.safetensors").read_text() == "chunk"
    assert "# a mark" in (out / "run.toml").read_text()
    assert sorted(path.name for path in out.iterdir()) == ["journal", "run.toml", "summary.json"]


def test_run_that_failed_goes_on_as_one_that_is_not_finished(out):
    begin(out)
    finish(out, FAILED)
    with held(out, SETTINGS) as goes_on:
        assert goes_on
        assert status_of(out) == UNFINISHED


def test_the_same_table_elsewhere_by_another_command_is_the_same_run(out):
    begin(out)
    assert begin(out, altered(table={"path": "moved/table.csv"}, command={"line": "other"}))


OTHERS = {
    "sha256: abc then, xyz now": {"table": {"sha256": "xyz"}},
    "n_patterns: 2, 3 then, 3, 4, 5, 6 and 1 more now": {"training": {"n_patterns": (3, 4, 5, 6, 7)}},
    "n_patterns: 2, 3 then, auto now": {"training": {"n_patterns": "auto"}},
    "n_repetitions: 10 then, 5 now": {"training": {"n_repetitions": 5}},
    "max_steps: not given then, 100 now": {"training": {"max_steps": 100}},
    "jax: 0.8.0 then, 0.9.0 now": {"versions": {"jax": "0.9.0"}},
    "platform: cpu then, gpu now": {"device": {"platform": "gpu"}},
}


@pytest.mark.parametrize(("difference", "change"), OTHERS.items())
def test_other_runs_are_refused_with_their_differences(out, difference, change):
    begin(out)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    with pytest.raises(InputError) as error:
        begin(out, altered(**change))
    lines = str(error.value).splitlines()
    assert (lines[0], lines[1:-1]) == (f"The folder {out} contains a different run:", [f"  {difference}"])
    assert "overwrite=True" in lines[-1]
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    with pytest.raises(InputError, match="contains a different run"):
        is_complete(out, altered(**change))


MORE = altered(training={"n_patterns": (2, 3, 4), "n_repetitions": 20})


@pytest.mark.parametrize("killed", [False, True])
def test_more_is_added_to_a_finished_run_whose_models_are_there(out, killed):
    begin(out)
    (out / "journal" / "data-3-abc.safetensors").write_text("chunk")
    with pytest.raises(InputError, match="n_repetitions: 10 then, 20 now"):  # it has begun, and is not finished
        is_complete(out, MORE)
    finish(out)
    if not killed:
        keep_trained(out)
    assert not is_complete(out, MORE)
    assert not (out / "journal").exists()
    assert more_of(out, MORE)["n_repetitions"] == "10 then, 20 now"
    with pytest.raises(InputError, match=r"jax: 0\.8\.0 then, 0\.9\.0 now"):  # bits of two versions
        is_complete(out, MORE.model_copy(update={"versions": {"jax": "0.9.0"}}))
    assert begin(out, MORE)
    assert (out / "trained" / "data-3-abc.safetensors").read_text() == "chunk"
    assert read_settings(out / "run.toml").training == MORE.training
    assert not (out / "model.safetensors").exists()


def test_nothing_is_added_to_a_run_whose_models_are_gone(out):
    begin(out)
    finish(out)
    with pytest.raises(InputError, match="Its models are missing, so nothing can be added"):
        is_complete(out, MORE)


def test_models_depend_neither_on_how_many_there_are_nor_on_where_the_table_is():
    assert MORE.fingerprint() == altered(table={"path": "moved/table.csv"}).fingerprint() == SETTINGS.fingerprint()
    for change in OTHERS.values():
        differs = altered(**change).fingerprint() != SETTINGS.fingerprint()
        assert differs == {"n_patterns", "n_repetitions"}.isdisjoint(change.get("training", ()))


def test_overwriting_removes_the_other_run_and_its_journal(out):
    begin(out)
    finish(out)
    (out / "model.safetensors").write_text("old")
    (out / "journal" / "data-3-abc.safetensors").write_text("chunk")
    assert not begin(out, altered(training={"preset": "paper"}), overwrite=True)
    assert (status_of(out), read_settings(out / "run.toml").training.preset) == (UNFINISHED, "paper")
    assert sorted(path.name for path in out.iterdir()) == ["journal", "run.toml", "summary.json"]
    assert not (out / "journal" / "data-3-abc.safetensors").exists()


def test_half_written_files_are_removed_and_files_of_others_are_not(out):
    begin(out)
    halves = [out / ".model.safetensors.5.partial", out / "journal" / ".data-3-abc.safetensors.5.partial"]
    (out / "thesis.docx").write_text("mine")
    for overwrite in (False, True):
        for half in halves:
            half.write_text("half")
        begin(out, overwrite=overwrite)
        assert not any(half.exists() for half in halves)
    assert (out / "thesis.docx").read_text() == "mine"


# How far did it get?


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", "\xff"])
def test_summary_that_cannot_be_read_is_that_of_an_unfinished_run(out, damage):
    out.mkdir()
    (out / "summary.json").write_bytes(damage.encode("latin-1"))
    assert status_of(out) == UNFINISHED


def test_only_a_finished_run_is_complete(out):
    assert not is_complete(out, SETTINGS)
    begin(out)
    assert not is_complete(out, SETTINGS)
    finish(out, FAILED)
    assert not is_complete(out, SETTINGS)
    finish(out)
    assert is_complete(out, SETTINGS)


def test_finished_run_stays_complete_on_another_machine(out):
    """Only a run that goes on there could mix bits of two machines."""
    begin(out)
    elsewhere = altered(versions={"jax": "0.9.0"}, device={"platform": "gpu"})
    with pytest.raises(InputError, match="contains a different run"):
        is_complete(out, elsewhere)
    finish(out)
    assert is_complete(out, elsewhere)
    with pytest.raises(InputError, match=r"preset: fast then, paper now"):
        is_complete(out, elsewhere.model_copy(update={"training": SearchSettings(preset="paper")}))


# Who is working in it?


def test_same_process_cannot_hold_a_folder_twice(out):
    with locked(out):
        (out / "journal" / "holder.txt").unlink()
        with pytest.raises(InputError, match=rf"Another process \(unknown\) is already using {out}"), locked(out):
            pass
    with locked(out):
        pass


def test_folder_is_given_back_after_an_error(out):
    with pytest.raises(RuntimeError), held(out, SETTINGS):
        raise RuntimeError
    assert begin(out)


def test_run_that_never_began_leaves_nothing(out):
    begin(out)
    discard(out)
    assert not out.exists()
    begin(out)
    (out / "thesis.docx").write_text("mine")
    discard(out)
    assert [path.name for path in out.iterdir()] == ["thesis.docx"]
