"""Cohorts whose patients are healthy people with a known disease added (section 4.2 of the paper)."""

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rindices.files import write_csv
from rindices.problems import InputError, Remedy, check_choice
from rindices.settings import SimulationSettings
from rindices.simulate.healthy_people import (
    HealthyPeople,
    ReferencePopulation,
    check_between,
    drawn_people,
    own_people,
)
from rindices.simulate.patterns import (
    KINDS,
    MAX_PATTERNS,
    Correlation,
    Kind,
    draw_severities,
    named_patterns,
    random_patterns,
    regional_losses,
)

# Of settings. A change is relative to the largest, scan noise to the variation between people; if healthy brains varied
# far more than at 5, volumes would be negative.
_LIMITS = {
    "n_patterns": (1, MAX_PATTERNS),
    "seed": (0, 2**32 - 1),
    "spread": (0.01, 5.0),
    "n_visits": (1, 20),
    "progression": (-1.0, 1.0),
    "scan_noise": (0.0, 1.0),
}


@dataclass(frozen=True, eq=False)
class SimulatedCohort:
    """A cohort and the truth about it.

    Attributes
    ----------
    table : DataFrame
        One row per person in random order: participant_id, diagnosis ("CN" or "PT"), age, sex (or whatever the given
        table of controls contains), regions.
    truth : DataFrame
        One row per patient and visit, in the order of ``table``: participant_id, visit if there are several, and
        the severities s1 to sM.
    patterns : mapping of str to tuple of str
        Regions that each pattern p1 to pM changes.
    losses : DataFrame
        Fraction of each region lost at severity 1: one row per pattern, one column per region.
    note : str
        Origin of people, patterns and severities, in one sentence each.

    Examples
    --------
    >>> cohort = simulate_cohort("basic", n_controls=50, n_patients=100)
    >>> cohort.table["diagnosis"].value_counts().to_dict()
    {'PT': 100, 'CN': 50}
    """

    table: pd.DataFrame
    truth: pd.DataFrame
    patterns: Mapping[str, tuple[str, ...]]
    losses: pd.DataFrame
    note: str

    def save(self, table_path: str | os.PathLike[str], truth_path: str | os.PathLike[str] | None = None) -> None:
        """Write the table and, if a path is given, the truth as CSV with six significant digits.

        Parameters
        ----------
        table_path, truth_path : path
            Files to write; missing folders are created, and an existing file is replaced atomically.
        """
        if truth_path is not None and Path(truth_path).resolve() == Path(table_path).resolve():
            raise InputError(
                f"Expected two different files, but got {table_path} twice. Choose another file for the "
                "true severities with ",
                Remedy("truth"),
                ".",
            )
        write_csv(self.table, Path(table_path))
        if truth_path is not None:
            write_csv(self.truth, Path(truth_path))


def simulate_cohort(
    kind: str = "basic",
    *,
    n_controls: int | None = None,
    n_patients: int | None = None,
    n_patterns: int = SimulationSettings.n_patterns,
    seed: int = SimulationSettings.seed,
    controls: pd.DataFrame | None = None,
    regions: Sequence[str] | None = None,
    severities: str | pd.DataFrame | np.ndarray = SimulationSettings.severities,
    severity_correlation: Correlation | None = None,
    severity_age: float = SimulationSettings.severity_age,
    spread: float = SimulationSettings.spread,
    n_visits: int = SimulationSettings.n_visits,
    progression: float = SimulationSettings.progression,
    scan_noise: float = SimulationSettings.scan_noise,
) -> SimulatedCohort:
    """Simulate a cohort of controls, and of patients with known severities.

    The same seed gives the same people and severities for every kind, so that kinds can be compared pairwise.

    Parameters
    ----------
    kind : {"basic", "overlap", "scarce", "noise", "mild", "dense", "half", "graded", "signed", "shift", "null"}
        Kind of cohort: the first five are the paper's, the others are ours; in "null", patients have no disease.
        ``KINDS`` describes them.
    n_controls, n_patients : int, optional
        Sizes of the groups, by default 492 and 900. With ``controls``, the default is a third of its rows and the rest;
        if one is given, the other is the rest.
    n_patterns : int
        Number of disease patterns, 1 to 8.
    seed : int
        Seed of all random draws.
    controls : DataFrame, optional
        Your own healthy people instead of the embedded population: region columns and any others, which are kept.
        Rows are split at random into controls and patients. Patterns are those of the paper if the columns include
        its regions, and drawn at random otherwise; ``note`` says which.
    regions : sequence of str, optional
        Region columns of ``controls``; by default all numeric columns except well-known covariates.
    severities : {"uniform", "mild", "absent", "severe"}, or a table or array of shape (n, n_patterns)
        Distribution of each pattern's severities: uniform on [0, 1]; Beta(1, 3); exactly 0 in half of the patients
        and uniform in the others; Beta(3, 1). A table has the columns s1 to sM, from 0 to 1; its rows are drawn as a
        whole, with replacement. Without disease ("null"), all severities are 0.
    severity_correlation : float or array of shape (n_patterns, n_patterns), optional
        Correlation between the patterns' severities, on the scale of a Gaussian copula; independent by default.
        Not available with a table of severities, whose own correlation is preserved.
    severity_age : float
        Correlation of every pattern's severity with the patient's age, by normal scores, between -1 and 1; the
        distribution of severities is unchanged. ``severity_correlation`` then refers to people of the same age. Not
        available with a table of severities.
    spread : float
        How much healthy brains vary, relative to the population or to `controls`; at 1.7, regression trained on the
        truth is as accurate as in the paper.
    n_visits : int
        Visits of each person, a year apart; with several, table and truth have a column ``visit`` (bl, m12, m24 ...).
        Not available with ``controls``, because it is unknown how these people would age.
    progression : float
        With several visits: mean yearly increase of each severity; individual increases range from none to twice as
        much.
    scan_noise : float
        With several visits: sd of the noise of one scan, relative to the sd between people. Half of its variance is
        correlated between regions in the same way as their volumes.

    Returns
    -------
    SimulatedCohort
        Table, truth and patterns.

    Examples
    --------
    >>> cohort = simulate_cohort("scarce", n_controls=20, n_patients=30, seed=1)
    >>> cohort.truth.columns.tolist()
    ['participant_id', 's1', 's2', 's3']
    """
    check_choice("The kind of cohort", kind, KINDS)
    given = (n_patterns, seed, spread, n_visits, progression, scan_noise)
    for value, (name, limits) in zip(given, _LIMITS.items(), strict=True):
        check_between(name, value, *limits)
    chosen_kind = KINDS[kind]
    people_rng, pattern_rng, severity_rng, effect_rng, order_rng, visit_rng = np.random.default_rng(seed).spawn(6)
    people, origin = _choose_people(controls, regions, n_controls, n_patients, n_visits, people_rng)
    people = _varying(people, spread)
    true, law = draw_severities(severities, n_patterns, severity_correlation, severity_age, people, severity_rng)
    if chosen_kind.atrophy == 0:
        patterns: dict[str, tuple[str, ...]] = {f"p{k}": () for k in range(1, n_patterns + 1)}
        true, law, about = (
            np.zeros_like(true),
            "Severities: all 0.",
            ("Patterns: none; patients do not differ from controls."),
        )
    else:
        patterns, about = _choose_patterns(chosen_kind, n_patterns, people.regions, pattern_rng)
    losses = regional_losses(chosen_kind, patterns, people.regions, pattern_rng)
    if chosen_kind.shape in ("dense", "half"):
        patterns = {name: tuple(np.array(people.regions)[row != 0]) for name, row in zip(patterns, losses, strict=True)}
        about = f"Patterns: drawn at random ({chosen_kind.description})."
    lost = pd.DataFrame(losses, list(patterns), people.regions)
    rates = visit_rng.uniform(0, 2 * progression, true.shape) * bool(chosen_kind.atrophy)
    parts = []
    for years in range(n_visits):  # everything but time and noise is drawn identically at all visits
        severity, seen, noise = true + years * rates, people, None
        if n_visits > 1:
            population = ReferencePopulation.load()
            seen = people._replace(table=population.aged(people.table, years))
            noise = population.scan_noise(len(people.table), scan_noise, visit_rng)
        diseased = _with_disease(seen, severity, patterns, lost, chosen_kind, deepcopy(effect_rng), noise)
        parts.append(_assemble(diseased, people.n_controls, severity, deepcopy(order_rng)))
    table, truth = parts[0] if n_visits == 1 else (_by_person(*of) for of in zip(*parts, strict=True))
    return SimulatedCohort(table, truth, patterns, lost, note=f"{origin} {about} {law}")


def _varying(people: HealthyPeople, spread: float) -> HealthyPeople:
    """Return healthy people who deviate `spread` times as much from their mean; no volume is below a tenth of it."""
    if spread == 1:
        return people
    volumes = people.table[people.regions]
    means = volumes.mean()
    wider = (means + spread * (volumes - means)).clip(lower=0.1 * means, axis=1)
    return people._replace(table=people.table.assign(**wider))


def _by_person(*visits: pd.DataFrame) -> pd.DataFrame:
    """Combine the tables of visits, keeping each person's visits together."""
    table = pd.concat([part.assign(visit=f"m{12 * years:02d}" if years else "bl") for years, part in enumerate(visits)])
    table = table.sort_index(kind="stable").reset_index(drop=True)
    return table[["participant_id", "visit", *table.columns.drop(["participant_id", "visit"])]]


def _choose_people(
    controls: pd.DataFrame | None,
    regions: Sequence[str] | None,
    n_controls: int | None,
    n_patients: int | None,
    n_visits: int,
    rng: np.random.Generator,
) -> tuple[HealthyPeople, str]:
    """Take people from the given table, or draw them; return them with a note on which."""
    if controls is not None:
        if n_visits > 1:
            raise InputError(
                "Expected one visit with ",
                Remedy("controls"),
                f", but got {n_visits}: it is not known how the people in your table would age. Request one visit, or "
                "omit the table.",
            )
        return (
            own_people(controls, regions, n_controls, n_patients, rng),
            "People: taken from the table of controls provided, and split at random.",
        )
    if regions is not None:
        raise InputError(
            "`regions` selects columns from a table of controls. Provide that table with ", Remedy("controls"), "."
        )
    return (
        drawn_people(n_controls, n_patients, rng),
        "People: drawn from the embedded reference population (IXI, under 70).",
    )


def _choose_patterns(
    kind: Kind, n_patterns: int, regions: Sequence[str], rng: np.random.Generator
) -> tuple[dict[str, tuple[str, ...]], str]:
    """Take the paper's regions if they all exist, otherwise random ones; return them with a note on which."""
    patterns = named_patterns(kind, n_patterns)
    if {region for pattern in patterns.values() for region in pattern} <= set(regions):
        further = (
            f" (p4 to p{n_patterns} use additional regions and are built in the same way)" if n_patterns > 3 else ""
        )
        return patterns, f"Patterns: as in Table 5 of the paper{further}."
    return (
        random_patterns(kind, n_patterns, regions, rng),
        f"Patterns: drawn at random from {len(regions)} region columns, because some of the paper's regions are "
        "missing.",
    )


def _with_disease(
    people: HealthyPeople,
    severities: np.ndarray,
    patterns: Mapping[str, tuple[str, ...]],
    losses: pd.DataFrame,
    kind: Kind,
    rng: np.random.Generator,
    scan_noise: np.ndarray | None = None,
) -> pd.DataFrame:
    """Shrink the patients' regions: v becomes v - v * severity * N(1, noise) * loss, one pattern after the other.

    The shift shared by all patients follows, then scan noise, by which no region loses more than 99 %.
    """
    volumes = people.table[people.regions].to_numpy(dtype=float, copy=True, na_value=np.nan)
    for severity, (name, pattern) in zip(severities.T, patterns.items(), strict=True):
        places = [people.regions.index(region) for region in pattern]
        cells = np.ix_(np.arange(people.n_controls, len(volumes)), np.array(places, int))
        factor = rng.normal(1, kind.noise, size=(len(severity), len(pattern)))
        volumes[cells] -= volumes[cells] * severity[:, None] * factor * losses.loc[name, list(pattern)].to_numpy()
    volumes[people.n_controls :] *= 1 - kind.shift
    if scan_noise is not None:
        volumes = np.maximum(volumes + scan_noise, 0.01 * volumes)
    changed = pd.DataFrame(volumes, people.table.index, people.regions)
    return pd.concat([people.table.drop(columns=people.regions), changed], axis=1)[people.table.columns]


def _assemble(
    people: pd.DataFrame, n_controls: int, severities: np.ndarray, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Shuffle the rows and number them afterwards, so that neither order nor number reveals the group."""
    order = rng.permutation(len(people))
    shuffled, is_patient = people.iloc[order].reset_index(drop=True), order >= n_controls
    width = max(4, len(str(len(order))))
    ids = (
        shuffled["participant_id"].astype(str)
        if "participant_id" in shuffled
        else pd.Series([f"sub-{i:0{width}d}" for i in range(1, len(order) + 1)])
    )
    first = pd.DataFrame({"participant_id": ids, "diagnosis": np.where(is_patient, "PT", "CN")})
    rest = shuffled.drop(columns=["participant_id", "diagnosis"], errors="ignore")
    truth = pd.DataFrame(
        severities[order[is_patient] - n_controls], columns=[f"s{k}" for k in range(1, severities.shape[1] + 1)]
    )
    truth.insert(0, "participant_id", ids[is_patient].to_numpy())
    return pd.concat([first, rest], axis=1), truth
