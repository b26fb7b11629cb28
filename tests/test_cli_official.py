"""The authors' checkpoints and MUSE tables on the command line."""

import numpy as np
import pandas as pd
import pytest

from rindices.interop.muse import MUSE72_NAMES, MUSE_REGIONS, muse72
from tests.interop.archives import checkpoint, save
from tests.interop.test_official import plain_r_indices
from tests.test_cli import TINY, succeed, told


@pytest.fixture(scope="module")
def muse_table():
    """80 people in mm³: single regions under their MUSE names, and two sums of regions."""
    rng, numbers = np.random.default_rng(0), list(MUSE_REGIONS)
    values = rng.uniform(0.7, 1.3, (80, len(numbers))) * rng.uniform(0.5, 1.5, len(numbers))
    volumes = pd.DataFrame(1.2e6 * values / values.sum(axis=1, keepdims=True), columns=numbers)
    table = volumes.add_prefix("MUSE_Volume_").assign(MUSE_Volume_601=6e5, MUSE_Volume_702=1.2e6)
    people = {"participant_id": [f"p{i}" for i in range(80)], "diagnosis": np.repeat(["CN", "AD"], 40)}
    return table.assign(**people, sex=rng.integers(0, 2, 80), age=rng.uniform(61, 89, 80).round(1))


@pytest.fixture(scope="module")
def imported(tmp_path_factory, muse_table):
    """Import a made-up checkpoint whose controls resemble those of the table."""
    folder = tmp_path_factory.mktemp("official")
    content, arrays = checkpoint(n_regions=72, entries=(100, 200))
    regions = muse72(muse_table).to_numpy()
    content["normalization_variables"] = {"cn_mean": regions.mean(axis=0), "cn_std": regions.std(axis=0)}
    path, out = save(folder / "official.pt", content), folder / "new" / "model.safetensors"
    told("import-official", path, "--out", out, "--features", "muse72", "--covariates", "sex,age", "--entry", 200)
    return out, content, arrays


def test_imported_model_is_applied_to_muse_tables(imported, muse_table, tmp_path):
    out, content, arrays = imported
    regions, others = muse72(muse_table), muse_table[["participant_id", "sex", "age"]]
    single = muse_table.filter(like="MUSE_Volume_") / 1000  # beside harmonised ones, both in mL
    pd.concat([others, single, single.add_prefix("H_")], axis=1).to_csv(tmp_path / "muse.csv", index=False)
    assert "Scored 80 people, using 72 regions" in told(
        "apply", out, tmp_path / "muse.csv", "--out", tmp_path / "scores.csv", "--exclude", "MUSE_*"
    )
    found = pd.read_csv(tmp_path / "scores.csv")
    expected = plain_r_indices(content, arrays, regions.to_numpy(), others[["sex", "age"]].to_numpy())
    np.testing.assert_allclose(found[["r1", "r2"]], expected, rtol=1e-4, atol=1e-4)
    assert found["participant_id"].tolist() == others["participant_id"].tolist()


def test_fit_sums_muse_regions_and_can_be_run_again(muse_table, tmp_path):
    options = ["--features", "muse72", "--covariates", "sex,age", "--exclude", "H_*", *TINY]
    pd.concat([muse_table, (1.1 * muse_table.filter(like="MUSE_Volume_").add_prefix("H_"))], axis=1).to_csv(
        tmp_path / "muse.csv", index=False
    )
    succeed("fit", tmp_path / "muse.csv", "--out", tmp_path / "run", *options)
    assert pd.read_csv(tmp_path / "run" / "patterns.csv")["region"][:72].tolist() == list(MUSE72_NAMES)
    succeed("fit", "--config", tmp_path / "run" / "run.toml", "--out", tmp_path / "again", "--no-report")
    assert "already complete" in told(
        "fit", tmp_path / "muse.csv", "--out", tmp_path / "again", "--no-report", *options
    )
    assert (tmp_path / "again" / "r_indices.csv").read_bytes() == (tmp_path / "run" / "r_indices.csv").read_bytes()
    files = tmp_path / "run" / "model.safetensors", tmp_path / "muse.csv"
    succeed("apply", *files, "--out", tmp_path / "scores.csv", "--exclude", "H_*")
    # In the run, controls were scored by repetitions that held them out.
    files = (tmp_path / "scores.csv", tmp_path / "run" / "r_indices.csv")
    scores, learned = (pd.read_csv(path).query("group == 'patient'")[["r1", "r2"]] for path in files)
    np.testing.assert_allclose(scores, learned, rtol=1e-4, atol=1e-6)
