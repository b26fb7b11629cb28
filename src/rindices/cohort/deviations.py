"""Regions that are already deviations, such as z-scores of a normative model: recognised, and not corrected twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rindices.cohort.column_roles import named_parts
from rindices.problems import InputError, Remedy, Text, listed
from rindices.settings import TableSettings

UNIT = "z-scores"
_RAW = "uncorrected z-scores"  # what the unit is said to be where they are to be corrected
_SAY_SO = "; if that was not allowed for when they were made, say so with "
_WORDS = frozenset({"z", "zs", "z-score", "z score", "z-scores", "z scores", "zscore", "zscores", "sd", "deviations"})
_CENTRED, _LEAST_SPREAD, _LARGEST_SPREAD = 0.5, 0.4, 2.0  # of controls, who may be of another population
_BELOW = 0.25  # share of values below 0, and above it


def deviation_unit(
    unit: str | None, controls: NDArray[np.float64], settings: TableSettings
) -> tuple[str | None, list[Text]]:
    """Return the unit of the regions, and what there is to say where they are deviations.

    Parameters
    ----------
    unit
        What was said about it.
    controls
        Controls × regions.
    settings
        What is to be corrected for.

    Raises
    ------
    InputError
        If deviations are to be corrected again, or divided by the head size.

    Examples
    --------
    >>> deviation_unit(None, np.random.default_rng(0).normal(0, 1, (50, 9)), TableSettings())[0]
    'z-scores'
    """
    is_said = unit is not None and unit.strip().casefold() in _WORDS
    if not is_said and (unit is not None or not _look_like_deviations(controls)):
        return unit, []
    ways = [one for one in ("proportion", "covariates", "smooth", "interactions", "site") if getattr(settings, one)]
    seem = f"The regions look like {UNIT}: in controls their medians are near 0 and their sd near 1."
    if not ways:
        return (unit, []) if is_said else (UNIT, [seem])
    corrected = listed(name for name, part in named_parts(settings) if part in ("a covariate", "the site"))
    again = f"The regions are {UNIT}, so they are not to be corrected for {corrected} again."
    guessed = f"{seem} They are not to be corrected for {corrected} twice."
    # What is divided by a head size has to be a size.
    undo = () if is_said or settings.proportion else (_SAY_SO, Remedy("unit", _RAW))
    raise InputError(
        f"{again if is_said else guessed}\nLeave out ",
        *[part for way in ways for part in (", ", Remedy(way))][1:],
        *(undo or ("; if nothing was corrected for yet, give the measures themselves",)),
        ".",
    )


def _look_like_deviations(controls: NDArray[np.float64]) -> bool:
    """Tell whether most columns lie around 0 with a spread of about 1."""
    centre = np.nanmedian(controls, axis=0)
    spread = 1.4826 * np.nanmedian(np.abs(controls - centre), axis=0)
    below = np.nanmean(controls < 0, axis=0)
    fits = (np.abs(centre) < _CENTRED) & (spread > _LEAST_SPREAD) & (spread < _LARGEST_SPREAD)
    return bool((fits & (below > _BELOW) & (below < 1 - _BELOW)).mean() > 0.9)
