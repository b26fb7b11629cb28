"""What each pattern does to each region, as tables: one row for each region and pattern."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rindices.preprocessing import SCALED_SD, ControlScaler


def map_table(
    changes: np.ndarray, scaler: ControlScaler, regions: Sequence[str], names: tuple[str, str, str]
) -> pd.DataFrame:
    """Return changes of scaled regions as a table.

    Parameters
    ----------
    changes : ndarray of shape (repetitions, patterns, regions)
        Changes of scaled regions.
    scaler : ControlScaler
        Mean and sd of controls.
    regions : sequence of str
        Their names.
    names : tuple of str
        Names of the columns for the mean in sd of controls, in % of the controls' mean, and for the sd over
        repetitions, in sd of controls.
    """
    in_sd = changes / SCALED_SD
    percent = 100 * in_sd.mean(axis=0) * scaler.sd / np.abs(scaler.mean)
    n_patterns = changes.shape[1]
    values = zip(names, (in_sd.mean(axis=0), percent, spread_of(in_sd)), strict=True)
    return pd.DataFrame(
        {"region": list(regions) * n_patterns, "pattern": np.repeat(np.arange(n_patterns) + 1, len(regions))}
        | {name: numbers.ravel() for name, numbers in values}
    )


def spread_of(members: np.ndarray) -> np.ndarray:
    """Return the standard deviation over repetitions, NaN with a single one."""
    return members.std(axis=0, ddof=1) if len(members) > 1 else np.full(members.shape[1:], np.nan)
