"""Differences between sites, removed by ComBat estimated in controls.

Implemented here rather than taken from combatlearn, which requires everyone's sites in its constructor and keeps its
estimates private, whereas a model file has to store them. A test compares the two.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from rindices.preprocessing.covariates import CovariateResidualizer, Pairs, covariate_of, group_means
from rindices.problems import ADAPT, InputError, Remedy, counted, listed
from rindices.schema import MIN_SITE_CONTROLS
from rindices.schema.cells import as_known, plain_code

FEW_SITE_CONTROLS = 10  # of a new site; with five, half of the bias of its severities remains
UNCORRECTED = ""  # as a person's site: leave the regions as they are, for scanners not seen in training
_CONVERGED = 1e-10
_MOST_ROUNDS = 1000
_NOTHING_LEFT = 1e-9  # of the sd; less is rounding error


class SiteErrors(NamedTuple):
    """Errors of site effects estimated in few controls, for each person; 0 if unknown or if nothing is corrected.

    Attributes
    ----------
    shared
        Error of offsets that covaries between regions as people's values do, in sd of people.
    offsets, scales : ndarray of shape (people, regions)
        Variance of the region-specific error of offsets, and of the logarithm of scales.
    """

    shared: np.ndarray
    offsets: np.ndarray
    scales: np.ndarray


@dataclass(frozen=True, eq=False)
class SiteHarmonizer:
    """Removes the offset and scale of each region at each site, and preserves the effects of covariates.

    Parametric ComBat (Johnson et al. 2007; Fortin et al. 2018), with splines as in ComBat-GAM (Pomponio et al. 2020).
    Each site's offsets and scales are shrunk towards their distribution over regions (empirical Bayes), so that small
    sites can be corrected. Everything is estimated in controls, so sites may differ in their proportion of patients.

    A person whose site is `UNCORRECTED` gets no offset and no scale; any other unknown site is refused.
    `leave_new_sites` replaces unknown sites by `UNCORRECTED`.

    Attributes
    ----------
    name : str
        Covariate that contains the site.
    sites : tuple of str
        Sites of the controls.
    kept : CovariateResidualizer or None
        Effects of the covariates within sites.
    mean, sd : ndarray of shape (regions,)
        Of the controls: mean with average covariates, sd within sites.
    offsets, scales : ndarray of shape (sites, regions)
        Offset of a site and scale of its deviations, in these sd.
    errors : ndarray of shape (sites,), optional
        Standard error of each site's offsets, in sd of people: 1 / √(its controls). Unknown (None) in old files.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"site": ["A", "B"] * 50})
    >>> volumes = rng.normal(size=(100, 20)) + 3 * (table[["site"]] == "B").to_numpy()
    >>> even = SiteHarmonizer.fit(volumes, table, "site").transform(volumes, table)
    >>> gap = even[1::2].mean() - even[::2].mean()
    >>> bool(abs(gap) < 0.01)
    True
    """

    name: str
    sites: tuple[str, ...]
    kept: CovariateResidualizer | None
    mean: np.ndarray
    sd: np.ndarray
    offsets: np.ndarray
    scales: np.ndarray
    errors: np.ndarray | None = None

    @classmethod
    def fit(
        cls,
        controls: np.ndarray,
        covariates: pd.DataFrame,
        name: str,
        *,
        smooth: Sequence[str] = (),
        interactions: Pairs = (),
    ) -> Self:
        """Estimate the sites' effects in controls; the effects of all covariates other than `name` are preserved."""
        labels = np.array([plain_code(value) for value in covariate_of(covariates, name)], dtype=object)
        sites, site, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        _check_sites(name, sites.tolist(), sizes)
        others = covariates.drop(columns=name)
        kept = None
        without = controls - controls.mean(axis=0)
        if others.shape[1]:
            kept = CovariateResidualizer.fit(controls, others, smooth=smooth, interactions=interactions, within=site)
            without = kept.transform(without, others)
        means = group_means(without, site)
        sd = np.sqrt(((without - means[site]) ** 2).mean(axis=0))
        overall = controls.std(axis=0)
        sd = np.where(sd > _NOTHING_LEFT * overall, sd, overall)  # without residuals, regions are refused later
        effects = _shrunk_effects(means / sd, (without - means[site]) / sd, site, sizes)
        return cls(name, tuple(sites.tolist()), kept, controls.mean(axis=0), sd, *effects)

    def with_new_sites(self, controls: np.ndarray, covariates: pd.DataFrame, *, few_controls: bool = False) -> Self:
        """Learn further sites from their controls; mean, sd, effects of covariates and known sites stay as they are."""
        labels = as_known(covariate_of(covariates, self.name), self.sites)
        sites, site, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        _check_new_sites(self.name, sites.tolist(), sizes, self.sites, few_controls)
        effect = 0.0 if self.kept is None else self.kept.effect(covariates)
        away = (controls - self.mean - effect) / self.sd
        means = group_means(away, site)
        offsets, scales, errors = _shrunk_effects(means, away - means[site], site, sizes)
        return replace(
            self,
            sites=(*self.sites, *sites.tolist()),
            offsets=np.vstack([self.offsets, offsets]),
            scales=np.vstack([self.scales, scales]),
            errors=np.append(np.zeros(len(self.sites)) if self.errors is None else self.errors, errors),
        )

    def errors_left(self, covariates: pd.DataFrame) -> SiteErrors:
        """Return the remaining error of the effects of each person's site."""
        place = self._places(as_known(covariate_of(covariates, self.name), self.sites))
        sites = [
            _errors_left(error, *both)
            for error, *both in zip(
                np.zeros(len(self.sites)) if self.errors is None else self.errors,
                self.offsets,
                self.scales,
                strict=True,
            )
        ]
        nothing = np.zeros(len(self.mean))
        shared, offsets, scales = zip(*sites, (0.0, nothing, nothing), strict=True)
        return SiteErrors(np.array(shared)[place], np.array(offsets)[place], np.array(scales)[place])

    def transform(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Remove the sites' effects."""
        typical, offsets, scales = self._of_people(covariates)
        return typical + ((features - typical) - self.sd * offsets) / scales

    def inverse_transform(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Add the effects of each person's site."""
        typical, offsets, scales = self._of_people(covariates)
        return typical + (features - typical) * scales + self.sd * offsets

    def leave_new_sites(self, covariates: pd.DataFrame) -> pd.DataFrame:
        """Return the covariates with `UNCORRECTED` in place of sites not seen in training."""
        labels = as_known(covariate_of(covariates, self.name), self.sites)
        return covariates.assign(**{self.name: np.where(np.isin(labels, self.sites), labels, UNCORRECTED)})

    def _of_people(self, covariates: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the regions expected for people with these covariates, and their sites' offsets and scales."""
        labels = as_known(covariate_of(covariates, self.name), self.sites)
        site = self._places(labels)
        if (site < 0).any():
            strangers = pd.Series(labels[site < 0]).value_counts()
            unknown = listed(f"{label!r} ({counted(int(n), 'person', 'people')})" for label, n in strangers.items())
            raise InputError(
                f"The model's controls come from {listed(self.sites, 20)}, but {self.name!r} contains {unknown}.\n"
                "The effect of an unknown site cannot be removed. Correct the site name, adapt the model with controls "
                "from the new site (",
                ADAPT,
                f"), exclude these people, or leave them uncorrected with {UNCORRECTED!r} as their site.",
            )
        effect = 0.0 if self.kept is None else self.kept.effect(covariates)
        neutral = np.zeros((1, len(self.mean)))
        return self.mean + effect, np.vstack([self.offsets, neutral])[site], np.vstack([self.scales, 1 + neutral])[site]

    def _places(self, labels: np.ndarray) -> np.ndarray:
        """Return the index of each person's site: the last if it is left uncorrected, −1 if it is unknown."""
        return pd.Index([*self.sites, UNCORRECTED], dtype=object).get_indexer(pd.Index(labels))


def _errors_left(error: float, offsets: np.ndarray, scales: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the errors of one site's shrunk estimates, see `SiteErrors`.

    Shrinkage by a leaves (1 − a)² of the variance between regions, and a² of the sampling variance, except of the part
    that all regions share: for offsets, the whole sampling error is treated as shared.
    """
    if not error:
        return 0.0, np.zeros_like(offsets), np.zeros_like(scales)
    kept, own = _shrunk_by(offsets, error**2)
    kept_scales, own_scales = _shrunk_by(np.log(scales), error**2 / 2)
    offset = (1 - kept) ** 2 * own
    scale = (1 - kept_scales) ** 2 * own_scales + kept_scales**2 * error**2 / 2
    return error, np.full_like(offsets, offset), np.full_like(scales, scale)


def _shrunk_by(shrunk: np.ndarray, sampling: float) -> tuple[float, float]:
    """Return the factor by which estimates of this sampling variance were shrunk, and the variance of the true values.

    Estimates of variance s are shrunk by a = s / (s + `sampling`), which leaves a variance of a² s.
    """
    spreads = np.geomspace(sampling / 100, 100 * sampling, 200)
    spread = np.interp(np.var(shrunk), spreads**3 / (spreads + sampling) ** 2, spreads)
    return float(spread / (spread + sampling)), float(max(spread - sampling, 0.0))


def _shrunk_effects(
    means: np.ndarray, away: np.ndarray, site: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return offsets, scales and the errors of offsets, from sites' means and people's deviations from these, in sd."""
    variances = group_means(away**2, site) * (sizes / (sizes - 1))[:, None]
    shrunk = [shrink(*estimates) for estimates in zip(means, variances, sizes.tolist(), strict=True)]
    offsets, scales = (np.stack(numbers) for numbers in zip(*shrunk, strict=True))
    return offsets, np.sqrt(scales), 1 / np.sqrt(sizes)


def shrink(offsets: np.ndarray, variances: np.ndarray, n_people: int) -> tuple[np.ndarray, np.ndarray]:
    """Shrink one site's offsets and variances ``(regions,)`` towards their distribution over regions.

    Offsets γ are normal and variances δ² inverse gamma over regions, with moments from the estimates; the posterior
    means depend on each other and are found by iteration (Johnson et al. 2007, section 3.2).
    """
    if len(offsets) == 1:  # nothing to learn a distribution from
        return offsets, variances
    centre, spread = offsets.mean(), offsets.var(ddof=1)
    mean, variance = variances.mean(), max(variances.var(ddof=1), np.finfo(float).tiny)
    shape, scale = 2 + mean**2 / variance, mean + mean**3 / variance
    if not np.isfinite(scale):  # all regions vary alike
        variances = np.full_like(variances, mean)
    gamma, delta = offsets, variances
    for _ in range(_MOST_ROUNDS):
        before = gamma, delta
        gamma = (n_people * spread * offsets + delta * centre) / (n_people * spread + delta)
        if np.isfinite(scale):
            squares = (n_people - 1) * variances + n_people * (offsets - gamma) ** 2
            delta = (scale + squares / 2) / (shape + n_people / 2 - 1)
        if np.allclose(gamma, before[0], rtol=_CONVERGED, atol=_CONVERGED) and np.allclose(
            delta, before[1], rtol=_CONVERGED, atol=0
        ):
            break
    return gamma, delta


def _check_new_sites(
    name: str, sites: list[str], sizes: np.ndarray, earlier: Sequence[str], few_controls: bool
) -> None:
    """Refuse sites that are already known or too small; on request, small ones are learned, with a warning."""
    if again := [site for site in sites if site in earlier]:
        raise InputError(
            f"The model already includes {'site' if len(again) == 1 else 'sites'} {listed(again)}.\n"
            f"Provide controls from new sites only, with the site names that later tables will use in {name!r}."
        )
    counts = [f"{site} ({n})" for site, n in zip(sites, sizes.tolist(), strict=True)]
    fewest = MIN_SITE_CONTROLS if few_controls else FEW_SITE_CONTROLS
    if (sizes < fewest).any():
        some = (
            ". To estimate the effects of small sites anyway (half of the bias in their severities may remain), use ",
            Remedy("few_controls", True),
        )
        raise InputError(
            f"Estimating the effect of a site requires at least {fewest} controls, but the numbers at the new sites "
            f"are: {listed(counts)}.\n"
            "Add controls, merge sites that share a scanner, or score people without site correction by running "
            "rindices apply with ",
            Remedy("new_sites", "uncorrected"),
            *(some if sizes.min() >= MIN_SITE_CONTROLS else ()),
            ".",
        )
    if (sizes < FEW_SITE_CONTROLS).any():
        warnings.warn(
            f"Controls from new sites: {listed(counts)}. At sites with fewer than {FEW_SITE_CONTROLS}, half of the "
            "bias in the severities may remain.",
            UserWarning,
            stacklevel=3,
        )


def _check_sites(name: str, sites: list[str], sizes: np.ndarray) -> None:
    if UNCORRECTED in sites:
        raise InputError(f"Some controls have no site in {name!r}: fill in the site, or exclude these controls.")
    if len(sites) == 1:
        raise InputError(
            f"All controls have the same value in {name!r} ({sites[0]}), so there is nothing to harmonise.\nOmit ",
            Remedy("site"),
            ".",
        )
    small = [f"{site} ({n})" for site, n in zip(sites, sizes.tolist(), strict=True) if n < MIN_SITE_CONTROLS]
    if small:
        raise InputError(
            f"{counted(len(small), 'site')} in {name!r} {'has' if len(small) == 1 else 'have'} fewer than "
            f"{MIN_SITE_CONTROLS} controls: {listed(small)}.\n"
            "Exclude people from small sites with ",
            Remedy("small_sites", "drop"),
            ", merge small sites with similar ones, or omit ",
            Remedy("site"),
            ".",
        )
