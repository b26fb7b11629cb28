"""Nothing leaks from held-out people: when their values change, the fit stays identical to the bit."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open

from experiments.reproducibility import split_half
from rindices import SurrealGAN, simulate_cohort
from tests.test_cli import TINY, succeed

N_REGIONS = 12
OPTIONS = [
    *("--covariates", "age,sex,icv", "--smooth", "age", "--site", "site", "--visit", "session", "--control", "CN"),
    *("--patients", "PT", "--no-report", *TINY),
]


def study():
    """60 controls, 60 patients with a second visit each, and 30 people with a third label."""
    rng = np.random.default_rng(0)
    table = simulate_cohort("basic", n_controls=75, n_patients=75, seed=0).table.iloc[:, : 4 + N_REGIONS]
    table["site"] = rng.choice(["north", "south"], len(table))
    table["icv"] = rng.normal(1500, 100, len(table))
    table.insert(1, "session", "bl")
    table.loc[table.groupby("diagnosis").head(15).index, "diagnosis"] = "MCI"
    return pd.concat(
        [table, table[table["diagnosis"] == "PT"].assign(session="m12", age=lambda rows: rows["age"] + 1)],
        ignore_index=True,
    )


def held_out(table):
    return (table["diagnosis"] == "MCI") | (table["session"] == "m12")


def planted(table, seed=1):
    """Change the values of held-out people, within plausible limits so that the table is not refused."""
    rng, held = np.random.default_rng(seed), held_out(table)
    changed = table.copy()
    regions = [str(name) for name in table.columns[5 : 5 + N_REGIONS]]
    changed.loc[held, regions] *= rng.uniform(0.3, 3, (int(held.sum()), N_REGIONS))
    changed.loc[held, "icv"] *= 1.3
    changed.loc[held & (table["session"] == "bl"), "age"] += 9
    changed.loc[held & (table["session"] == "m12"), "age"] += 2
    return changed


def fit(table, folder, *options):
    folder.mkdir()
    table.to_csv(folder / "table.csv", index=False)
    succeed("fit", folder / "table.csv", "--out", folder / "run", *OPTIONS, *options)
    return folder / "run"


def learned(run):
    """Everything that a fit learned: arrays and header of the model, patterns, selection and verdict."""
    with safe_open(run / "model.safetensors", framework="numpy") as file:
        arrays = {name: hashlib.sha256(file.get_tensor(name).tobytes()).hexdigest() for name in file.keys()}  # noqa: SIM118
        header = json.loads(file.metadata()["header"])
    summary = json.loads((run / "summary.json").read_text())
    kept = ("agreement", "reliable", "reliable_reason", "n_controls", "n_patients", "step", "members_used")
    tables = {name: (run / name).read_text() for name in ("patterns.csv", "selection.csv")}
    return arrays, header, {name: summary[name] for name in kept}, tables


@pytest.mark.parametrize("options", [(), ("--drop-outliers",)], ids=["everybody", "without outliers"])
def test_values_of_held_out_people_do_not_change_the_fit(tmp_path, options):
    table = study()
    before, after = (
        fit(people, tmp_path / name, *options) for name, people in (("before", table), ("after", planted(table)))
    )
    assert learned(before) == learned(after)
    scores = [
        pd.read_csv(run / "r_indices.csv", keep_default_na=False)
        .set_index(["participant_id", "visit"])
        .drop(columns=["years"])
        for run in (before, after)
    ]
    trained = scores[0].index[(scores[0]["diagnosis"] != "MCI") & scores[0].index.isin(["bl"], level="visit")]
    trained = trained.intersection(scores[1].index)
    assert len(trained) >= 100
    pd.testing.assert_frame_equal(scores[0].loc[trained], scores[1].loc[trained], check_exact=True)
    held = scores[0].index.difference(trained).intersection(scores[1].index)
    assert not np.allclose(scores[0].loc[held, "r1"], scores[1].loc[held, "r1"])


def test_values_of_training_people_do_change_the_fit(tmp_path):
    table, moved = study(), study()
    moved.iloc[int(np.flatnonzero(~held_out(table))[0]), 5] *= 1.01
    assert learned(fit(table, tmp_path / "before"))[0] != learned(fit(moved, tmp_path / "after"))[0]


def test_what_is_estimated_in_controls_does_not_know_the_patients(small_table, small_labels, quick_preset):
    covariates = pd.DataFrame({"age": np.tile(np.linspace(50, 80, 40), 2)})
    poisoned = small_table.copy()
    poisoned.loc[small_labels == 1] *= np.random.default_rng(1).uniform(0.5, 2, (int(small_labels.sum()), 1))
    fitted = [
        SurrealGAN(3, n_repetitions=2, preset=quick_preset, random_state=0).fit(X, small_labels, covariates)
        for X in (small_table, poisoned)
    ]
    steps = [model.preprocessing_ for model in fitted]
    np.testing.assert_array_equal(*[(one.scaler.mean, one.scaler.sd, *one.residualizer.effects) for one in steps])


def test_a_half_does_not_know_the_other(small_table, small_labels, quick_preset):
    """Each split-half model gives its own half the same R-indices, whatever the values in the other half."""
    model = SurrealGAN(3, n_repetitions=2, preset=quick_preset)
    before = split_half(model, small_table, small_labels, seed=3)
    factors = np.random.default_rng(2).uniform(0.5, 2, small_table.shape)
    for half in (1, 2):
        changed = small_table * np.where((before.half == half)[:, None], 1, factors)
        after = split_half(model, changed, small_labels, seed=3)
        np.testing.assert_array_equal(after.half, before.half)
        own = before.half == half
        first, second = before.r_indices[half - 1][own], after.r_indices[half - 1][own]
        # Patterns of the second half are put in the order of the first, which has changed: compare as sets of columns.
        np.testing.assert_array_equal(*(scores[:, np.argsort(scores[0])] for scores in (first, second)))
