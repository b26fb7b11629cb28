"""A second of linear algebra on a table before anything is trained, and how many people a study needs.

The test of `rindices check` and of its page is the one that `fit` runs, with the same random numbers; the patterns are
those of one linear model. The chance of finding patterns is read from a table of simulated studies that is shipped with
the package, made by ``experiments/planning.py``. A study counts as having found its patterns if patients and controls
differ and at least as many directions replicate in held-out people, which is also the basis of the verdict and of
the automatic number of patterns. Severities are those of the linear model.
"""

import warnings
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import binomtest, norm

from rindices import linear, plots
from rindices.cohort import Cohort, correction_of
from rindices.estimator import ContrastiveFactors
from rindices.judging.agreement_and_misfit import match_patterns
from rindices.judging.spectrum import NotTestable, Spectrum, look
from rindices.judging.verdict_and_separation import differences_that_count, evidence_of, likely_missed
from rindices.pages.elements import Gallery, Picture
from rindices.pages.verdict_section import spectrum_picture
from rindices.problems import Curtain, InputError, Remedy, Wording, counted, listed
from rindices.regions import known_regions
from rindices.run.check_table import CheckedTable, FirstLook, PreviewedPattern, refused_for
from rindices.run.plan import balance_of, time_needed
from rindices.schema.role_guesses import pairs_of_sides
from rindices.settings import SearchSettings
from rindices.simulate.healthy_people import own_people
from rindices.tables import read_table
from rindices.training.starts import power_of_uniform

PATTERNS, STRENGTHS = (1, 2, 3), (0.5, 1.0, 2.0)
SIZES, REGIONS = (28, 40, 57, 80, 113, 160, 226, 320, 450), (34, 48, 68, 96, 128)  # in steps of about √2
SHARE = 0.25  # of the regions, which a pattern changes
N_PERMUTATIONS = 39  # enough for p to reach 0.05; a study takes half a second
LIKE = 20  # studies simulated from the user's own controls
_FILE = Path(__file__).with_name("planning_grid.csv")
_WIDTH = 0.5  # bandwidth in doublings: how far studies of other sizes count
_NEWTON = 30  # steps
_STEEPEST = 5.0  # prior sd of the slopes, in log odds per doubling


class SimulatedStudy(NamedTuple):
    """Result of a simulated study: whether all patterns were found, and the error and concordance of severities."""

    found: bool
    error: float
    concordance: float


def simulated_study(
    healthy: np.ndarray, design: np.ndarray | None, n_controls: int, n_patterns: int, strength: float, seed: int
) -> SimulatedStudy:
    """Add patterns to healthy people, and look for them.

    Parameters
    ----------
    healthy
        People × regions; the first `n_controls` stay controls.
    design
        Their covariates as numbers.
    n_controls, n_patterns
        Number of controls, and of patterns.
    strength
        Change of a quarter of the regions at severity 1, in sd of controls. Severities are uniform.
    seed
        Seed of patterns and severities.
    """
    rng, (n_people, n_regions) = np.random.default_rng(seed), healthy.shape
    patient = np.arange(n_people) >= n_controls
    values = (healthy - healthy[:n_controls].mean(axis=0)) / healthy[:n_controls].std(axis=0)
    maps = np.zeros((n_patterns, n_regions))
    for own in maps:
        own[rng.choice(n_regions, max(1, round(SHARE * n_regions)), replace=False)] = -strength
    severities = rng.uniform(size=(n_people - n_controls, n_patterns))
    values[patient] += severities @ maps
    seen = look(values, patient, design, seed=seed, n_permutations=N_PERMUTATIONS)
    columns = np.column_stack([np.ones(n_people), *([] if design is None else [design])])
    values = values - columns @ np.linalg.lstsq(columns[~patient], values[~patient], rcond=None)[0]
    values = values / values[~patient].std(axis=0)
    model = linear.sparse_factors(values[~patient], values[patient], n_patterns, seed, quick=True)
    scores = model.severities(values[patient]) / (model.mean * (1 + power_of_uniform(model.mean)))
    order, concordances = match_patterns(severities, scores)
    error = float(np.sqrt(np.mean((np.clip(scores[:, order], 0, None) - severities) ** 2)))
    return SimulatedStudy(bool(seen.differs and seen.found_again >= n_patterns), error, float(np.mean(concordances)))


@cache
def _grid() -> pd.DataFrame:
    """Return the table of simulated studies; a test verifies that this version of the procedure made it."""
    return pd.read_csv(_FILE, comment="#")


def chances(n_controls: int, n_patients: int, n_regions: int = 68) -> pd.DataFrame:
    """Return the chance of finding one, two or three patterns in a study of this size.

    Estimated by local regression on the logarithms of sizes: logistic for what was found, linear for the rest. The
    closer a simulated study is in size, the more it counts.

    Returns
    -------
    DataFrame
        ``patterns``, ``strength`` (change at severity 1, in sd), ``studies`` (effective number), ``chance`` of finding
        all with ``low`` and ``high`` (95 %), RMS ``error`` of severities, and their ``concordance`` with the truth.

    Raises
    ------
    InputError
        If the study is smaller or larger than those simulated, or has fewer than two regions.
    """
    for name, number in (("control", n_controls), ("patient", n_patients)):
        if not min(SIZES) <= number <= max(SIZES):
            raise InputError(
                f"The simulated studies have {min(SIZES)} to {max(SIZES)} people per group, but you asked for "
                f"{counted(number, name)}.\n"
                "Choose a number in this range, or simulate studies from your own controls with ",
                Remedy("like"),
                ".",
            )
    if n_regions < 2:
        raise InputError(Remedy("regions"), f" should be at least 2, but got {n_regions}.")
    asked = n_controls, n_patients, np.clip(n_regions, min(REGIONS), max(REGIONS))
    grid = _grid()
    away = np.log2(grid[["controls", "patients", "regions"]].to_numpy() / np.array(asked))
    weight = np.exp(-(away**2).sum(axis=1) / (2 * _WIDTH**2))
    columns = np.column_stack([np.ones(len(away)), away])
    rows = []
    for (patterns, strength), own in grid.groupby(["patterns", "strength"]):
        here, near = weight[own.index], columns[own.index]
        root = np.sqrt(here * own["studies"].to_numpy())
        # On a log scale: occasionally a study of weak patterns has an error many times larger than the others.
        logs = root[:, None] * np.log(own[["error", "concordance"]].to_numpy())
        miss, concordance = np.exp(np.linalg.lstsq(root[:, None] * near, logs, rcond=None)[0][0]).tolist()
        found = _local_share(near, here, own["found"].to_numpy(), own["studies"].to_numpy())
        rows.append({"patterns": patterns, "strength": strength} | found | {"error": miss, "concordance": concordance})
    return pd.DataFrame(rows)


def _local_share(columns: np.ndarray, weight: np.ndarray, found: np.ndarray, studies: np.ndarray) -> dict[str, float]:
    """Return the share of studies that found all where `columns` after the first are 0, with its 95 % interval.

    Logistic regression by Newton's method. One pseudo-study at the mean of the others, counted half as found and half
    as not, keeps the estimate finite where all studies, or none, found their patterns.
    """
    columns, weight = np.vstack([np.average(columns, axis=0, weights=weight), columns]), np.append(1, weight)
    found, studies = np.append(0.5, found), np.append(1, studies)
    prior = np.diag([0, *[_STEEPEST**-2] * (columns.shape[1] - 1)])
    odds = np.zeros(columns.shape[1])
    for _ in range(_NEWTON):
        share = expit(columns @ odds)
        varied = weight * studies * share * (1 - share)
        information = prior + columns.T @ (varied[:, None] * columns)
        odds = odds + np.linalg.solve(information, columns.T @ (weight * (found - studies * share)) - prior @ odds)
    inverse = np.linalg.inv(information)
    error = np.sqrt((inverse @ (columns.T @ ((weight * varied)[:, None] * columns)) @ inverse)[0, 0])
    low, chance, high = expit(odds[0] + norm.ppf(0.975) * error * np.array([-1, 0, 1]))
    number = (weight @ studies) ** 2 / (weight**2 @ studies)
    return {"studies": round(float(number), 1), "chance": float(chance), "low": float(low), "high": float(high)}


def by_size(n_regions: int) -> pd.DataFrame:
    """Return `chances` for studies of increasing size with equal groups: ``people`` in each group."""
    return pd.concat([chances(n, n, n_regions).assign(people=n) for n in SIZES], ignore_index=True)


def like(healthy: np.ndarray, design: np.ndarray | None, n_controls: int, n_patients: int) -> pd.DataFrame:
    """Return the same as `chances`, from studies of simulated people who resemble the user's own controls.

    Covariates are those of controls drawn with replacement. Regions are drawn around the values predicted from these,
    from a normal distribution with the controls' covariance (Ledoit-Wolf shrinkage): nobody is in a study twice. There
    are no more patterns than regions.
    """
    columns = np.column_stack([np.ones(len(healthy)), *([] if design is None else [design])])
    effects, _, rank, _ = np.linalg.lstsq(columns, healthy, rcond=None)
    rest = healthy - columns @ effects
    freedom = max(len(rest) - rank, 1)
    root = linear.Whitening.of(rest / rest.std(axis=0)).root * np.sqrt((rest**2).sum(axis=0) / freedom)
    rows = []
    for patterns, strength in ((m, s) for m in PATTERNS if m <= healthy.shape[1] for s in STRENGTHS):
        studies = []
        for seed in range(LIKE):
            rng = np.random.default_rng([seed, patterns])
            people = rng.integers(0, len(healthy), n_controls + n_patients)
            drawn = columns[people] @ effects + rng.standard_normal((len(people), len(root))) @ root
            own = None if design is None else design[people]
            try:
                studies.append(simulated_study(drawn, own, n_controls, patterns, strength, seed))
            except NotTestable as error:
                raise InputError(
                    f"Differences between the groups cannot be tested in a study of this size: {error}.\n"
                    "Plan a larger study."
                ) from error
        means = pd.DataFrame(studies).mean()
        low, high = binomtest(round(LIKE * means["found"]), LIKE).proportion_ci(method="wilson")
        rows.append(
            {
                "patterns": patterns,
                "strength": strength,
                "studies": LIKE,
                "chance": means["found"],
                "low": low,
                "high": high,
                "error": means["error"],
                "concordance": means["concordance"],
            }
        )
    return pd.DataFrame(rows)


def like_own(path: Path, n_controls: int, n_patients: int) -> tuple[pd.DataFrame, int]:
    """Return the result of `like` for the healthy people in a table, and the number of their regions."""
    try:
        people = own_people(read_table(path), None, None, None, np.random.default_rng(0))
    except InputError as error:  # it names the setting of `simulate`
        raise InputError(*(Remedy("like") if part == Remedy("controls") else part for part in error.message)) from error
    columns = [people.table[name] for name in ("age", "sex") if name in people.table]
    numbers = [one.to_numpy(float) if one.dtype.kind in "fi" else pd.factorize(one)[0] for one in columns]
    design = np.column_stack(numbers) if numbers else None
    healthy = people.table[people.regions].to_numpy(float)
    return like(healthy, design, n_controls, n_patients), len(people.regions)


def in_words(n_controls: int, n_patients: int, n_regions: int) -> str:
    """Return in words what a study of this size can find, or nothing where the table does not apply.

    Examples
    --------
    >>> in_words(5, 5, 68)
    ''
    """
    try:
        table = chances(n_controls, n_patients, n_regions)
    except InputError:
        return ""
    said = {
        strength: "{:.0f}, {:.0f} and {:.0f} %".format(*100 * own.sort_values("patterns")["chance"])
        for strength, own in table.groupby("strength")
    }
    mild, usual, _ = STRENGTHS
    return (
        f"Simulated studies of this size find one, two and three patterns in {said[usual]} of cases, respectively, "
        f"when each pattern changes a quarter of the regions by {usual:g} control SD at severity 1. When the change is "
        f"only {mild:g} SD, these figures are {said[mild]}."
    )


_ROWS = 6  # regions drawn for each pattern


def first_look(cohort: Cohort) -> FirstLook:
    """Look at a cohort as `fit` with its default settings does before training."""
    search, (regions, patient, covariates) = SearchSettings(), cohort.of_training()
    model = ContrastiveFactors(correction=correction_of(cohort.settings), random_state=search.random_state)
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        model.fit(regions, patient, covariates)
    spectrum, differing = model.spectrum_, differences_that_count(balance_of(cohort))
    is_counted = spectrum is not None and spectrum.differs and spectrum.found_again > 0
    needed = time_needed(len(patient), regions.shape[1], model.n_patterns_, search, n_numbers=1 if is_counted else 2)
    return FirstLook(
        headline=_headline(spectrum, model.untestable_),
        verdicts=_verdicts(spectrum, differing) + ("" if spectrum is None else _few(cohort, spectrum.differs)),
        chances=in_words(cohort.n_controls, cohort.n_patients, regions.shape[1]),
        time=str(needed),
        seconds=needed.seconds,
        warnings=tuple(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning))),
        n_patterns=model.n_patterns_,
        patterns=_preview(model, regions[~patient]) if spectrum is not None and spectrum.differs else (),
        **({} if spectrum is None else asdict(evidence_of(spectrum))),
    )


def with_first_look(checked: CheckedTable, cohort: Cohort, wording: Wording) -> CheckedTable:
    """Return a checked table with the first look at its people, or with the reasons for refusing them."""
    try:
        return checked.model_copy(update={"look": first_look(cohort)})
    except InputError as error:
        curtain = Curtain({*cohort.people["participant_id"]})
        return checked.model_copy(update=refused_for(error, error.problems, curtain, wording))


def _headline(spectrum: Spectrum | None, untestable: str) -> str:
    if spectrum is None:
        return f"Differences between patients and controls cannot be tested: {untestable}."
    if not spectrum.differs:
        return f"Patients and controls differ no more than expected by chance (p = {spectrum.p:.2g})."
    if not spectrum.found_again:
        return (
            f"Patients and controls differ (p = {spectrum.p:.2g}), but held-out patients do not clearly vary "
            "more than controls in any direction."
        )
    return (
        f"Patients and controls differ (p = {spectrum.p:.2g}) in at least {counted(spectrum.found_again, 'direction')}."
    )


def _verdicts(spectrum: Spectrum | None, differing: list[str]) -> str:
    """Return the verdicts that a table can get, and why."""
    if spectrum is None:
        return "The only possible verdict is “not testable”."
    if not spectrum.differs:
        return f"The only possible verdict is “no difference”; {likely_missed(*spectrum.detectable)}"
    good = "“reproducible” or “weak” (suitable only for comparing groups)"
    if differing:
        good = f"“confounded”, because the groups also differ in {listed(differing, joiner=' and ')}"
    return (
        f"If results from two halves of the sample agree, the verdict will be {good}. "
        "Otherwise, it will be “not reproducible”."
    )


def _few(cohort: Cohort, differs: bool) -> str:
    """Return what may be missed if a group has fewer people than there are regions, and what helps."""
    number, group = min((cohort.n_controls, "control"), (cohort.n_patients, "patient"))
    regions = list(map(str, cohort.features))
    if number >= len(regions):
        return ""
    sides = "average left and right regions, " if len(pairs_of_sides(regions)) > len(regions) / 4 else ""
    missed = "weaker additional patterns may be missed" if differs else "a smaller difference would be missed"
    return (
        f" With {counted(number, group)} and {counted(len(regions), 'region')}, {missed}. "
        f"To prevent this, {sides}choose fewer regions, or add people."
    )


def _preview(model: ContrastiveFactors, controls: pd.DataFrame) -> tuple[PreviewedPattern, ...]:
    """Return the regions of each pattern, the strongest first."""
    names, scaler = np.array(controls.columns, str), model.preprocessing_.scaler
    sizes = np.where(controls.min() < 0, np.nan, np.abs(scaler.mean))
    patterns = []
    for number, change in enumerate(model.changes_, start=1):
        order = np.argsort(-np.abs(change), kind="stable")
        percent = 100 * change * scaler.sd / sizes
        patterns.append(
            PreviewedPattern(
                pattern=number,
                regions=tuple(names[order].tolist()),
                changes=tuple(change[order].tolist()),
                percent=tuple(None if np.isnan(one) else float(one) for one in percent[order]),
            )
        )
    return tuple(patterns)


def look_pictures(look: FirstLook) -> tuple[Picture | None, Picture | None]:
    """Return drawings of the directions compared with chance, and of the patterns of the linear model."""
    gallery = Gallery()
    scree = None if look.limit is None else spectrum_picture(gallery, look.eigenvalues, look.band, look.limit)
    rows = [
        {"pattern": one.pattern, "region": name, "change_sd": change, "change_percent": percent, "spread_sd": np.nan}
        for one in look.patterns
        for name, change, percent in zip(one.regions, one.changes, one.percent, strict=True)
    ]
    if not rows:
        return scree, None
    words = [f"Pattern {one.pattern}: {listed(one.regions, 3)}" for one in look.patterns]
    titles = {name: region.title for name, region in known_regions(look.patterns[0].regions).items()}
    figure = plots.pattern_dots(pd.DataFrame(rows).astype({"change_percent": float}), top=_ROWS, names=titles)
    return scree, gallery.draw("preview", figure, f"Regions that change most in a linear model. {'. '.join(words)}.")
