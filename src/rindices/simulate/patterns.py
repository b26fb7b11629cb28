"""The simulated disease: which regions each pattern changes, by how much, and how severe it is in each patient.

The first three patterns are those of the paper (section 4.2 and Table 5). Further ones are ours, built in the same way.
Severities are rows of a given table, or follow a distribution, joined by a Gaussian copula: normal scores, which may be
correlated between patterns and with age, are turned into uniform levels, and these into severities at those quantiles.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from rindices.problems import InputError, Remedy, counted, did_you_mean, listed
from rindices.simulate.healthy_people import HealthyPeople, check_between, first_of, numbers_in

MAX_PATTERNS = 8
_LARGEST_CORRELATION = 0.99  # with age; at 1, nothing but age would determine the severities

# Codes of bilateral regions, as in the embedded population; each stands for a left and a right region.
SMALL_OVERLAP = (
    ("Amy", "Hip", "Ent", "InfTemGy", "ParHipGy", "ParOpe", "TemPo"),
    ("Hip", "FroOpe", "MedFroCbr", "MidFroGy", "InfFroGy", "PosIns", "InfFroAngGy"),
    ("AngGy", "LatOrbGy", "MedFroCbr", "MidOccGy", "ParOpe", "SupMarGy", "SupParLo"),
)
LARGE_OVERLAP = (
    ("Amy", "Hip", "Ent", "InfTemGy", "ParHipGy", "ParOpe", "SupParLo", "TemPo"),
    ("Amy", "Hip", "FroOpe", "MedFroCbr", "MidFroGy", "InfFroGy", "PosIns", "InfFroAngGy"),
    ("AngGy", "LatOrbGy", "MedFroCbr", "MidFroGy", "MidOccGy", "ParOpe", "SupMarGy", "SupParLo"),
)
SCARCE = (("Amy", "Hip"), ("MidFroGy", "InfFroGy"), ("AngGy", "SupParLo"))

# Patterns 4 to 8 take their own regions from here: deep grey matter, cingulate, occipital, sensorimotor, temporal.
BEYOND_TABLE_5 = (
    ("Cau", "Put", "ThaPro", "Acc", "AntIns", "BasCbr+FobBr"),
    ("AntCinGy", "PosCinGy", "MidCinGy", "PCu", "SCA", "RecGy"),
    ("Cun", "LinGy", "Cal+Cbr", "InfOccGy", "SupOccGy", "OccPo"),
    ("PrcGy", "PoCGy", "CenOpe", "Cbr+Mot", "MedPrcGy", "MedPoCGy"),
    ("MidTemGy", "SupTemGy", "FusGy", "Tem", "Pla", "TemTraGy"),
)


@dataclass(frozen=True)
class Kind:
    """One kind of simulated cohort.

    Attributes
    ----------
    description : str
        The kind in a few words.
    table_5 : tuple of tuple of str
        Bilateral regions of the paper's three patterns.
    shared : int
        Number of bilateral regions that two neighbouring patterns have in common.
    atrophy : float
        Share of the volume lost at severity 1.
    noise : float
        Standard deviation of the factor (mean 1) by which this loss varies between people and regions.
    shape : {"even", "dense", "half", "graded", "signed"}
        How a pattern's loss is spread over regions; see `regional_losses`.
    shift : float
        Share of every region that every patient loses, whatever the severities.

    Examples
    --------
    >>> KINDS["mild"].atrophy
    0.2
    """

    description: str
    table_5: tuple[tuple[str, ...], ...] = SMALL_OVERLAP
    shared: int = 1
    atrophy: float = 0.3
    noise: float = 0.05
    shape: Literal["even", "dense", "half", "graded", "signed"] = "even"
    shift: float = 0.0


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "basic": Kind("14 regions per pattern, few of them shared"),
        "overlap": Kind("16 regions per pattern, half of them shared", LARGE_OVERLAP, shared=2),
        "scarce": Kind("only 4 regions per pattern, none shared", SCARCE, shared=0),
        "noise": Kind("like basic, but the regions of a pattern shrink less uniformly", noise=0.2),
        "mild": Kind("like basic, but with less atrophy", atrophy=0.2),
        "dense": Kind("all regions in every pattern, most of them only slightly changed", shape="dense"),
        "half": Kind("each pattern includes each region with probability one half", shape="half"),
        "graded": Kind("like basic, but with atrophy ranging from strong to weak within a pattern", shape="graded"),
        "signed": Kind("like basic, but half of a pattern's regions grow", shape="signed"),
        "shift": Kind("like basic, but all patients also lose a little volume in every region", shift=0.03),
        "null": Kind("no disease: patients have the same distribution as controls", atrophy=0.0, noise=0.0),
    }
)


def named_patterns(kind: Kind, n_patterns: int) -> dict[str, tuple[str, ...]]:
    """Return the regions of each pattern, by their names in the embedded population.

    Parameters
    ----------
    kind : Kind
        Determines the size and the overlap of the patterns.
    n_patterns : int
        1 to 8. The first three are the paper's; each further one shares regions only with the previous one.

    Examples
    --------
    >>> named_patterns(KINDS["scarce"], 1)
    {'p1': ('lAmy', 'rAmy', 'lHip', 'rHip')}
    """
    patterns = list(kind.table_5[:n_patterns])
    for own in BEYOND_TABLE_5[: max(0, n_patterns - len(patterns))]:
        elsewhere = {code for pattern in patterns[:-1] for code in pattern}
        only_in_last = [code for code in patterns[-1] if code not in elsewhere]
        patterns.append((*only_in_last[len(only_in_last) - kind.shared :], *own[: len(kind.table_5[0]) - kind.shared]))
    return {
        f"p{k}": tuple(side + code for code in pattern for side in ("l", "r")) for k, pattern in enumerate(patterns, 1)
    }


def regional_losses(
    kind: Kind, patterns: Mapping[str, Sequence[str]], regions: Sequence[str], rng: np.random.Generator
) -> np.ndarray:
    """Return the share of each region that each pattern removes at severity 1 ``(patterns, regions)``.

    ``even``: the same in all regions of a pattern. ``graded``: from the strongest loss down to a tenth of it.
    ``signed``: every other bilateral region grows. ``dense``: exponentially distributed over all regions. ``half``: the
    same in a random half of all regions. All shapes have the same sum of squares as the even one, so that they are
    about equally easy to detect.

    Examples
    --------
    >>> losses = regional_losses(KINDS["signed"], {"p1": list("abcd")}, list("abcdef"), np.random.default_rng(0))
    >>> losses.tolist()
    [[0.3, 0.3, -0.3, -0.3, 0.0, 0.0]]
    """
    losses = np.zeros((len(patterns), len(regions)))
    for row, pattern in zip(losses, patterns.values(), strict=True):
        if kind.shape == "dense":
            row[:] = rng.exponential(size=len(regions))
        elif kind.shape == "half":
            row[:] = rng.random(len(regions)) < 0.5
        else:
            places = [regions.index(region) for region in pattern]
            bilateral = np.arange(len(places)) // 2
            row[places] = {
                "even": np.ones(len(places)),
                "graded": np.linspace(1, 0.1, len(places)),
                "signed": 1.0 - 2 * (bilateral % 2),
            }[kind.shape]
        row *= kind.atrophy * np.sqrt(len(pattern)) / max(np.linalg.norm(row), 1e-12)
    return np.where(np.isclose(np.abs(losses), kind.atrophy), np.sign(losses) * kind.atrophy, losses)


def random_patterns(
    kind: Kind, n_patterns: int, regions: Sequence[str], rng: np.random.Generator
) -> dict[str, tuple[str, ...]]:
    """Draw patterns with the kind's size and overlap from any regions.

    Neighbouring patterns share regions, and with three or more patterns, the last also shares with the first, so that
    each pattern has as many regions in common with others as in the paper.

    Parameters
    ----------
    kind : Kind
        Determines the size and the overlap of the patterns.
    n_patterns : int
        At least 1.
    regions : sequence of str
        Names to draw from.
    rng : numpy.random.Generator
        Source of randomness.

    Examples
    --------
    >>> import numpy as np
    >>> patterns = random_patterns(KINDS["scarce"], 2, list("abcdefgh"), np.random.default_rng(0))
    >>> sorted(patterns["p1"] + patterns["p2"])
    ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    """
    size, shared = 2 * len(kind.table_5[0]), 2 * kind.shared
    stride = size - shared
    n_needed = n_patterns * stride + (shared if n_patterns < 3 else 0)
    if n_needed > len(regions):
        raise InputError(
            f"At least {n_needed} regions are needed for {counted(n_patterns, 'pattern')} of {size} regions each, but "
            f"there are {len(regions)}. "
            "Request fewer patterns, simulate a 'scarce' cohort (4 regions per pattern), or provide a table with more "
            "regions."
        )
    dealt = [regions[i] for i in rng.permutation(len(regions))[:n_needed]]
    return {f"p{k + 1}": tuple(dealt[(k * stride + i) % n_needed] for i in range(size)) for k in range(n_patterns)}


# Possible distributions of each pattern's severities: in words, and as quantile functions.
SEVERITIES: Mapping[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = MappingProxyType(
    {
        "uniform": ("uniform from 0 to 1", lambda share: share),
        "mild": ("mostly mild, Beta(1, 3)", lambda share: 1 - np.cbrt(1 - share)),
        "absent": (
            "for each pattern, 0 in half of the patients and uniform in the others",
            lambda share: np.maximum(2 * share - 1, 0),
        ),
        "severe": ("mostly severe, Beta(3, 1)", np.cbrt),
    }
)

Correlation = float | Sequence[Sequence[float]] | np.ndarray


def severity_correlation_matrix(correlation: Correlation | None, n_patterns: int) -> np.ndarray:
    """Return the user's input as a valid correlation matrix, or raise an error that says what is wrong with it.

    Parameters
    ----------
    correlation : float, array of shape (n_patterns, n_patterns) or None
        One number for all pairs of patterns, a whole matrix, or None for independence.
    n_patterns : int
        Number of patterns.

    Examples
    --------
    >>> severity_correlation_matrix(0.5, 2).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    try:
        given = np.asarray(0.0 if correlation is None else correlation, dtype=float)
        matrix = given if given.ndim else np.where(np.eye(n_patterns, dtype=bool), 1.0, given)
        symmetric = matrix.shape == (n_patterns, n_patterns) and np.allclose(matrix, matrix.T, rtol=0, atol=1e-8)
        scaled = symmetric and np.allclose(np.diag(matrix), 1, rtol=0, atol=1e-8)
        valid = scaled and np.linalg.eigvalsh(matrix)[0] >= 1e-8
    except (TypeError, ValueError):  # not numbers, rows of different lengths, or an infinite number
        valid = False
    if not valid:
        lowest = f"{-1 / (n_patterns - 1):.3g}" if n_patterns > 1 else "-1"
        raise InputError(
            Remedy("severity_correlation"),
            f" should be a number between {lowest} and 1, or a valid {n_patterns} x "
            f"{n_patterns} correlation matrix (symmetric and positive definite), but got "
            f"{correlation}. Correct the value, or omit it to draw independent severities.",
        )
    return matrix


def draw_severities(
    severities: str | pd.DataFrame | np.ndarray,
    n_patterns: int,
    correlation: Correlation | None,
    age_correlation: float,
    people: HealthyPeople,
    rng: np.random.Generator,
) -> tuple[np.ndarray, str]:
    """Draw the severities of all patients; return them with a sentence that describes them.

    Parameters
    ----------
    severities : str, DataFrame or ndarray of shape (n, n_patterns)
        A distribution from ``SEVERITIES``, or a table whose rows are drawn with replacement.
    n_patterns : int
        Number of patterns, and of columns of a table.
    correlation : float, array of shape (n_patterns, n_patterns) or None
        Correlation of the patterns' normal scores in people of the same age; None for independence.
    age_correlation : float
        Correlation of the normal scores with those of the patients' ages.
    people : HealthyPeople
        The people of the cohort, and which of them become patients.
    rng : numpy.random.Generator
        Source of randomness.

    Examples
    --------
    >>> from rindices.simulate.healthy_people import drawn_people
    >>> rng = np.random.default_rng(0)
    >>> drawn, told = draw_severities("mild", 3, None, 0.0, drawn_people(5, 8, rng), rng)
    >>> drawn.shape, told
    ((8, 3), 'Severities: mostly mild, Beta(1, 3).')
    """
    n_patients = len(people.table) - people.n_controls
    if not isinstance(severities, str):
        if correlation is not None or age_correlation != 0:
            raise InputError(
                "Correlations cannot be set for a table of severities, because whole rows are drawn from it. Omit ",
                Remedy("severity_correlation"),
                " and ",
                Remedy("severity_age"),
                ", or choose ",
                Remedy("severities"),
                f" from {', '.join(SEVERITIES)}.",
            )
        rows = _given_severities(severities, n_patterns)
        note = f"Severities: drawn from the {counted(len(rows), 'row')} of the table provided."
        return rows[rng.integers(len(rows), size=n_patients)], note
    if severities not in SEVERITIES:
        raise InputError(
            Remedy("severities"),
            f" should be one of {', '.join(SEVERITIES)}, or a table with the columns s1 to "
            f"s{n_patterns}, but got {severities!r}.{did_you_mean(severities, list(SEVERITIES))} Choose one of these "
            "names, or check the file name.",
        )
    matrix = severity_correlation_matrix(correlation, n_patterns)
    scores = rng.standard_normal((n_patients, n_patterns)) @ np.linalg.cholesky(matrix).T
    note, quantile = SEVERITIES[severities]
    if age_correlation != 0:
        scores = age_correlation * _age_scores(people, age_correlation) + np.sqrt(1 - age_correlation**2) * scores
        note += f"; the correlation between their normal scores and age is {age_correlation:g}"
    return quantile(ndtr(scores)), f"Severities: {note}."


def _given_severities(severities: pd.DataFrame | np.ndarray, n_patterns: int) -> np.ndarray:
    """Return the severities in a table, one row per patient, or raise an error that says what is wrong with it."""
    names = [f"s{k}" for k in range(1, n_patterns + 1)]
    table = (
        severities
        if isinstance(severities, pd.DataFrame)
        else pd.DataFrame(severities).rename(lambda i: i - 1, axis=0).rename(lambda k: f"s{k + 1}", axis=1)
    )  # an array has no header, so its first row is row 1
    given = [str(name) for name in table.columns if re.fullmatch(r"s[1-9]\d*", str(name))]
    if sorted(given) != names or table.empty:
        raise InputError(
            Remedy("severities"),
            f" should be a table with the columns {', '.join(names)}, one per pattern, and one row "
            f"per patient, but got {counted(len(table), 'row')} with {listed(given or table.columns) or 'no columns'}. "
            "Rename the columns, or match the number of patterns to the table with ",
            Remedy("n_patterns"),
            ".",
        )
    values = numbers_in(table[names])
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        raise InputError(
            "All numbers in ",
            Remedy("severities"),
            f" should lie between 0 and 1, but found {first_of(table[names], wrong)}. Correct these cells, or remove "
            "their rows.",
        )
    return values


def _age_scores(people: HealthyPeople, correlation: float) -> np.ndarray:
    """Return the normal scores of the patients' ages, scaled to a standard deviation of 1, as a column."""
    check_between("severity_age", correlation, -_LARGEST_CORRELATION, _LARGEST_CORRELATION)
    column = people.table.reindex(columns=["age"]).iloc[people.n_controls :]
    ages = numbers_in(column)
    unfit = ~np.isfinite(ages) | (len(np.unique(ages)) == 1)
    if unfit.any():
        raise InputError(
            Remedy("severity_age"),
            " requires an age for every patient, and at least two different ages, in column 'age' of ",
            Remedy("controls"),
            f", but found {first_of(column, unfit) if 'age' in people.table else 'no such column'}. "
            "Fill in the ages, rename the column, or remove people without an age.",
        )
    scores = ndtri((pd.DataFrame(ages).rank().to_numpy() - 0.5) / len(ages))
    return scores / scores.std()
