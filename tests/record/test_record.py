"""What is written to a run folder is read as it was; what is missing, damaged or of another run is refused."""

import hashlib
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from rindices.cli.console_and_exits import on_command_line
from rindices.judging import agreement_and_misfit as agreement
from rindices.pages.report import make_report
from rindices.problems import InputError, worded
from rindices.record import (
    DONE,
    Results,
    RunSettings,
    RunTable,
    Summary,
    read_run,
    read_settings,
    read_summary,
    write_summary,
    write_tables,
)
from rindices.record.run_folder import progress_of
from rindices.settings import SearchSettings
from tests.pages.made_run import add_analyses, add_truth, change_summary, make_run

ODD = ["007", "=1+1", "NA"]


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    add_truth(folder, make_run(folder, n_patterns=2, n_regions=6))
    add_analyses(folder)
    (folder / "model.safetensors").write_text("own")
    change_summary(folder, model_sha256=hashlib.sha256(b"own").hexdigest())
    return folder


def test_tables_are_read_as_they_were_written(tmp_path):
    r_indices = pd.DataFrame({"participant_id": ODD, "visit": ["1", "02", ""], "first_visit": True, "diagnosis": ODD})
    r_indices = r_indices.assign(group=["control", "patient", "other"], r1=[0.25, math.nan, 1.0], r1_sd=0.5, flags="")
    patterns = pd.DataFrame({"region": ODD, "pattern": 1, "change_sd": 1.5, "change_percent": 2.5, "spread_sd": 0.5})
    people = r_indices[["participant_id", "diagnosis", "group"]].assign(used=True, reason="", distance=1.5, flags=ODD)
    variables = pd.DataFrame({"age": [70.5, math.nan, 60.0], "@sex": ["F", math.nan, "+M"]})
    results = Results(r_indices, pd.DataFrame(1.5, index=range(3), columns=ODD), variables, patterns, people)
    (tmp_path / "analysis").mkdir()
    (tmp_path / "analysis" / "change.csv").write_text("of an earlier time")
    write_tables(tmp_path, results, {"drivers": patterns.assign(participant_id=ODD, rank=1, z=0.5)})
    counts = {"n_controls": 1, "n_patients": 1, "n_other": 1, "n_features": 3, "n_patterns": 1}
    summary = Summary(status=DONE, applied=True, warnings=(), variables=results.kinds, n_read=3, **counts)
    write_summary(tmp_path, summary)
    found = read_run(tmp_path)
    assert (found.summary, list(found.analyses)) == (summary, ["drivers"])
    assert found.results.gaps is None  # no table, and not written
    for name, table in (pair for pair in vars(results).items() if pair[0] != "gaps"):
        pd.testing.assert_frame_equal(getattr(found.results, name), table, check_dtype=False)


def test_what_is_not_a_number_is_null_and_what_is_not_said_is_not_written(tmp_path):
    write_summary(tmp_path, Summary(status="failed", agreement={"pattern_agreement": math.nan}))
    assert '"pattern_agreement": null' in (tmp_path / "summary.json").read_text()
    assert set(read_summary(tmp_path).model_fields_set) == {"status", "agreement"}


@pytest.mark.parametrize("patterns", [(2, 3), "auto"])
def test_settings_are_read_as_they_were_written(tmp_path, patterns):
    table = RunTable(path='a "b"\n\x7f.csv', sha256="abc", covariates=("age", "sex"), missing=["-9999"], control="CN")
    training = SearchSettings(n_patterns=patterns, orthogonality=(0.2,), max_steps=300)
    settings = RunSettings(table=table, training=training, versions={"jax": "0.9"}, device={"platform": "cpu"})
    (tmp_path / "run.toml").write_text(settings.text(), encoding="utf-8")
    found = read_settings(tmp_path / "run.toml")
    assert (found.sections(), found.fingerprint()) == (settings.sections(), settings.fingerprint())
    assert found.training == training
    moved = settings.model_copy(update={"command": {"line": "rindices fit"}, "plan": {"models_per_chunk": 3}})
    assert moved.fingerprint() == settings.fingerprint()


NAMES = ["r_indices", "patterns", "selection", "z_scores", "variables", "people", "truth"]


@pytest.mark.parametrize("name", [*(f"{name}.csv" for name in NAMES), "summary.json", "run.toml"])
def test_missing_and_damaged_files_are_named(run, name):
    path = run / name
    content = path.read_bytes()
    damages = [b"", b"\xff\xfe\x00", content.replace(b"participant_id", b"id").replace(b"pattern", b"model", 3)]
    for damage in [*damages, None]:
        path.write_bytes(damage) if damage is not None else path.unlink()
        with pytest.raises(InputError, match=name):
            read_run(run)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"n_patients": True}, "n_patients"),
        ({"n_patterns": 2.5}, "n_patterns"),
        ({"reliable": "yes"}, "reliable"),
        ({"dreams": 3}, "dreams"),
        ({"members_left_out": [{"member": 4}]}, "reason"),
        ({"status": "stopped"}, "status"),
        ({"search": {"runners_up": [{"n_patterns": 2}]}}, "orthogonality"),
        ({"evidence": {"eigenvalues": ["0.5"]}}, "eigenvalues"),
        ({"evidence": {"p": "small"}}, "p"),
        ({"verdict": "surely"}, "verdict"),
        ({"balance": [{"variable": "age"}]}, "kind"),
        ({"correlation": [[1.0, None], [0.5, 1.0]]}, "correlation"),
    ],
)
def test_damaged_summary_says_where(run, changes, name):
    change_summary(run, **changes)
    with pytest.raises(InputError, match=f"summary.json .*{name}"):
        read_run(run)


def lines(path, change):
    header, *rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join([header, *change(rows)]))


@pytest.mark.parametrize("name", ["r_indices.csv", "patterns.csv", "people.csv", "z_scores.csv", "variables.csv"])
@pytest.mark.parametrize("change", [lambda rows: rows[1:], lambda rows: [*rows, rows[0]], lambda rows: []])
def test_tables_with_other_rows_are_refused(run, name, change):
    lines(run / name, change)
    with pytest.raises(InputError, match=name):
        read_run(run)


def test_another_order_another_model_and_other_words_are_refused(run):
    read_run(run)
    for name in ("z_scores.csv", "variables.csv", "people.csv"):
        lines(run / name, lambda rows: rows[::-1])
        with pytest.raises(InputError, match=f"{name} .*a different order"):
            read_run(run)
        lines(run / name, lambda rows: rows[::-1])
    for name, old, new in (("patterns.csv", ",1,", ",one,"), ("r_indices.csv", ",control,", ",healthy,")):
        content = (run / name).read_text()
        (run / name).write_text(content.replace(old, new))
        with pytest.raises(InputError, match=name):
            read_run(run)
        (run / name).write_text(content)
    (run / "model.safetensors").write_text("other")
    with pytest.raises(InputError, match="not the model of this run"):
        read_run(run)


def test_agreement_so_far_is_of_all_sound_models_in_the_journal(tmp_path):
    rng = np.random.default_rng(0)
    shared = rng.uniform(size=(60, 2))
    models = np.stack([shared, np.clip(shared + rng.normal(0, 0.1, shared.shape), 0, 1), np.full_like(shared, 0.5)])
    (tmp_path / "journal").mkdir()
    for place, some in enumerate((models[:1], models[1:])):
        chunk = json.dumps([[[2, 0.8], 0, 0]] * len(some))
        path = tmp_path / "journal" / f"data-{place}.safetensors"
        save_file({"r_indices": np.stack([np.zeros_like(some), some])}, path, {"chunk": chunk})  # at two steps
    (found,) = progress_of(tmp_path, running=True).agreed
    expected = agreement.mean_agreement(agreement.pairwise(models[:2])).pattern_agreement
    assert (found.n_patterns, found.n_models, found.value) == (2, 3, pytest.approx(expected))
    assert 0.8 < expected < 1


def test_a_folder_without_a_run_says_what_to_call():
    """As `fit_table` in Python, as a command elsewhere."""
    with pytest.raises(InputError, match="repeat the run: `fit_table` with overwrite=True") as refused:
        make_report("nowhere")
    assert "repeat the run: rindices fit ... --overwrite." in worded(refused.value.message, on_command_line)
    assert pickle.loads(pickle.dumps(refused.value.message)) == refused.value.message
