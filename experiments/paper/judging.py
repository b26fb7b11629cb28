"""Judge the repetitions of one setting at each look: their agreement, and their concordance with the truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices.judging import agreement_and_misfit as agreement
from rindices.scoring.consensus_and_person import aligned, find_consensus


class Agreed(NamedTuple):
    """Sound repetitions at one look; those that agree, with patterns in a common order."""

    value: float  # pattern agreement of all sound repetitions
    members: np.ndarray  # numbers of those used
    orders: np.ndarray  # (used, patterns)


def sound_members(members: np.ndarray) -> np.ndarray:
    """Return the numbers of repetitions that neither diverged nor collapsed, as the estimator counts them."""
    return np.array([number for number, fault in enumerate(agreement.faults(members)) if not fault], int)


def agree(members: np.ndarray) -> Agreed | None:
    """Find the consensus of repetitions ``(repetitions, patients, patterns)``; None with fewer than two sound ones."""
    sound = sound_members(members)
    if len(sound) < 2:
        return None
    pairs = agreement.pairwise(members[sound])
    found = find_consensus(members[sound], pairs)
    return Agreed(agreement.mean_agreement(pairs).pattern_agreement, sound[found.kept], found.orders)


def together(members: np.ndarray, agreed: Agreed) -> np.ndarray:
    """Average the repetitions that agree → ``(people, patterns)``."""
    return np.mean([members[k][:, order] for k, order in zip(agreed.members, agreed.orders, strict=True)], axis=0)


def best_look(looks: np.ndarray, steps: list[int], from_step: int) -> tuple[int, Agreed | None]:
    """Choose, without the truth, the look with the best agreement among those from `from_step` on."""
    found = {place: agree(looks[place].astype(float)) for place, step in enumerate(steps) if step >= from_step}
    values = {place: -1.0 if agreed is None else agreed.value for place, agreed in found.items()}
    best = max(values, key=lambda place: values[place])
    return best, found[best]


def judge(looks: np.ndarray, steps: list[int], truth: np.ndarray | None) -> list[dict[str, float]]:
    """Describe every look of one setting ``(looks, repetitions, patients, patterns)``; without `truth`, agreement only.

    Single models are all finite ones; agreement and consensus exclude collapsed ones, as in the estimator.
    """
    return [
        {"step": step} | _describe(members.astype(float), truth) for step, members in zip(steps, looks, strict=True)
    ]


def _describe(members: np.ndarray, truth: np.ndarray | None) -> dict[str, float]:
    sound = sound_members(members)
    pairs = agreement.pairwise(members[sound])
    row: dict[str, float] = {"n_models": len(members), "n_sound": len(sound)}
    row |= agreement.mean_agreement(pairs)._asdict() | {"agreement_error": float(agreement.jackknife(pairs)[0])}
    if truth is None or truth.shape[1] != members.shape[2]:
        return row
    finite = members[np.isfinite(members).all(axis=(1, 2))]
    single = np.array([agreement.pattern_concordance(truth, one) for one in finite])
    several = len(single) > 1
    row |= {
        "single": float(single.mean()) if len(single) else np.nan,
        "single_sd": float(single.std(ddof=1)) if several else np.nan,
        "single_se": float(single.std(ddof=1) / np.sqrt(len(single))) if several else np.nan,
        "consensus": np.nan,
        "n_used": 0,
    }
    if len(sound):
        found = find_consensus(members[sound], pairs)
        average = aligned(members[sound], found).mean(axis=0)
        row |= {"consensus": agreement.pattern_concordance(truth, average), "n_used": len(found.kept)}
    return row


def chosen_looks(table: pd.DataFrame, by: list[str], from_step: int) -> pd.DataFrame:
    """Keep the row with the highest agreement in each group, among looks from `from_step` on."""
    may = table[(table["step"] >= from_step) & table["pattern_agreement"].notna()]
    return may.loc[may.groupby(by, sort=False)["pattern_agreement"].idxmax()].reset_index(drop=True)
