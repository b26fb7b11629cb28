"""Prediction of an event by severities: proportional hazards, what they add to covariates, and curves of thirds.

Hazards are modelled with statsmodels: a Cox model with Efron's ties, entry times and strata or, if an event is only
known to lie between two visits, a discrete-time model with a complementary log-log link, whose coefficients are also
log hazard ratios (Prentice and Gloeckler 1978, Biometrics 34:57). In the latter, the baselines of sites differ by a
factor: a baseline of four steps for every site would have more parameters than small sites have events.
"""

import warnings
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr, ndtri

from rindices.analysis.statistics import basis, design, false_discovery
from rindices.problems import counted

STEP = 0.1  # of severity: the unit of hazard ratios
FEWEST_EVENTS = 10  # per variable
_MOST_STEPS = 30
_LARGEST = 30.0  # log hazard ratio, or standard error of one, that a sound fit does not reach
_TIMES = 6  # approximate number of times at which numbers at risk are given
_BINS = 4  # of time, within which the discrete-time model's baseline is constant
RESAMPLES = 50
_MOST_COMPARED = 1000  # people: concordance compares all pairs of them
_COLUMNS = [
    *("pattern", "n", "n_events", "kind", "note", "hazard_ratio", "low", "high", "p", "p_proportional"),
    *("concordance", "base", "gain", "gain_corrected"),
]


class FollowUp(NamedTuple):
    """Follow-up of people, one value per person.

    Attributes
    ----------
    time, event
        Time of the last contact, and whether the event had happened by then.
    entry
        Time at which observation began, if not 0.
    seen
        Time at which the person was last seen without the event, which happened between then and `time`.
    competing
        Whether another event that precludes it, such as death, happened at `time`.
    site
        Site; hazards are not compared between sites.
    """

    time: np.ndarray
    event: np.ndarray
    entry: np.ndarray | None = None
    seen: np.ndarray | None = None
    competing: np.ndarray | None = None
    site: np.ndarray | None = None

    def of(self, rows: np.ndarray) -> Self:
        """Return the follow-up of some people."""
        return type(self)(*(None if part is None else part[rows] for part in self))  # type: ignore[arg-type]

    def filled(self) -> Self:
        """Return the same with unambiguous empty cells filled in, so that nobody is left out because of their outcome.

        People without the event were free of it until `time`; people with it were free of it when observation began,
        and no other event came first.
        """
        seen, other = self.seen, self.competing
        if seen is not None:
            free = np.where(self.event == 0, self.time, 0.0 if self.entry is None else self.entry)
            seen = np.where(np.isfinite(seen), seen, free)
        if other is not None:
            other = np.where(self.event == 1, 0.0, other)
        return self._replace(seen=seen, competing=other)

    @property
    def complete(self) -> np.ndarray:
        """Who has all values that are used."""
        finite = np.logical_and.reduce([np.isfinite(np.asarray(part, float)) for part in self[:5] if part is not None])
        return finite if self.site is None else finite & pd.notna(self.site)


def prognosis(
    scores: pd.DataFrame, follow_up: FollowUp, covariates: pd.DataFrame, *, n_resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Relate each severity to the hazard of an event, adjusted for covariates.

    Parameters
    ----------
    scores
        Severities, one column per pattern.
    follow_up
        Follow-up of the same people.
    covariates
        Variables in every model; the model with these alone is the reference.
    n_resamples
        Number of bootstrap samples for ``gain_corrected``, which is NaN with none.

    Returns
    -------
    DataFrame
        One row per pattern: ``n``, ``n_events``, ``kind`` of the model, ``hazard_ratio`` per 0.1 of severity with
        ``low``, ``high``, ``p`` and ``q``; ``p_proportional``, small if the ratio changes with time (Schoenfeld
        residuals); ``concordance`` of covariates and severity, ``base`` of covariates alone, ``gain``, and
        ``gain_corrected`` for the optimism of fitting the same people (bootstrap); ``note``.
    """
    columns, complete = design(covariates)
    follow_up = follow_up.filled()._replace(competing=None)  # which ends observation just as the last contact does
    followed = follow_up._replace(entry=None, seen=None, site=None).complete
    complete &= follow_up.complete
    rows = []
    for pattern, name in enumerate(scores, start=1):
        score = scores[name].to_numpy(float)
        people = complete & np.isfinite(score)
        own, fixed = follow_up.of(people), basis(columns[people]) if people.any() else columns[people]
        n_events = int(own.event.sum())
        notes = [_note(n_events, fixed.shape[1] + 1, np.ptp(score[people]) if people.any() else 0.0)]
        estimates: dict[str, float] = {}
        if n_events and people.sum() > fixed.shape[1] + 1 and np.ptp(score[people]) > 0:
            estimates = _hazard_ratio(own, np.column_stack([score[people], fixed]))
            notes += [] if estimates else ["the hazard ratio cannot be estimated"]
        n_left_out = int((followed & ~people).sum())
        notes += [f"{counted(n_left_out, 'person', 'people')} excluded because of missing values"] if n_left_out else []
        row: dict[str, object] = {
            "pattern": pattern,
            "n": int(people.sum()),
            "n_events": n_events,
            "kind": "Cox" if own.seen is None else "discrete time",
            "note": "; ".join(filter(None, notes)),
        }
        rows.append(row | estimates | (_gain(own, score[people], fixed, n_resamples) if estimates else {}))
    table = pd.DataFrame(rows, columns=_COLUMNS)
    return table.assign(q=false_discovery(table["p"].to_numpy(float)))


def _note(n_events: int, n_variables: int, spread: float) -> str:
    if n_events == 0 or spread == 0:
        return "no events" if n_events == 0 else "everyone has the same severity"
    if n_events < FEWEST_EVENTS * n_variables:
        return f"{n_events} events for {n_variables} variables: fewer than ten per variable"
    return ""


def _hazard_ratio(follow_up: FollowUp, columns: np.ndarray) -> dict[str, float]:
    """Return the hazard ratio of the first column, with its limits and p; nothing if it cannot be estimated."""
    from statsmodels.tools.sm_exceptions import PerfectSeparationError

    scale = columns.std(axis=0)
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        try:
            estimate = _cox if follow_up.seen is None else _discrete
            slope, error, p_proportional = estimate(follow_up, (columns - columns.mean(axis=0)) / scale)
        except (np.linalg.LinAlgError, ValueError, PerfectSeparationError):
            return {}
    if not (np.isfinite([slope, error]).all() and 0 < error < _LARGEST):
        return {}
    slope, error = slope / scale[0], error / scale[0]
    half = ndtri(0.975) * error
    low, ratio, high = (float(np.exp(STEP * (slope + side))) for side in (-half, 0, half))
    p = float(2 * ndtr(-abs(slope) / error))
    return {"hazard_ratio": ratio, "low": low, "high": high, "p": p, "p_proportional": p_proportional}


def _cox(follow_up: FollowUp, columns: np.ndarray) -> tuple[float, float, float]:
    """Return the first log hazard ratio, its standard error, and p of the test that it is constant over time."""
    from statsmodels.duration.hazard_regression import PHReg

    strata = None if follow_up.site is None else pd.factorize(follow_up.site)[0]
    model = PHReg(follow_up.time, columns, follow_up.event, entry=follow_up.entry, strata=strata, ties="efron")
    # Starting near the solution saves most of its steps.
    fit = model.fit(start_params=_quick_cox(follow_up.time, follow_up.event, columns))
    return float(fit.params[0]), float(fit.bse[0]), _proportional(fit, follow_up)


def _proportional(model: object, follow_up: FollowUp) -> float:
    """Test whether a hazard ratio changes with time (Grambsch and Therneau 1994, Biometrika 81:515; ranks of time)."""
    from scipy.stats import rankdata

    happened = follow_up.event == 1
    residuals = model.schoenfeld_residuals[happened]  # type: ignore[attr-defined]
    time = rankdata(follow_up.time[happened])
    finite = np.isfinite(residuals).all(axis=1)
    residuals, time = residuals[finite], time[finite] - time[finite].mean()
    variance = np.asarray(model.cov_params())  # type: ignore[attr-defined]
    slope = (time @ residuals @ variance)[0] * len(time)
    spread = len(time) * variance[0, 0] * (time**2).sum()
    return float(chdtrc(1, slope**2 / spread)) if spread > 0 else np.nan


def _discrete(follow_up: FollowUp, columns: np.ndarray) -> tuple[float, float, float]:
    """Fit the intervals of time in which a person is known to have been free of the event, or to have had it."""
    import statsmodels.api as sm

    happened, seen = follow_up.event == 1, np.asarray(follow_up.seen, float)
    free = np.where(happened, seen, follow_up.time)
    start = np.zeros(len(free)) if follow_up.entry is None else follow_up.entry
    middle = (seen + follow_up.time)[happened] / 2
    inner = np.unique(np.quantile(middle, np.linspace(0, 1, _BINS + 1)[1:-1]))
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    parts = []
    for place, (low, high) in enumerate(pairwise(edges)):
        length = np.minimum(free, high) - np.maximum(start, low)
        people = np.flatnonzero(length > 0)
        parts.append(pd.DataFrame({"person": people, "bin": place, "length": length[people], "event": 0}))
    place = np.searchsorted(inner, middle, side="right")
    length = np.maximum(follow_up.time - seen, np.finfo(float).tiny)[happened]
    parts.append(pd.DataFrame({"person": np.flatnonzero(happened), "bin": place, "length": length, "event": 1}))
    rows = pd.concat(parts, ignore_index=True).assign(site=0)
    if follow_up.site is not None:
        rows["site"] = pd.factorize(follow_up.site)[0][rows["person"]]
    for level in ("site", "bin"):  # if all or none have the event, their hazard fits them whatever the severity
        rows = rows[rows.groupby(level)["event"].transform("nunique") == 2]
    base = basis(pd.get_dummies(rows[["bin", "site"]].astype("category")).to_numpy(float))
    model = sm.GLM(
        rows["event"].to_numpy(float),
        np.column_stack([columns[rows["person"]], base, np.ones(len(rows))]),
        family=sm.families.Binomial(link=sm.families.links.CLogLog()),
        offset=np.log(rows["length"].to_numpy()),
    ).fit()
    return float(model.params[0]), float(model.bse[0]), np.nan


def _known_order(time: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Return for which pairs the first person is known to have had the event before the second."""
    return (event == 1)[:, None] & ((time > time[:, None]) | ((time == time[:, None]) & (event == 0)))


def _concordance(order: np.ndarray, risk: np.ndarray, times_drawn: np.ndarray) -> float:
    """Return how often, in two people whose order is known, the one with the higher risk has the event first.

    Harrell's C, with each person weighted by how often they were drawn; ties in risk count one half.

    Examples
    --------
    >>> order = _known_order(np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]))
    >>> _concordance(order, np.array([0.9, 0.2, 0.5]), np.ones(3))
    0.6666666666666666
    """
    higher = np.sign(risk[:, None] - risk)
    pairs = float(times_drawn @ order @ times_drawn)
    return 0.5 + 0.5 * float(times_drawn @ (order * higher) @ times_drawn) / pairs if pairs else np.nan


def _quick_cox(time: np.ndarray, event: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return log hazard ratios by Newton's method (Breslow's ties): fast enough to resample."""
    order = np.argsort(-time, kind="stable")
    x, happened = columns[order], event[order] == 1
    # The risk set of an event is everybody up to the last person with the same time.
    last = len(time) - 1 - np.searchsorted(time[order][::-1], time[order], side="left")[happened]
    slopes = np.zeros(x.shape[1])
    for _ in range(_MOST_STEPS):
        weight = np.exp(np.clip(x @ slopes, -_LARGEST, _LARGEST))
        total = np.cumsum(weight)[last]
        first = np.cumsum(weight[:, None] * x, axis=0)[last] / total[:, None]
        second = np.cumsum(weight[:, None, None] * x[:, :, None] * x[:, None, :], axis=0)[last] / total[:, None, None]
        score = (x[happened] - first).sum(axis=0)
        information = (second - first[:, :, None] * first[:, None, :]).sum(axis=0)
        step = np.linalg.lstsq(information, score, rcond=None)[0]
        slopes = slopes + np.clip(step, -1, 1)
        if np.abs(step).max(initial=0.0) < 1e-6:
            break
    return slopes


def _gain(follow_up: FollowUp, score: np.ndarray, fixed: np.ndarray, n_resamples: int) -> dict[str, float]:
    """Return the concordance of covariates with and without a severity, and the gain to expect in new people."""
    rng, n = np.random.default_rng(0), len(score)
    chosen = rng.choice(n, _MOST_COMPARED, replace=False) if n > _MOST_COMPARED else np.arange(n)
    own, both = follow_up.of(chosen), np.column_stack([score, fixed])[chosen]
    both = (both - both.mean(axis=0)) / np.where(np.ptp(both, axis=0) > 0, both.std(axis=0), 1)
    models, order, once = (both, both[:, 1:]), _known_order(own.time, own.event), np.ones(len(chosen))

    def compared(rows: np.ndarray, *drawn: np.ndarray) -> list[list[float]]:
        """Fit both models to some rows; return their concordances, with people weighted by each of `drawn`."""
        slopes = [_quick_cox(own.time[rows], own.event[rows], columns[rows]) for columns in models]
        risks = [columns @ slope for columns, slope in zip(models, slopes, strict=True)]
        return [[_concordance(order, risk, times) for risk in risks] for times in drawn]

    [[with_score, base]] = compared(np.arange(len(chosen)), once)
    optimism = []
    for _ in range(n_resamples):
        rows = rng.integers(0, len(chosen), len(chosen))
        (own_both, own_base), (both_new, base_new) = compared(
            rows, np.bincount(rows, minlength=len(chosen)).astype(float), once
        )
        optimism.append((own_both - own_base) - (both_new - base_new))
    gain = with_score - base
    return {
        "concordance": with_score,
        "base": base,
        "gain": gain,
        "gain_corrected": float(gain - np.nanmean(optimism)) if n_resamples else np.nan,
    }


def curve(follow_up: FollowUp, times: np.ndarray) -> pd.DataFrame:
    """Return the number at risk and the cumulative incidence at some times, allowing for competing events.

    The Kaplan–Meier estimate or, with competing events, the Aalen–Johansen estimate, allowing for entry times.

    Returns
    -------
    DataFrame
        ``time``, ``at_risk``, ``events`` until then, ``incidence`` with ``low`` and ``high`` (95 %, log-log).
    """
    entry = np.full(len(follow_up.time), -np.inf) if follow_up.entry is None else follow_up.entry
    other = np.zeros(len(entry)) if follow_up.competing is None else follow_up.competing
    moments = np.unique(follow_up.time[(follow_up.event == 1) | (other == 1)])
    n = np.array([((entry < t) & (follow_up.time >= t)).sum() for t in moments], float)
    own, any_other = (
        np.array([((follow_up.time == t) & (what == 1)).sum() for t in moments], float)
        for what in (follow_up.event, other)
    )
    before = np.concatenate([[1.0], np.cumprod(1 - (own + any_other) / n)])[:-1]
    incidence = np.cumsum(before * own / n)
    reached = np.concatenate([[0.0], incidence])[np.searchsorted(moments, times, side="right")]
    variance = np.array([_variance(t, moments, n, own, any_other, before, incidence) for t in times])
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log1p(-reached)
        half = ndtri(0.975) * np.sqrt(variance) / np.abs((1 - reached) * log)
        low, high = (1 - (1 - reached) ** np.exp(side * half) for side in (-1, 1))
    inside = (reached > 0) & (reached < 1)
    return pd.DataFrame(
        {
            "time": times,
            "at_risk": [int(((entry < t) & (follow_up.time >= t)).sum()) for t in times],
            "events": [int(((follow_up.time <= t) & (follow_up.event == 1)).sum()) for t in times],
            "incidence": reached,
            "low": np.where(inside, low, reached),
            "high": np.where(inside, high, reached),
        }
    )


def _variance(
    t: float,
    moments: np.ndarray,
    n: np.ndarray,
    own: np.ndarray,
    other: np.ndarray,
    before: np.ndarray,
    incidence: np.ndarray,
) -> float:
    """Return the variance of a cumulative incidence (delta method); without competing events, it is Greenwood's."""
    past = moments <= t
    if not past.any():
        return 0.0
    n, own, other, before = n[past], own[past], other[past], before[past]
    every, left = own + other, incidence[past][-1] - incidence[past]
    some = np.where(n > every, every / np.maximum(n * (n - every), 1), 0.0)
    return float(
        (left**2 * some).sum() + (before**2 * own * (n - own) / n**3).sum() - 2 * (left * before * own / n**2).sum()
    )


def survival_curves(scores: pd.DataFrame, follow_up: FollowUp) -> pd.DataFrame:
    """Return the proportion of people with the event over time, in thirds of each severity.

    Returns
    -------
    DataFrame
        ``pattern``, ``third`` (1 is the mildest), ``n``, the columns of `curve`, and ``shown``: true at the few times
        for which numbers at risk are written.
    """
    follow_up = follow_up.filled()
    parts, complete = [], follow_up._replace(seen=None, site=None).complete
    for pattern, name in enumerate(scores, start=1):
        score = scores[name].to_numpy(float)
        people = complete & np.isfinite(score)
        if not people.any():
            continue
        third = np.searchsorted(np.quantile(score[people], [1 / 3, 2 / 3]), score, side="left") + 1
        end = follow_up.time[people].max()
        grid = np.arange(0, end + 1e-9, float(f"{end / _TIMES:.1g}")) if end > 0 else np.zeros(1)
        for place in (1, 2, 3):
            own = follow_up.of(people & (third == place))
            times = np.union1d(grid, own.time[own.event == 1])
            about = {"pattern": pattern, "third": place, "n": len(own.time)}
            if len(own.time):
                parts.append(curve(own, times).assign(**about, shown=np.isin(times, grid)))
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return table.reindex(
        columns=["pattern", "third", "n", "time", "at_risk", "events", "incidence", "low", "high", "shown"]
    )
