"""The sentences of docs/peers.md about results/peers.csv, each with the comparison that supports it.

`peers_page.py` writes them into the page; `tests/docs/test_peers.py` fails if a comparison is wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parents[2] / "results" / "peers.csv"
BOUND, LINEAR, OURS, PCA = "regression told the truth", "rindices, linear", "rindices", "PCA of z-scores"
SURREAL, SMILE, HYDRA, SUSTAIN, NMF, OPNMF = "Surreal-GAN", "Smile-GAN", "HYDRA", "SuStaIn", "NMF", "opNMF"
OLDER = ("discriminant NMF", "factor analysis", "LDA")  # in the paper's comparison; not in halves() and costs()
METHODS = (BOUND, OURS, LINEAR, SURREAL, SMILE, HYDRA, SUSTAIN, NMF, OPNMF, *OLDER, PCA)
PEERS = METHODS[3:]
REAL, AUTHORS, ONE, NONE = "real people", "authors' sample", "one pattern", "no disease"
KINDS = ("basic", "overlap", "scarce", "noise", "mild")
HARD = (*KINDS, REAL, ONE)  # healthy variation as in the paper or in real people
CONTINUOUS = (*KINDS, REAL, AUTHORS, ONE)
SUBTYPES, SEQUENCE, INDEPENDENT = DISCRETE = ("subtypes", "sequence", "sequence, independent")
NAMED = "regression trained on the truth"  # name of BOUND on the page
ABSENT = "–"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven")
TABLE = pd.read_csv(RESULTS, keep_default_na=False, na_values=[""])


class Claim(NamedTuple):
    """A sentence of the page, and whether the measurements support it."""

    text: str
    holds: bool


def cell(method: str, cohort: str, column: str = "concordance", part: str = "whole") -> float:
    """Return the mean over cohorts of a kind, or NaN if nothing was measured."""
    return float(rows_of(method, cohort, part)[column].mean())


def rows_of(method: str, cohort: str | None = None, part: str = "whole") -> pd.DataFrame:
    """Return the measurements of a method."""
    own = (TABLE["method"] == method) & (TABLE["part"] == part)
    return TABLE[own & ((TABLE["cohort"] == cohort) | (cohort is None))]


def told(value: float, digits: int = 2) -> str:
    """Format a number for the page."""
    return ABSENT if np.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # no −0.00


def best_peer(cohort: str, column: str = "concordance") -> tuple[str, float]:
    """Return the best method of other authors, and its value."""
    values = {method: cell(method, cohort, column) for method in PEERS}
    name = max(values, key=lambda method: np.nan_to_num(values[method], nan=-1))
    return name, values[name]


def found(method: str, *cohorts: str, column: str = "concordance", part: str = "whole") -> str:
    """Format the means of one or more cohorts."""
    return " and ".join(told(cell(method, cohort, column, part)) for cohort in cohorts)


def halves_of(method: str, *cohorts: str) -> str:
    """Format the agreement of disjoint halves."""
    return found(method, *cohorts, column="agreement", part="halves")


def answers() -> dict[str, tuple[str, Claim]]:
    """Return the recommended method for each question, with its evidence."""
    return {
        "How severe is each of several patterns in each person?": ("rindices", _several()),
        "How severe is each pattern, if you have only seconds or need to analyse hundreds of tables?": (
            "rindices with `--method linear`",
            _seconds(),
        ),
        "Which one of several distinct subtypes does each patient have?": (
            "the largest severity from rindices, if you know how many subtypes there are",
            _labels(),
        ),
        "In what order do regions become abnormal, and at which stage is each person?": (
            "SuStaIn, on a few regional means",
            _order(),
        ),
        "Do patients differ from controls in a reproducible way?": ("the verdict of rindices", _difference()),
        "How severe is each pattern, if patterns are strong and healthy variation is small?": (
            "rindices, NMF, opNMF or Surreal-GAN",
            _easy(),
        ),
    }


def _several() -> Claim:
    both = ("basic", "mild")
    (peer, *_), others = zip(*map(best_peer, both), strict=True)
    text = f"concordance of {found(OURS, both[0])} on *basic* and {found(OURS, both[1])} on *mild*, compared with "
    text += f"{found(BOUND, *both)} for {NAMED}, and {' and '.join(map(told, others))} for the best other method "
    text += f"({peer})"
    ahead = all(cell(OURS, name) > value for name, value in zip(both, others, strict=True))
    return Claim(text, ahead and {best_peer(name)[0] for name in both} == {peer})


def _seconds() -> Claim:
    minutes = told(rows_of(LINEAR, part="timing")["minutes"].mean(), 1)
    text = f"concordance of {found(LINEAR, 'basic', 'mild')} on the same cohorts, in {minutes} minutes of processor "
    text += "time, including the verdict"
    return Claim(text, all(cell(OURS, name) - cell(LINEAR, name) < 0.01 for name in ("basic", "mild")))


def best_subtypes() -> tuple[str, float]:
    """Return the peer with the best subtype labels in any fit, whether the number of patterns was given or chosen."""
    own = TABLE[(TABLE["cohort"] == SUBTYPES) & TABLE["method"].isin(PEERS)]
    best = own.loc[own["ari"].idxmax()]
    return str(best["method"]), float(best["ari"])


def _labels() -> Claim:
    ari, (peer, second) = (found(name, SUBTYPES, column="ari") for name in (OURS, LINEAR)), best_peer(SUBTYPES, "ari")
    text = "adjusted Rand index (ARI) of {} on *subtypes* ({} with `--method linear`), compared with ".format(*ari)
    text += f"{told(second)} for the best other method ({peer})"
    return Claim(text, min(cell(name, SUBTYPES, "ari") for name in (OURS, LINEAR)) > best_subtypes()[1])


def _order() -> Claim:
    both = (SEQUENCE, INDEPENDENT)
    text = (
        f"only SuStaIn estimates an order; its concordance with the true stage is {found(SUSTAIN, *both)} on the "
        "two kinds of "
    )
    text += f"*sequence*, compared with {found(OURS, *both)} for rindices"
    return Claim(text, all(cell(SUSTAIN, name) > cell(OURS, name) for name in both))


def _difference() -> Claim:
    verdicts = pd.concat([rows_of(name, NONE)["verdict"] for name in (OURS, LINEAR)])
    text = f"without disease, the verdict is *{verdicts.iloc[0]}*; the other methods have no test"
    return Claim(text, set(verdicts) == {"no difference"})


def _easy() -> Claim:
    close = [cell(name, AUTHORS) for name in (OURS, LINEAR, NMF, OPNMF, SURREAL)]
    text = f"concordance of {told(min(close))} to {told(max(close))} on the authors' sample, compared with "
    return Claim(f"{text}{found(BOUND, AUTHORS)} for {NAMED}", max(close) - min(close) < 0.03)


def findings() -> list[Claim]:
    """Return the findings of the comparison."""
    return [_continuous(), _authors_package(), _linear(), _sequences(), _subtypes(), _halves()]


def _continuous() -> Claim:
    gap = max(cell(BOUND, name) - cell(OURS, name) for name in CONTINUOUS)
    lead = {name: cell(OURS, name) - best_peer(name)[1] for name in HARD}
    real, peer = lead.pop(REAL), best_peer(REAL)[0]
    return Claim(
        f"**With continuous severities**, the concordance of rindices is at most {told(gap, 3)} below that of {NAMED}. "
        f"At the paper's difficulty, it is at least {told(min(lead.values()))} above that of every other group's "
        f"method; in real people, it is {told(real, 3)} above that of {peer}. NMF, opNMF, PCA and SuStaIn mostly "
        "describe healthy variation, which is larger than the effect of the disease.",
        gap < 0.03 and min(lead.values()) > 0.03 and 0 < real < 0.03,
    )


def _authors_package() -> Claim:
    behind = [cell(OURS, name) - cell(SURREAL, name) for name in HARD]
    return Claim(
        f"**Surreal-GAN** is the best of the other groups' methods in most cohorts with continuous severities, with a "
        f"concordance {told(min(behind))} to {told(max(behind))} below that of rindices.",
        min(behind) > 0 and sum(best_peer(name)[0] == SURREAL for name in HARD) > len(HARD) / 2,
    )


def _linear() -> Claim:
    apart = max(abs(cell(OURS, name) - cell(LINEAR, name)) for name in CONTINUOUS)
    labels = [cell(name, SUBTYPES, "ari") for name in (LINEAR, OURS)]
    return Claim(
        f"**The linear model alone** differs from the full method by at most {told(apart, 3)} in concordance if "
        "severities are continuous, and labels subtypes equally well.",
        apart < 0.02 and abs(labels[0] - labels[1]) < 0.05,
    )


def _sequences() -> Claim:
    named = (OURS, SUSTAIN, NMF, SURREAL)
    stage = {name: [cell(name, cohort) for cohort in (SEQUENCE, INDEPENDENT)] for name in named}
    label = {name: [cell(name, cohort, "ari") for cohort in (SEQUENCE, INDEPENDENT)] for name in named}
    each = " in one and ".join(told(value) for value in rows_of(SUSTAIN, SEQUENCE)["ari"])
    return Claim(
        "**If the disease is a sequence of events, SuStaIn is better than rindices.** Its expected stage agrees better "
        "with the true stage than the severities from rindices do. If regions vary independently, as SuStaIn assumes, "
        "NMF also reaches a higher concordance than rindices, and NMF and SuStaIn label subtypes better. If regions "
        "are correlated, rindices and Surreal-GAN label subtypes best, but the two cohorts differ widely: the ARI of "
        "SuStaIn is "
        f"{each} in the other. SuStaIn used eight lobar means; the other methods used 128 regions.",
        stage[SUSTAIN][0] > max(stage[OURS][0], stage[SURREAL][0])
        and min(stage[SUSTAIN][1], stage[NMF][1]) > stage[OURS][1]
        and min(label[SUSTAIN][1], label[NMF][1]) > label[OURS][1]
        and label[OURS][0] > label[SURREAL][0] > max(label[SUSTAIN][0], label[NMF][0]),
    )


def _subtypes() -> Claim:
    (peer, second), own = best_peer(SUBTYPES, "ari"), cell(OURS, SUBTYPES, "ari")
    chosen, three = rows_of(LINEAR, SUBTYPES, "chosen").iloc[0], (*KINDS, REAL, AUTHORS)
    counts = {name: cell(LINEAR, name, "number", "chosen") for name in (*three, SEQUENCE)}
    return Claim(
        f"**If patients belong to subtypes** and the number of subtypes is known, rindices labels them best: its ARI "
        f"is {told(own)}, compared with {told(second)} for {peer}, the next best method. If the "
        f"number is estimated, rindices finds {WORDS[int(chosen['number'])]} of the three subtypes, and its ARI falls "
        f"to {told(chosen['ari'])}; set `--patterns` if you expect subtypes. For a sequence with two orders, the "
        f"estimated number is {WORDS[int(counts[SEQUENCE])]}. The estimate is correct in all {WORDS[len(three)]} kinds "
        "of cohort with three continuous patterns.",
        own > second and chosen["number"] == 2 and counts[SEQUENCE] > 2 and all(counts[name] == 3 for name in three),
    )


def _halves() -> Claim:
    steady, own = (NMF, OPNMF, SUSTAIN), {"column": "agreement", "part": "halves"}
    mild, none = ([cell(name, cohort, **own) for name in steady] for cohort in ("mild", NONE))
    return Claim(
        "**Agreement between halves is not evidence of disease.** On *mild*, NMF, opNMF and SuStaIn reach a "
        f"concordance between halves of {told(min(mild))} or more, compared with {halves_of(OURS, 'mild')} for "
        f"rindices. Without disease, these three methods still reach {told(min(none))} or more, because healthy "
        f"variation is also reproducible; rindices and Surreal-GAN reach {halves_of(OURS, NONE)}, hardly better than "
        "chance.",
        min(mild) > max(cell(name, "mild", **own) for name in (OURS, LINEAR))
        and min(none) > 0.85
        and max(cell(name, NONE, **own) for name in (OURS, LINEAR, SURREAL)) < 0.55
        and halves_of(OURS, NONE) == halves_of(SURREAL, NONE),
    )
