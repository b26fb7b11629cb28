"""Change between visits: of each person, of groups by a mixed model, and compared with scan noise."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from rindices.analysis.statistics import GROUPS, false_discovery, in_group, same_people, with_error

DIFFERENCE = "patients minus controls"
_COLUMNS = ["group", "pattern", "n", "n_visits", "start", "mean", "low", "high", "p", "q", "random_effects", "note"]


class Line(NamedTuple):
    """Mean severity at time 0, mean change per year with its standard error, and how these were estimated.

    The note says why there is no line, or why there are no random slopes.
    """

    start: float = np.nan
    slope: float = np.nan
    error: float = np.nan
    freedom: float = np.nan  # of the standard error
    random_effects: str = ""
    note: str = ""


def change_per_year(
    r_indices: pd.DataFrame,
    participant_id: ArrayLike,
    years: ArrayLike,
    group: ArrayLike,
    noise_sd: ArrayLike | None = None,
    *,
    freedom: float = np.inf,
    level: float = 0.95,
) -> pd.DataFrame:
    """Fit a least-squares line through each person's severities, and compare the change with scan noise.

    Parameters
    ----------
    r_indices
        One column per pattern, one row per visit.
    participant_id
        The person of each visit.
    years
        Time of the visit in years; visits at unknown times (NaN) are excluded.
    group
        ``control``, ``patient`` or ``other``, one per visit; that of the first visit counts.
    noise_sd
        Standard deviation of each severity over scans of an unchanged person: one number, or one per visit and
        pattern. Without it, changes have no intervals.
    freedom
        Degrees of freedom of the estimate `noise_sd`.
    level
        Confidence level of the intervals.

    Returns
    -------
    DataFrame
        ``participant_id``, ``group``, ``n_visits``, ``years`` (first to last), ``r1_per_year``, … named after the
        columns; one row per person seen at two or more different times. ``r1_change`` is the change along the line from
        the first visit to the last (with two visits, their difference); ``r1_change_low`` and ``r1_change_high`` are
        its limits, and ``r1_reliable`` is 1 or −1 if these exclude 0 (reliable change, for worse or better) and 0
        otherwise; all three are NaN without `noise_sd`.

    Examples
    --------
    >>> scores = pd.DataFrame({"r1": [0.2, 0.4, 0.5, 0.1]})
    >>> found = change_per_year(scores, ["a", "a", "b", "c"], [0.0, 2.0, 0.0, 0.0], ["patient"] * 4, 0.05)
    >>> found.round(3).values.tolist()
    [['a', 'patient', 2, 2.0, 0.1, 0.2, 0.061, 0.339, 1.0]]
    """
    names = [str(name) for name in r_indices]
    visits = _visits(r_indices, participant_id, years, group)
    noise = np.asarray(np.nan if noise_sd is None else noise_sd, float)
    noise = np.broadcast_to(noise, r_indices.shape)[visits.index]
    person = visits["person"].to_numpy()
    by_person = visits.groupby("person")
    table = by_person[["participant_id", "group"]].first()
    table["n_visits"] = by_person.size()
    table["years"] = by_person["years"].last() - by_person["years"].first()
    centred = visits["years"].to_numpy() - by_person["years"].transform("mean").to_numpy()
    weight = centred / np.bincount(person, centred**2)[person]
    half = -stdtrit(freedom, (1 - level) / 2)
    for k, name in enumerate(names):
        slope = np.bincount(person, weight * visits[name].to_numpy())
        error = half * np.sqrt(np.bincount(person, (weight * noise[:, k]) ** 2)) * table["years"]
        change = slope * table["years"]
        table[f"{name}_per_year"], table[f"{name}_change"] = slope, change
        table[f"{name}_change_low"], table[f"{name}_change_high"] = change - error, change + error
        table[f"{name}_reliable"] = (np.sign(change) * (np.abs(change) > error)).where(error.notna())
    return table.reset_index(drop=True)


def group_change(
    r_indices: pd.DataFrame, participant_id: ArrayLike, years: ArrayLike, group: ArrayLike
) -> pd.DataFrame:
    """Compare the change of patients and controls by a linear mixed model, or by individual slopes.

    The model is severity ~ time × group, with a random intercept and slope for each person. If fewer than ten
    people of a group were seen three times, the mean of their slopes is used instead. Severities vary more in
    patients than in controls, so each group is fitted separately, with its own variances, and the two are compared
    as in Welch's test.

    Parameters
    ----------
    r_indices, participant_id, years, group
        As in `change_per_year`; people seen only once are ignored.

    Returns
    -------
    DataFrame
        One row per group and pattern: ``group``, ``pattern``, ``n`` (people), ``n_visits``, ``start`` (mean at time 0),
        ``mean`` (change per year), ``low`` and ``high`` (95 %), ``p``, ``q`` (Benjamini–Hochberg over the patterns),
        ``random_effects``, and ``note``: why there is no estimate, or a simpler model. Rows of ``patients minus
        controls`` compare the two; ``n`` is the number of people in both.
    """
    names = [str(name) for name in r_indices]
    visits = _visits(r_indices, participant_id, years, group)
    rows, lines = [], dict[str, list[Line]]()
    for name in GROUPS:
        own = visits[(visits["group"] == name).to_numpy()]
        if not len(own):
            continue
        person = pd.factorize(own["person"])[0]
        n_people = int(person.max()) + 1
        times = own["years"].to_numpy()
        lines[name] = [mixed_line(own[column].to_numpy(), times, person) for column in names]
        rows += [(name, k + 1, n_people, len(own), *_row(line)) for k, line in enumerate(lines[name])]
    if {"control", "patient"} <= lines.keys():
        sizes = visits[visits["group"] != "other"]
        compared = [_less(*pair) for pair in zip(lines["patient"], lines["control"], strict=True)]
        of = sizes["person"].nunique(), len(sizes)
        rows += [(DIFFERENCE, k + 1, *of, *_row(line)) for k, line in enumerate(compared)]
    table = pd.DataFrame(rows, columns=[name for name in _COLUMNS if name != "q"])
    q = table.groupby("group", sort=False)["p"].transform(lambda p: false_discovery(p.to_numpy()))
    return table.assign(q=q)[_COLUMNS]


def _row(line: Line) -> tuple[object, ...]:
    estimate = with_error(np.array([line.slope]), np.array([line.error]), line.freedom)
    return line.start, *(of[0] for of in estimate), line.random_effects, line.note


def _less(a: Line, b: Line) -> Line:
    """Return the difference between two slopes, with Welch–Satterthwaite degrees of freedom."""
    variances = a.error**2, b.error**2
    if np.isnan(sum(variances)):
        return Line(
            note=(
                f"one of the groups has no estimate, because it has fewer than {FEWEST_PEOPLE} people or because its "
                "model did not converge"
            )
        )
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / a.freedom + variances[1] ** 2 / b.freedom)
    effects = " / ".join(dict.fromkeys([a.random_effects, b.random_effects]))
    return Line(a.start - b.start, a.slope - b.slope, float(np.sqrt(sum(variances))), freedom, effects)


def _visits(r_indices: pd.DataFrame, participant_id: ArrayLike, years: ArrayLike, group: ArrayLike) -> pd.DataFrame:
    """Return the visits of people seen at two or more different times, in order of time, indexed by position."""
    names = [str(name) for name in r_indices]
    visits = pd.DataFrame(np.asarray(r_indices, float), columns=names).assign(years=np.asarray(years, float))
    ids, groups = pd.Series(participant_id).reset_index(drop=True), np.asarray(group, object)
    same_people(len(visits), participant_id=ids, group=groups)
    in_group(groups, "patient")  # checks the names of groups
    complete = np.isfinite(visits[[*names, "years"]].to_numpy()).all(axis=1) & ids.notna()
    visits = visits.assign(participant_id=ids, group=groups)[complete].sort_values("years", kind="stable")
    by_person = visits.groupby("participant_id", sort=False)
    visits["group"] = by_person["group"].transform("first")
    visits = visits[by_person["years"].transform("last") > by_person["years"].transform("first")]
    order = pd.factorize(ids[np.sort(visits.index)])[1]  # people in the order of the table
    return visits.assign(person=pd.Index(order).get_indexer(visits["participant_id"]))


SHORT_YEARS = 1.05  # a year, give or take: healthy people hardly change in one; in several, some age faster than others
FEWEST_SHORT = 10  # degrees of freedom; with fewer, later visits are used too
FEWEST = 5


class ScanNoise(NamedTuple):
    """Noise of the regions in one scan.

    Attributes
    ----------
    vectors
        Contrasts between scans of the same control ``(contrasts, regions)``, in the units of the regions. Each has the
        variance of one scan, and together they preserve the covariance of the regions.
    freedom
        Degrees of freedom of a variance estimated from them; 0 if there are too few controls.
    n_controls
        Number of controls with repeated visits.
    years
        Longest interval between two scans that are compared.
    """

    vectors: np.ndarray
    freedom: int
    n_controls: int
    years: float


def scan_noise(regions: pd.DataFrame, participant_id: ArrayLike, years: ArrayLike, group: ArrayLike) -> ScanNoise:
    """Estimate the noise of regions from repeated visits of controls, after removing their mean change.

    Visits within a year of a control's first visit are used, because healthy people hardly change in a year. If there
    are too few of them, all visits are used, and the noise then includes true differences in change between controls.

    Parameters
    ----------
    regions
        One column per region and one row per visit.
    participant_id, years, group
        As in `change_per_year`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = 10 * rng.standard_normal((300, 1))[np.repeat(np.arange(300), 2)]
    >>> table = pd.DataFrame(people + 2 * rng.standard_normal((600, 4)))
    >>> found = scan_noise(table, np.repeat(np.arange(300), 2), np.tile([0.0, 0.5], 300), ["control"] * 600)
    >>> found.freedom, round(np.sqrt(np.sum(found.vectors**2) / found.freedom / 4), 1)
    (299, np.float64(2.0))
    """
    same_people(len(regions), participant_id=pd.Series(participant_id), group=pd.Series(group))
    visits = pd.DataFrame({"id": pd.Series(participant_id).to_numpy(), "years": np.asarray(years, float)})
    values = regions.to_numpy(float)
    complete = np.isfinite(visits["years"]) & visits["id"].notna() & np.isfinite(values).all(axis=1)
    visits = visits[complete & in_group(group, "control")]
    soon = visits["years"] - visits.groupby("id")["years"].transform("min") <= SHORT_YEARS
    noise = _contrasts(visits[soon], values)
    return noise if noise.freedom >= FEWEST_SHORT else _contrasts(visits, values)


def _contrasts(visits: pd.DataFrame, values: np.ndarray) -> ScanNoise:
    from scipy.linalg import helmert  # slow to import, and not needed for checking a table

    visits = visits[visits["id"].duplicated(keep=False)].sort_values(["id", "years"], kind="stable")
    parts, times = [np.empty((0, values.shape[1]))], [np.empty(0)]
    for _, own in visits.groupby("id", sort=False):
        matrix = helmert(len(own))  # orthonormal: removes the mean and keeps variances
        parts.append(matrix @ values[own.index])
        times.append(matrix @ own["years"].to_numpy())
    vectors, time, n_controls = np.vstack(parts), np.concatenate(times), len(parts) - 1
    span = visits.groupby("id")["years"].agg(np.ptp).max() if n_controls else np.nan
    if (time**2).sum() > 0:
        vectors = vectors - np.outer(time, time @ vectors / (time**2).sum())
    freedom = len(vectors) - bool((time**2).sum() > 0)
    return ScanNoise(vectors, freedom if freedom >= FEWEST else 0, n_controls, float(span))


FEWEST_PEOPLE = 5  # seen twice or more; with fewer, the variance between people cannot be estimated
FEWEST_THRICE = 10  # seen three times or more; with two visits, individual slopes cannot be told from noise
_NOTHING = 1e-12  # variance within people below which severities do not vary
BOTH, BY_PERSON = "intercept and slope", "slopes by person"


def mixed_line(scores: np.ndarray, years: np.ndarray, person: np.ndarray) -> Line:
    """Fit score ~ years + (1 + years | person) by restricted maximum likelihood.

    If fewer than ten people were seen three times or more, or the fit does not converge, the mean of individual slopes
    and its standard error are used instead: with a random intercept alone, differences between slopes would be treated
    as independent residuals, and chance would be mistaken for change too often.

    Parameters
    ----------
    scores, years
        Score and time of each visit, both finite.
    person
        Person of each visit: 0, 1, 2 ...; all were seen at two or more different times.

    Examples
    --------
    >>> rng, person = np.random.default_rng(1), np.repeat(np.arange(40), 3)
    >>> years, level = np.tile([0.0, 1.0, 2.0], 40), 0.3 * rng.standard_normal(40)[person]
    >>> line = mixed_line(level + 0.1 * years + 0.05 * rng.standard_normal(120), years, person)
    >>> abs(line.slope - 0.1) < 2 * line.error, line.random_effects
    (True, 'intercept and slope')
    """
    if not len(person) or person.max() + 1 < FEWEST_PEOPLE:
        return Line(note=f"fewer than {FEWEST_PEOPLE} people were seen at two or more different times")
    by_person, residual, between = _moments(scores, years, person)
    if residual < _NOTHING:
        return Line(note="each person's severity is the same at all visits")
    if between is None:
        return by_person
    not_converged = by_person._replace(note="the model with a slope for each person did not converge")
    return _fitted(scores, years, person, residual, between) or not_converged


def _moments(scores: np.ndarray, years: np.ndarray, person: np.ndarray) -> tuple[Line, float, np.ndarray | None]:
    """Return the mean of the lines through each person's visits, and rough variances, within and between people.

    The latter, of intercepts and slopes, are None if too few people were seen three times to fit a model.
    """
    n_visits = np.bincount(person)
    mean, middle = (np.bincount(person, of) / n_visits for of in (scores, years))
    time, level = years - middle[person], scores - mean[person]
    squares, products = np.bincount(person, time**2), np.bincount(person, time * level)
    common = products.sum() / squares.sum()
    residual = np.sum((level - common * time) ** 2) / (len(person) - len(mean) - 1)
    own, between = products / squares, None
    if (n_visits > 2).sum() >= FEWEST_THRICE:
        residual = np.sum((level - own[person] * time) ** 2) / np.sum(n_visits - 2)
        totals, errors = (mean.var(ddof=1), own.var(ddof=1)), (np.mean(1 / n_visits), np.mean(1 / squares))
        between = np.maximum(np.array(totals) - residual * np.array(errors), 0.01 * residual)
    error, freedom = own.std(ddof=1) / np.sqrt(len(own)), len(own) - 1
    line = Line(float((mean - own * middle).mean()), float(own.mean()), float(error), freedom, BY_PERSON)
    return line, float(residual), between


def _fitted(
    scores: np.ndarray, years: np.ndarray, person: np.ndarray, residual: float, between: np.ndarray
) -> Line | None:
    """Return the line, or None if the fit fails; severities are fitted in units of their residual sd."""
    from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams

    unit, design = np.sqrt(residual), np.column_stack([np.ones_like(years), years])
    fixed = np.linalg.lstsq(design, scores / unit, rcond=None)[0]
    model: Any = MixedLM(scores / unit, design, groups=person, exog_re=design)
    start = MixedLMParams.from_components(fe_params=fixed, cov_re=np.diag(between / residual))
    try:
        with warnings.catch_warnings(action="ignore"):  # convergence is checked below
            fit = model.fit(reml=True, start_params=start, method=["lbfgs", "bfgs"])
            (first, slope), error = fit.fe_params, fit.bse_fe[1]
    except (np.linalg.LinAlgError, ValueError):
        return None
    is_sound = fit.converged and np.isfinite([first, slope, error]).all() and error > 0
    numbers = float(first * unit), float(slope * unit), float(error * unit), int(person.max())
    return Line(*numbers, BOTH) if is_sound else None
