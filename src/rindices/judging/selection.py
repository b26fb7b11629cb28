"""The sweep: train repetitions of each setting, measure how well they agree, keep the best setting and checkpoint.

A single setting is a sweep, too: there is no other way to train.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import jax
import numpy as np
import pandas as pd

from rindices.judging.agreement_and_misfit import Agreement, Misfit, faults, interval, mean_agreement, misfit, pairwise
from rindices.judging.spectrum import Spectrum
from rindices.judging.study import Study
from rindices.problems import counted
from rindices.settings import Basis
from rindices.training.chunks import Chunk, Member, Point, Trajectory, members_of
from rindices.training.execution import Execution, train_members

FIRST_REPETITIONS = 3  # of each setting, before most settings are dropped
# Standard errors of the difference between two misfits beyond which one is worse: finally, and in the first stage.
CLEARLY, HARDLY = 2.0, 3.0
# Agreement that may be lost with one more pattern that is real. In sixteen cohorts (basic and mild) with one to four
# patterns, the loss was at most 0.01, and 0.04 or more with a pattern that did not exist.
_AS_WELL, _PERHAPS_AS_WELL = 0.02, 0.06
UNLIKELY = 0.6  # agreement that repetitions from random weights rarely reach without disease
MOST_REPLACED = 2  # repetitions that are trained to replace failed ones
_LATE = 2.0  # overlap of patterns, relative to the median repetition; a late one had 2.5, others 0.9 to 1.1


class CheckpointResult(NamedTuple):
    """Results of one checkpoint of a setting."""

    step: int
    n_models: int  # neither diverged nor collapsed
    agreement: Agreement
    low: Agreement  # 95 % jackknife intervals over models
    high: Agreement
    losses: dict[str, float]  # means over these models; without any, losses and agreement are of those that collapsed

    @property
    def rank(self) -> tuple[bool, float, int, int]:
        """Any sound models, then agreement; if undefined (fewer than two models), their number, then steps."""
        n_models, value = self.n_models, self.agreement.pattern_agreement
        return (n_models > 0, value, 0, 0) if not np.isnan(value) else (n_models > 0, -1.0, n_models, self.step)

    def row(self) -> dict[str, float]:
        """Return the step, the number of models, and their agreement with its limits."""
        limits = {
            f"{name}_{side}": getattr(of, name)
            for name in Agreement._fields
            for side, of in (("low", self.low), ("high", self.high))
        }
        return {"step": self.step, "n_models": self.n_models} | self.agreement._asdict() | limits


@dataclass(frozen=True, eq=False)
class Judged:
    """A setting and the results of its repetitions."""

    point: Point
    n_repetitions: int
    checkpoints: list[CheckpointResult]
    best: int  # position in `checkpoints`
    misfit: Misfit | None = None  # None: not computed, or no model is sound
    failed: tuple[int, ...] = ()  # repetitions that diverged, collapsed or are late, whether they agree or not

    @property
    def best_checkpoint(self) -> CheckpointResult:
        """The best checkpoint."""
        return self.checkpoints[self.best]

    @property
    def value(self) -> float:
        """Pattern agreement at the best checkpoint."""
        return self.best_checkpoint.agreement.pattern_agreement

    def fits(self, others: Iterable[Self], errors: float = CLEARLY) -> bool:
        """Return whether synthesised patients are not clearly further from the real ones than those of any other."""
        return self.misfit is not None and not any(
            self.misfit.is_clearly_above(one.misfit, errors) for one in others if one.misfit is not None
        )


@dataclass(frozen=True, eq=False)
class Swept:
    """All settings of a sweep that were trained, and the one that was chosen."""

    judged: list[Judged]
    chosen: Judged
    n_first: int  # repetitions that every setting had
    n_repetitions: int
    chunks: list[Chunk]
    untried: Sequence[Point] = ()  # other weights λ for numbers of patterns that had been dropped

    @property
    def models_trained(self) -> int:
        """Number of models that were trained."""
        return sum(one.n_repetitions for one in self.judged)

    @property
    def models_exhaustive(self) -> int:
        """Number of models in all repetitions of all settings."""
        return (len(self.judged) + len(self.untried)) * self.n_repetitions

    @property
    def has_fit(self) -> bool:
        """Whether the fit of synthesised patients was measured."""
        return any(one.misfit is not None for one in self.judged)

    def table(self) -> pd.DataFrame:
        """Return the agreement of each setting at each checkpoint."""
        return pd.DataFrame(
            [
                one.point._asdict()
                | checkpoint.row()
                | {"misfit": one.misfit.value if checkpoint is one.best_checkpoint and one.misfit else np.nan}
                | {"best": checkpoint is one.best_checkpoint, "chosen": checkpoint is self.chosen.best_checkpoint}
                for one in self.judged
                for checkpoint in one.checkpoints
            ]
        )


def sweep(
    study: Study,
    points: Sequence[Point],
    n_repetitions: int,
    execution: Execution,
    *,
    usual: float = 0.8,
    exhaustive: bool = False,
) -> Swept:
    """Train the settings and choose one, see `choose`.

    Unless `exhaustive`, every number of patterns gets `FIRST_REPETITIONS` with the weight λ nearest to `usual`. Numbers
    that may still be chosen get as many with every other weight, and then the remaining ones with the best weight.
    Saving steps instead of repetitions would not work: early in training, hard cohorts favour too few patterns.
    """
    of_each_number = usual_weights(points, usual)
    # With one pattern there is nothing to separate, so the weight does not matter.
    points = [point for point in dict.fromkeys(points) if point.n_patterns > 1 or point in of_each_number]
    several = len(of_each_number) > 1
    with_misfit = several and study.settings.preset.training.freeze_below is None  # the paper uses agreement alone
    execution.prepare(study.people, [point.n_patterns for point in of_each_number], study.settings.preset.schedule)
    chunks: list[Chunk] = []
    judged: dict[Point, Judged] = {}

    def train(of: Sequence[Point], members: Sequence[Member], n_models: int, stage: str) -> None:
        apart = len(study.redrawn) > 0  # repetitions have their own draws of missing values
        chunks.extend(train_members(members, study.settings, study.people, execution, stage, apart=apart))
        judged.update({one: judge(study, one, n_models, chunks, execution, with_misfit=with_misfit) for one in of})

    in_full = exhaustive or len(points) == 1 or n_repetitions <= FIRST_REPETITIONS
    if study.settings.preset.training.start == "linear":
        for number in {point.n_patterns for point in points}:
            study.method(number)  # determined before people are sent to workers
    first, at_first = (n_repetitions, points) if in_full else (FIRST_REPETITIONS, of_each_number if several else points)
    train(at_first, members_of(at_first, range(first)), first, "Training" if in_full else "First stage, all settings")
    if not in_full:
        numbers = {point.n_patterns for point in rivals(list(judged.values()))}
        others = [point for point in points if point.n_patterns in numbers and point not in judged]
        if others:
            train(others, members_of(others, range(first)), first, "First stage, other weights")
        best = rivals(list(judged.values()))
        train(best, members_of(best, range(first, n_repetitions)), n_repetitions, "All repetitions of the best setting")
    tried = [judged[point] for point in points if point in judged]
    chosen = choose([one for one in tried if one.n_repetitions == n_repetitions])
    point = chosen.point
    if 0 < len(chosen.failed) <= n_repetitions // 2:  # if most failed, longer training and others would fail, too
        if study.settings.preset.schedule.longest:  # many that failed are only late
            late = [one._replace(prolonged=True) for one in members_of([point], chosen.failed)]
            train([point], late, n_repetitions, "Training failed repetitions for longer")
        n_all = n_repetitions + min(len(judged[point].failed), MOST_REPLACED)
        if new := members_of([point], range(n_repetitions, n_all)):
            train([point], new, n_all, "Replacing failed repetitions")
    tried, untried = [judged[one.point] for one in tried], [one for one in points if one not in judged]
    return Swept(tried, judged[point], first, n_repetitions, chunks, untried)


def usual_weights(points: Iterable[Point], usual: float) -> list[Point]:
    """Return, for each number of patterns, the setting whose weight λ is nearest to the usual one."""
    nearest_last = sorted(points, key=lambda point: abs(point.orthogonality - usual))[::-1]
    return sorted({point.n_patterns: point for point in nearest_last}.values())


def choose(judged: Sequence[Judged]) -> Judged:
    """Choose the fewest patterns that fit and on which repetitions agree, or more if they agree on these as well.

    Synthesised patients fit if they are not clearly further from the real ones than with any other number of patterns;
    repetitions agree if they do so better than in cohorts without disease. Fit alone may miss mild patterns; but one
    more pattern is harder to agree on, so if repetitions agree on it equally well, it is real. If no number both fits
    and agrees, the one that agrees best is chosen, as it is among several weights λ with the same number of patterns.
    If fit was not measured, as in the paper, agreement decides, and one pattern, which cannot be confused with another,
    is not among the choices.
    """
    best = best_of_each_number(judged)
    if all(one.misfit is None for one in best):
        return max([one for one in best if one.point.n_patterns > 1] or best, key=lambda one: one.best_checkpoint.rank)
    return _largest_agreeing(best, _AS_WELL)


def _largest_agreeing(best: Sequence[Judged], margin: float) -> Judged:
    """Begin with the fewest patterns that fit and agree, and continue while the next agree as well, within `margin`.

    If no number both fits and agrees, return the one that agrees best.
    """
    good = [one for one in best if one.fits(best) and one.value > UNLIKELY] or [
        max(best, key=lambda one: one.best_checkpoint.rank)
    ]
    first, *more = sorted(good, key=lambda one: one.point.n_patterns)
    for one in more:
        if one.point.n_patterns > first.point.n_patterns + 1 or one.value < first.value - margin:
            break
        first = one
    return first


def rivals(judged: Sequence[Judged]) -> list[Point]:
    """Return the settings that may still be chosen after the first repetitions.

    One weight λ for each number of patterns: which one agrees best may be chance and hardly matters (in five kinds of
    cohorts, with λ from 0.1 to 0.8, the concordance of the consensus with the truth differed by at most 0.002).
    """
    best, chosen = best_of_each_number(judged), choose(judged)
    most = max(one.point.n_patterns for one in (chosen, _largest_agreeing(best, _PERHAPS_AS_WELL)))
    return [
        one.point
        for one in best
        if one.point.n_patterns == chosen.point.n_patterns
        or (one.point.n_patterns <= most and one.fits(best, HARDLY) and one.value > UNLIKELY)
    ]


def best_of_each_number(judged: Sequence[Judged]) -> list[Judged]:
    """Return, for each number of patterns, the setting whose weight λ agrees best."""
    return [
        max((one for one in judged if one.point.n_patterns == number), key=lambda one: one.best_checkpoint.rank)
        for number in dict.fromkeys(one.point.n_patterns for one in judged)
    ]


def judge(
    study: Study,
    point: Point,
    n_repetitions: int,
    chunks: Sequence[Chunk],
    execution: Execution,
    *,
    with_misfit: bool = False,
) -> Judged:
    """Measure how well the first repetitions of a setting agree at each checkpoint, and find the best checkpoint."""
    models = trajectories_of(members_of([point], range(n_repetitions)), chunks, execution)
    steps = max((trajectory.steps for trajectory, _, _ in models), key=len)
    r_indices = np.stack([of.r_indices[rows, k, :, : point.n_patterns] for of, rows, k in models])
    losses = {name: np.stack([of.losses[name][rows, k] for of, rows, k in models]) for name in models[0][0].losses}
    preset = study.settings.preset
    checkpoints = [
        _at_checkpoint(
            int(step), r_indices[:, place].astype(float), {name: of[:, place] for name, of in losses.items()}
        )
        for place, step in enumerate(steps)
    ]
    # Models with a stopping rule of their own are used as they stopped.
    from_step = preset.schedule.min_steps if preset.training.freeze_below is None else checkpoints[-1].step
    eligible = [place for place, one in enumerate(checkpoints) if one.step >= from_step] or [len(checkpoints) - 1]
    best = max(eligible, key=lambda place: checkpoints[place].rank)
    wrong = faults(r_indices[:, best].astype(float))
    failed = _failed(wrong, losses.get("orthogonality", np.ones((len(models), len(checkpoints))))[:, best])
    sound = [(of, int(at[best]), k) for (of, at, k), fault in zip(models, wrong, strict=True) if not fault]
    distance = _misfit(study, point.n_patterns, checkpoints[best].step, sound) if with_misfit and sound else None
    return Judged(point, n_repetitions, checkpoints, best, distance, failed)


def _failed(faults: list[str], overlaps: np.ndarray) -> tuple[int, ...]:
    """Return repetitions with a fault, and those whose patterns still overlap far more than those of others."""
    known = overlaps[~np.isnan(overlaps)]  # of those that did not diverge
    late = overlaps > (_LATE * np.median(known) if len(known) else np.inf)
    return tuple(number for number, (fault, slow) in enumerate(zip(faults, late, strict=True)) if fault or slow)


def _misfit(study: Study, n_patterns: int, step: int, sound: list[tuple[Trajectory, int, int]]) -> Misfit:
    """Compare the patients that sound models synthesise with the real ones."""
    models = jax.tree.map(lambda *leaves: np.stack(leaves), *(of.weights_of(k, n_patterns, step) for of, _, k in sound))
    correlations = np.stack([of.correlations[at, k, :n_patterns, :n_patterns] for of, at, k in sound]).astype(float)
    return misfit(models, correlations, study.people(), study.settings.preset.training.composition, study.settings.seed)


def trajectories_of(
    members: list[Member], chunks: Sequence[Chunk], execution: Execution
) -> list[tuple[Trajectory, np.ndarray, int]]:
    """Return each member's trajectory, the checkpoints of it to use, and the member's place in it.

    Where a chunk ended early because all its models were frozen, its last checkpoint is used for all later ones; of
    prolonged models, only the last checkpoint is used.
    """
    place = {member: (chunk, k) for chunk in chunks for k, member in enumerate(chunk.members)}
    longer = {member._replace(prolonged=False): where for member, where in place.items() if member.prolonged}
    chosen = [(member in longer, *(longer.get(member) or place[member])) for member in members]
    trajectories = [(execution.store[chunk].end() if late else execution.store[chunk], k) for late, chunk, k in chosen]
    rows = np.arange(max(len(trajectory.steps) for trajectory, _ in trajectories))
    return [(trajectory, np.minimum(rows, len(trajectory.steps) - 1), k) for trajectory, k in trajectories]


def _at_checkpoint(step: int, r_indices: np.ndarray, losses: dict[str, np.ndarray]) -> CheckpointResult:
    wrong = faults(r_indices)
    usable = usable_models(wrong)
    pairs = pairwise(r_indices[usable])
    means = {name: float(values[usable].mean()) if len(usable) else np.nan for name, values in losses.items()}
    low, high = (Agreement(*side.tolist()) for side in interval(pairs).T)
    return CheckpointResult(step, wrong.count(""), mean_agreement(pairs), low, high, means)


def usable_models(faults: list[str]) -> np.ndarray:
    """Return models without a fault; if there are none, those that are at least finite, to have something to show."""
    sound = np.array([i for i, fault in enumerate(faults) if not fault], int)
    return sound if len(sound) else np.array([i for i, fault in enumerate(faults) if fault != "diverged"], int)


def basis_of(swept: Swept, asked: str | int | Sequence[int], spectrum: Spectrum | None) -> Basis:
    """Return the basis for the number of patterns; ``unsupported`` if nothing in the data supports it."""
    if not isinstance(asked, str) and np.size(asked) == 1:
        return "given"
    if spectrum is not None and not spectrum.differs:
        return "unsupported"
    if len({one.point.n_patterns for one in swept.judged}) == 1:
        return "counted" if spectrum is not None and spectrum.found_again else "unsupported"
    if not swept.chosen.value > UNLIKELY:
        return "unsupported"
    if not swept.has_fit:
        return "agreement"
    in_full = [one for one in swept.judged if one.n_repetitions >= swept.n_repetitions]
    return "fit" if swept.chosen.fits(best_of_each_number(in_full)) else "unsupported"


def explain(swept: Swept, basis: Basis, asked: str | int | Sequence[int], spectrum: Spectrum | None) -> str:
    """Explain in words why a setting was chosen."""
    chosen, several = swept.chosen, len({one.point.orthogonality for one in swept.judged}) > 1
    name = counted(chosen.point.n_patterns, "pattern")
    name += f" with orthogonality {chosen.point.orthogonality:g}" if several else ""
    if basis == "counted" and spectrum is not None:
        again = counted(spectrum.found_again, "direction")
        nearest = (
            "" if isinstance(asked, str) else f", and {chosen.point.n_patterns} is the nearest of the requested numbers"
        )
        return f"{name}: held-out patients also vary more than held-out controls in {again}{nearest}."
    if len(swept.judged) == 1:
        nothing = "in no direction do held-out patients clearly vary more than controls, so the smallest number"
        return (
            f"{name}: "
            f"{'specified in advance, not chosen from the data' if basis == 'given' else f'{nothing} was used'}."
        )
    if np.isnan(chosen.value):
        return f"{name}: agreement is unknown, so the choice is arbitrary."
    others = [one for one in swept.judged if one is not chosen]
    agreement = f"the agreement between repetitions is {chosen.value:.3f}"
    if len({one.point.n_patterns for one in swept.judged}) == 1:
        best = f"of {len(swept.judged)} weights, this one gave the best agreement after {swept.n_first} repetitions"
        words = [f"{name}: {best}; {agreement}."]
    elif basis == "fit":
        words = [f"{name}: no other number fits the patients clearly better, and {agreement}."]
    elif basis == "agreement":
        words = [f"{name}: {agreement}, the highest for any number above one; this preset chooses by agreement alone."]
    else:
        fit = "both fits the patients and " if swept.has_fit else ""
        lack = f"no setting {fit}reaches an agreement of {UNLIKELY:g} or more"
        shown = "Of the settings trained in full, this one is shown because its repetitions agree best"
        if spectrum is not None and not spectrum.differs:
            lack = (
                "patients and controls differ no more than expected by chance, so the data do not support any number "
                "of patterns"
            )
            shown = "This setting is shown for completeness"
        words = [f"{name}: {lack}. {shown}; {agreement}."]
    fewer = [one for one in others if one.point.n_patterns < chosen.point.n_patterns]
    if basis == "fit" and fewer:
        worse = [one for one in fewer if not one.fits(swept.judged)]
        unlike = [one for one in fewer if one not in worse and not one.value > UNLIKELY]
        reasons = {
            "fitted the patients clearly worse": worse,
            "showed too little agreement": unlike,
            "also fitted the patients and showed enough agreement, but repetitions agreed equally well on more "
            "patterns": [one for one in fewer if one not in worse + unlike],
        }
        said = [f"{counted(len(of), 'setting')} with fewer patterns {why}" for why, of in reasons.items() if of]
        words.append(f"{' and '.join(said)}.")
    if dropped := [one for one in others if one.n_repetitions < swept.n_repetitions]:
        were = "was" if len(dropped) == 1 else "were"
        words.append(
            f"{len(dropped)} of {len(swept.judged)} settings {were} dropped after {swept.n_first} repetitions."
        )
    if swept.untried:
        left = counted(len(swept.untried), "setting")
        words.append(f"For numbers of patterns that were dropped, other orthogonality weights were not tried ({left}).")
    return " ".join(words)
