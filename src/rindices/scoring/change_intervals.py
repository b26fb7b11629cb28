"""The interval of a person's true change between two visits, by the severities that are read of people made to change.

A healthy brain is changed to each severity as one repetition has learned it, and scanned twice with the noise of the
user's own scanner; other repetitions read it. What differs between people stays with a person from visit to visit, so
changes are known better than severities. The interval holds the changes with which such a reading is no surprise.
"""

from typing import NamedTuple

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.stats import t as student_t

from rindices.core import inference
from rindices.core.networks import Parameters
from rindices.preprocessing import SCALED_SD
from rindices.scoring.intervals import FEWEST, SEVERITIES_OF_F, draw_others, make_people
from rindices.scoring.reference import mean_known
from rindices.scoring.severity import DOSES, SeverityScale, increasing

_PEOPLE = 500  # made for each pattern
# Of simulated people's true changes, readings follow 0.84 to 1.0, by how severe they are (0.93 on average).
_GAIN_SD = 0.15
_CHANGES = np.linspace(-2, 2, 201)  # that are tried


class Noise(NamedTuple):
    """Noise of one scan: of regions, from controls who came again, or of the severities themselves, as it was given."""

    vectors: np.ndarray | None  # (contrasts, regions) in sd of controls
    freedom: float
    sd: np.ndarray  # (patterns,) of severities; 0 where there are vectors

    def of_regions(self, n_people: int, rng: np.random.Generator) -> np.ndarray | float:
        """Draw the noise of scans."""
        if self.vectors is None:
            return 0.0
        return SCALED_SD * rng.standard_normal((n_people, len(self.vectors))) @ self.vectors / np.sqrt(self.freedom)


def paired_readings(
    models: Parameters,
    scale: SeverityScale,
    brains: np.ndarray,
    composition: str,
    correlation: np.ndarray | None,
    noise: Noise,
    seed: int,
) -> np.ndarray:
    """Return severities that are read of people made, in two scans each → ``(patterns, 2, people, DOSES)``.

    Parameters
    ----------
    models
        Of the repetitions behind the consensus.
    scale
        What R-indices are read on.
    brains
        Of healthy people, scaled.
    composition
        How patterns add up in f.
    correlation
        Of the severities' normal scores; independent where None.
    noise
        Of a scan.
    seed
        Of the draws.
    """
    rng, curves = (
        np.random.default_rng([seed, len(brains)]),
        inference.doses(models, brains, composition, SEVERITIES_OF_F),
    )
    n_models, n_patterns = curves.shape[:2]
    correlation = np.eye(n_patterns) if correlation is None else correlation
    readings = []
    for pattern in range(n_patterns):
        brain, maker = rng.integers(len(brains), size=_PEOPLE), rng.integers(n_models, size=_PEOPLE)
        others = draw_others(rng.random(_PEOPLE), pattern, correlation, rng)
        z = np.repeat(others, len(DOSES), axis=0)
        z[:, pattern] = np.concatenate(
            [np.interp(DOSES, increasing(curves[one, pattern]), SEVERITIES_OF_F) for one in maker]
        )
        by = np.repeat(maker, len(DOSES))
        made = make_people(models, np.repeat(brains[brain], len(DOSES), axis=0), z, by, composition)
        visits = []
        for _ in range(2):
            scan = noise.of_regions(_PEOPLE, rng)
            scan = np.repeat(scan, len(DOSES), axis=0) if isinstance(scan, np.ndarray) else scan
            r_indices = mean_known(inference.r_indices(models, made + scan), np.arange(n_models)[:, None] != by)
            read = scale.severities(r_indices)[:, pattern].reshape(_PEOPLE, len(DOSES))
            visits.append(read + noise.sd[pattern] * rng.standard_normal((_PEOPLE, 1)))
        readings.append(visits)
    return np.array(readings)


def change_limits(
    readings: np.ndarray, change: np.ndarray, centre: np.ndarray, level: float, freedom: float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of the true change of people, for one pattern; NaN where no change is likely.

    Parameters
    ----------
    readings
        Of people made ``(2, people, DOSES)``, see `paired_readings`.
    change
        That were read, from the first visit to the last.
    centre
        Mean severity of the visits: the true ones are taken to lie about it.
    level
        Confidence level of the intervals.
    freedom
        Degrees of freedom of the noise.
    """
    first, second = readings
    changes = second[:, None, :] - first[:, :, None]  # (people, severity at first, severity at last)
    sd = np.hypot(changes.std(axis=0), _GAIN_SD * (DOSES - DOSES[:, None]))
    middle, half = np.median(changes, axis=0), student_t.isf((1 - level) / 2, freedom) * sd
    about = np.clip(centre, 0, DOSES[-1])[:, None]
    begin = np.clip(about - _CHANGES / 2, np.maximum(-_CHANGES, 0), np.minimum(DOSES[-1] - _CHANGES, DOSES[-1]))
    pairs = np.stack([begin, np.clip(begin + _CHANGES, 0, DOSES[-1])], axis=-1)
    least, most = (RegularGridInterpolator((DOSES, DOSES), of)(pairs) for of in (middle - half, middle + half))
    likely = (least <= change[:, None]) & (change[:, None] <= most)
    sides = (np.where(likely, _CHANGES, fill) for fill in (np.inf, -np.inf))
    least, most = (pick(of, axis=1) for pick, of in zip((np.min, np.max), sides, strict=True))
    has_neighbours = likely.any(axis=1)
    return np.where(has_neighbours, least, np.nan), np.where(has_neighbours, most, np.nan)


def can_tell(scale: SeverityScale | None, n_models: int) -> bool:
    """Whether intervals of severities, and so of changes, are known."""
    return scale is not None and scale.quantiles is not None and n_models >= FEWEST
