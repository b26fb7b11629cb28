"""Which regions speak for a person's R-indices."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rindices.analysis.columns import same_people
from rindices.errors import InputError


def drivers(
    decomposed: ArrayLike,
    z_scores: pd.DataFrame,
    participant_id: ArrayLike,
    visit: ArrayLike | None = None,
    n: int = 6,
) -> pd.DataFrame:
    """List the regions that each pattern changed most in each person.

    Parameters
    ----------
    decomposed
        What g₁ says each pattern did, in sd of controls: people × patterns × regions.
    z_scores
        One column a region, the same people.
    participant_id, visit
        Who they are, and which visit where there are several.
    n
        Regions a person and pattern.

    Returns
    -------
    DataFrame
        ``participant_id``, ``visit`` (where given), ``pattern``, ``rank`` (1 is the largest change), ``region``,
        ``change_sd`` and ``z`` (the person's z score there).

    Examples
    --------
    >>> z = pd.DataFrame({"insula": [-0.5], "hippocampus": [-1.8]})
    >>> drivers([[[-0.1, -1.2]]], z, ["P1"], n=1).values.tolist()
    [['P1', 1, 1, 'hippocampus', -1.2, -1.8]]
    """
    changes, ids = np.asarray(decomposed, float), np.asarray(participant_id, object)
    same_people(len(z_scores), participant_id=ids, decomposed=changes)
    if changes.ndim != 3 or changes.shape[2] != z_scores.shape[1]:
        raise InputError(
            f"`decomposed` should be people × patterns × {z_scores.shape[1]} regions; its shape is {changes.shape}."
        )
    order = np.argsort(-np.abs(changes), axis=2, kind="stable")[:, :, :n]
    person, pattern, rank = (axis.ravel() for axis in np.indices(order.shape))
    region = order.ravel()
    table = {"participant_id": ids[person]}
    if visit is not None:
        visits = np.asarray(visit, object)
        same_people(len(z_scores), visit=visits)
        table["visit"] = visits[person]
    return pd.DataFrame(
        table
        | {
            "pattern": pattern + 1,
            "rank": rank + 1,
            "region": z_scores.columns.to_numpy()[region],
            "change_sd": changes[person, pattern, region],
            "z": z_scores.to_numpy(float)[person, region],
        }
    )
