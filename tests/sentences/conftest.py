"""Eight kinds of small studies, whose reports are compared with their run folders."""

import json
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from rindices import plots
from rindices.pages.report import make_report
from rindices.run.fit_table import fit_table
from rindices.settings import OutputSettings, SearchSettings, TableSettings

N_REGIONS = 12
REGIONS = [f"roi{k:02}" for k in range(1, N_REGIONS + 1)]


def study(n_a_group=70, n_patterns=2, loss=0.45, older=0.0, seed=0):
    """Return controls and as many patients, of the same sexes and ages (plus `older`), who lose up to `loss`."""
    rng = np.random.default_rng(seed)
    volumes = 5000 * (1 + 0.1 * rng.standard_normal((2 * n_a_group, N_REGIONS)))
    patient = np.repeat([0, 1], n_a_group)
    severity = patient[:, None] * rng.uniform(size=(2 * n_a_group, n_patterns))
    volumes *= 1 - loss * np.repeat(severity, N_REGIONS // n_patterns, axis=1)
    age = np.tile(rng.uniform(55, 80, n_a_group), 2) + older * patient
    about = {
        "participant_id": [f"sub-{k:03}" for k in range(2 * n_a_group)],
        "diagnosis": np.where(patient, "AD", "CN"),
        "age": age.round(1),
        "sex": np.tile(rng.choice(["F", "M"], n_a_group), 2),
        "memory": (10 - 4 * severity[:, 0] + rng.standard_normal(2 * n_a_group)).round(2),
    }
    return pd.DataFrame(about).join(pd.DataFrame(volumes, columns=REGIONS).round(1))


def with_gaps(table):
    """Return the table with one or two of the twelve regions missing in two of three people."""
    rng = np.random.default_rng(2)
    order = rng.random((len(table), N_REGIONS)).argsort(axis=1)
    return table.assign(**table[REGIONS].mask(order < rng.integers(0, 3, (len(table), 1))))


def with_visits(table):
    """Return two visits of everybody, half a year apart, between which patients lose 2 %."""
    rng = np.random.default_rng(3)

    def scanned(left):
        noise = 1 + 0.02 * rng.standard_normal((len(table), N_REGIONS))
        return table.assign(**(table[REGIONS] * noise * left[:, None]).round(1))

    first, later = scanned(np.ones(len(table))), scanned(np.where(table["diagnosis"] == "AD", 0.98, 1.0))
    later["age"] = (later["age"] + 0.5).round(1)
    return pd.concat([first.assign(visit="bl"), later.assign(visit="m06")], ignore_index=True)


KINDS = {
    "clear": lambda: study(),
    "weak": lambda: study(loss=0.16),
    "no disease": lambda: study(loss=0.0, seed=1),
    "confounded": lambda: study(older=12.0),
    "few people": lambda: study(22, loss=0.3),
    "one pattern": lambda: study(n_patterns=1),
    "gaps": lambda: with_gaps(study()),
    "visits": lambda: with_visits(study(60)),
}


class Told(NamedTuple):
    """A run folder, read without the package, and its report."""

    kind: str
    folder: Path
    html: str
    summary: dict
    given: pd.DataFrame  # the table that was read

    def table(self, name):
        return pd.read_csv(self.folder / f"{name}.csv", keep_default_na=False, na_values=[""])

    def ages(self, diagnosis):
        return self.given.loc[self.given["diagnosis"] == diagnosis, "age"]

    @property
    def folded(self):
        return self.summary["verdict"] in ("not reproducible", "no difference", "not testable")

    @property
    def people(self):
        """Return the scores of everybody at the first visit."""
        rows = self.table("r_indices")
        return rows[rows["first_visit"]] if "first_visit" in rows else rows


@pytest.fixture(scope="session", params=KINDS)
def told(request, tmp_path_factory):
    """Return a run of linear models for one kind of study, and its report without figures."""
    folder, table = tmp_path_factory.mktemp("runs"), KINDS[request.param]()
    table.to_csv(folder / "people.csv", index=False)
    roles = TableSettings(covariates="age,sex", clinical="memory", visit="visit" if "visit" in table else None)
    search = SearchSettings(preset="linear", n_repetitions=3)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", UserWarning)  # about so few people
        drawn = {"figure_svg": lambda *_: "<svg></svg>", "figure_png": lambda _, path: path.write_bytes(b"")}
        for name in plots.__all__:
            patch.setattr(plots, name, drawn.get(name, lambda *_, **__: None))
        fit_table(folder / "people.csv", folder / "run", roles, search, OutputSettings(report=False))
        page = make_report(folder / "run").html
    summary = json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))
    return Told(request.param, folder / "run", page, summary, pd.read_csv(folder / "people.csv"))
