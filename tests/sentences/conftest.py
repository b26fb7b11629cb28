import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rindices import plots
from rindices.pages.report import make_report
from rindices.run.fit_table import fit_table
from rindices.settings import OutputSettings, SearchSettings, TableSettings
from tests.sentences.kinds import KINDS


@dataclass
class Told:
    """What a run folder holds, read without the package, and what the report makes of it."""

    folder: Path
    html: str
    summary: dict = field(init=False)

    def __post_init__(self):
        self.summary = json.loads((self.folder / "summary.json").read_text(encoding="utf-8"))

    def table(self, name):
        return pd.read_csv(self.folder / f"{name}.csv", keep_default_na=False, na_values=[""])

    @property
    def given(self):
        """The table that was read."""
        return pd.read_csv(self.folder.parent / "people.csv")

    def ages(self, diagnosis):
        return self.given.loc[self.given["diagnosis"] == diagnosis, "age"]

    def uncertainty(self):
        """Return how much more squared error the effects of age and sex have in patients than in controls."""
        given = self.given
        design = np.column_stack([np.ones(len(given)), given["age"], given["sex"] == "M"]).astype(float)
        own = design[given["diagnosis"] == "CN"]
        leverage = np.einsum("ij,jk,ik->i", design, np.linalg.inv(own.T @ own), design)
        patients = (given["diagnosis"] == "AD").to_numpy()
        return f"{leverage[patients].mean() / leverage[~patients].mean():.1f}"

    @property
    def folded(self):
        return self.summary["verdict"] in ("not found again", "no difference", "not testable")

    @property
    def people(self):
        """Scores of everybody at the first visit."""
        rows = self.table("r_indices")
        return rows[rows["first_visit"]] if "first_visit" in rows else rows


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Return a function that gives the run of a kind; each is made once, by linear models, and nothing is drawn."""
    made = {}

    def run_of(kind):
        if kind not in made:
            folder, table = tmp_path_factory.mktemp("runs"), KINDS[kind]()
            table.to_csv(folder / "people.csv", index=False)
            roles = TableSettings(covariates="age,sex", clinical="memory", visit="visit" if "visit" in table else None)
            search = SearchSettings(preset="linear", n_repetitions=3)
            with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
                warnings.simplefilter("ignore", UserWarning)  # of so few people
                patch.setattr(plots, "figure_svg", lambda figure, name="": "<svg></svg>")
                for name in set(plots.__all__) - {"figure_svg", "figure_png"}:
                    patch.setattr(plots, name, lambda *_, **__: None)
                patch.setattr(plots, "figure_png", lambda figure, path: path.write_bytes(b""))
                fit_table(folder / "people.csv", folder / "run", roles, search, OutputSettings(report=False))
                made[kind] = Told(folder / "run", make_report(folder / "run").html)
        return made[kind]

    return run_of
