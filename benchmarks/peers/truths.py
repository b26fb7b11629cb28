"""Cohorts on which all methods are compared: our kinds, real people, the authors' sample, and other models of disease.

Every cohort has a true severity of each pattern in each patient and, if each patient has exactly one pattern, labels.
Apart from regression on the truth, methods are told only who is a patient and how many patterns there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices import simulate_cohort

SPREAD = 1.71  # of healthy people, for the paper's difficulty (experiments/paper/matched.py)
FIRST_SEED = 7_300  # these cohorts are not used anywhere else
STRENGTH = 0.5  # severity of a discrete subtype
Z_EVENTS, Z_END = (1, 2, 3), 5  # from SuStaIn's tutorial: sd of controls at which a lobe becomes abnormal; at the end
NOT_REGIONS = ("participant_id", "diagnosis", "age", "sex")

LOBES = {
    "frontal": "AntOrbGy FroOpe FroPo RecGy LatOrbGy MedFroCbr MidFroGy MedOrbGy SupMedFroGy InfFroGy InfFroOrbGy "
    "PosOrbGy SCA SupFroGy InfFroAngGy",
    "sensorimotor": "CenOpe MedPoCGy MedPrcGy PoCGy PrcGy Cbr+Mot",
    "temporal": "FusGy InfTemGy MidTemGy Pla Tem SupTemGy TemPo TemTraGy",
    "medial temporal": "Amy Hip Ent ParHipGy",
    "parietal": "AngGy PCu ParOpe SupMarGy SupParLo",
    "occipital": "Cal+Cbr Cun InfOccGy LinGy MidOccGy OccPo OccFusGy SupOccGy",
    "cingulate and insula": "AntCinGy MidCinGy PosCinGy AntIns PosIns",
    "deep grey matter": "Acc Cau Pal Put ThaPro BasCbr+FobBr",
}


class Cohort(NamedTuple):
    """People, and the truth about the patients among them."""

    regions: np.ndarray  # (people, regions)
    patient: np.ndarray  # (people,)
    truth: np.ndarray  # (patients, patterns); all 0 without disease
    discrete: bool  # each patient has exactly one pattern
    lobes: np.ndarray  # (lobes, regions), weights that sum to 1; no lobes if regions have no names

    @property
    def n_patterns(self) -> int:
        """The number of patterns, which all methods are given."""
        return self.truth.shape[1]

    @property
    def labels(self) -> np.ndarray:
        """The pattern of each patient, if there is exactly one."""
        return self.truth.argmax(axis=1)


def lobes_of(names: list[str]) -> np.ndarray:
    """Return the weight of each region in the mean of each lobe, with both sides together."""
    members = [np.isin([name[1:] for name in names], words.split()) for words in LOBES.values()]
    return np.array([member / member.sum() for member in members if member.any()]).reshape(-1, len(names))


def simulated(kind: str, seed: int, discrete: bool = False, **options: object) -> Cohort:
    """Simulate a cohort; `options` are those of `simulate_cohort`."""
    made = simulate_cohort(kind, seed=FIRST_SEED + seed, **options)
    regions = made.table.drop(columns=[name for name in NOT_REGIONS if name in made.table])
    patient = (made.table["diagnosis"] == "PT").to_numpy()
    truth = made.truth.drop(columns="participant_id").to_numpy(float)
    return Cohort(regions.to_numpy(float), patient, truth, discrete, lobes_of(list(regions)))


def real(seed: int) -> Cohort:
    """Add the patterns of `basic` to real healthy people."""
    people = pd.read_csv(data() / "ixi_gm_volumes.csv")
    return simulated("basic", seed, controls=people, n_controls=len(people) // 3)


def authors(seed: int) -> Cohort:
    """Read the sample cohort of the authors' package; there is only one."""
    table = pd.read_csv(data() / "official_sample" / "sample_roi.csv")
    truth = pd.read_csv(data() / "official_sample" / "sample_data_ground_truth.csv").set_index("participant_id")
    patient = (table["diagnosis"] == 1).to_numpy()
    regions = table.iloc[:, 2:].to_numpy(float)
    known = truth.loc[table["participant_id"][patient]].to_numpy(float)
    return Cohort(regions, patient, known, False, np.zeros((0, regions.shape[1])))


def sequence(seed: int, independent: bool = False) -> Cohort:
    """Simulate lobes that become abnormal in one of two orders; each patient is at a random stage of one of them.

    As in SuStaIn's z-score model, an event is that a lobe reaches 1, 2 or 3 sd of controls below their mean; between
    events a lobe falls linearly, to 5 sd after its last one. The true severity is the stage in the patient's own order,
    and 0 in the other. With `independent`, regions of healthy people vary independently, as SuStaIn assumes.
    """
    healthy = simulated("null", seed)
    rng = np.random.default_rng(FIRST_SEED + seed)
    if independent:
        healthy = healthy._replace(regions=np.random.default_rng(seed).permuted(healthy.regions, axis=0))
    controls = healthy.regions[~healthy.patient]
    mean, sd = controls.mean(axis=0), controls.std(axis=0)
    lobe_sd = ((controls - mean) / sd @ healthy.lobes.T).std(axis=0)  # of the mean of z-scores
    n_lobes, n_events = len(healthy.lobes), len(healthy.lobes) * len(Z_EVENTS)
    n_patients = int(healthy.patient.sum())
    subtype, stage = rng.integers(2, size=n_patients), rng.integers(1, n_events + 1, size=n_patients)
    z = np.zeros((n_patients, n_lobes))
    for number in range(2):
        order = rng.permutation(np.repeat(np.arange(n_lobes), len(Z_EVENTS)))
        own = subtype == number
        for lobe in range(n_lobes):
            places = [0, *(1 + np.flatnonzero(order == lobe)), n_events + 1]
            z[own, lobe] = np.interp(stage[own], places, [0, *Z_EVENTS, Z_END])
    regions = healthy.regions.copy()
    lost = (z * lobe_sd) @ (healthy.lobes > 0) * sd
    regions[healthy.patient] = np.maximum(regions[healthy.patient] - lost, 0.01 * mean)
    truth = np.where(subtype[:, None] == np.arange(2), stage[:, None] / n_events, 0.0)
    return healthy._replace(regions=regions, truth=truth, discrete=True)


def data() -> Path:
    """Return the folder of data that is not part of the project."""
    return Path(os.environ["RINDICES_DATA"])


COHORTS: Mapping[str, Callable[[int], Cohort]] = {
    **{kind: partial(simulated, kind, spread=SPREAD) for kind in ("basic", "overlap", "scarce", "noise", "mild")},
    "real people": real,
    "authors' sample": authors,
    "subtypes": lambda seed: simulated("basic", seed, True, spread=SPREAD, severities=STRENGTH * np.eye(3)),
    "sequence": sequence,
    "sequence, independent": partial(sequence, independent=True),
    "one pattern": partial(simulated, "basic", n_patterns=1, spread=SPREAD),
    "no disease": partial(simulated, "null", spread=SPREAD),
    "small": partial(simulated, "basic", n_controls=80, n_patients=120),  # to try the methods
}
