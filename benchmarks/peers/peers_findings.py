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
        "How severe is each pattern, if you have only seconds, or hundreds of tables?": (
            "rindices with `--method linear`",
            _seconds(),
        ),
        "Which one of several distinct subtypes does each patient have?": (
            "the largest severity from rindices, if you know how many subtypes there are",
            _labels(),
        ),
        "In which order do regions become abnormal, and at which stage is each person?": (
            "SuStaIn, on a few regional means",
            _order(),
        ),
        "Do patients differ from controls in a reproducible way?": ("the verdict of rindices", _difference()),
        "How severe is each pattern, if patterns are strong and healthy variation is small?": (
            "any of rindices, NMF, opNMF and Surreal-GAN",
            _easy(),
        ),
    }


def _several() -> Claim:
    both = ("basic", "mild")
    others = " and ".join(f"{told(value)} ({name})" for name, value in map(best_peer, both))
    text = f"{found(OURS, *both)} on *basic* and *mild*; {NAMED}: {found(BOUND, *both)}; best other "
    return Claim(f"{text}method: {others}", all(cell(OURS, name) > best_peer(name)[1] for name in both))


def _seconds() -> Claim:
    minutes = told(rows_of(LINEAR, part="timing")["minutes"].mean(), 1)
    text = f"{found(LINEAR, 'basic', 'mild')} in {minutes} minutes of processor time, including the verdict"
    return Claim(text, all(cell(OURS, name) - cell(LINEAR, name) < 0.01 for name in ("basic", "mild")))


def best_subtypes() -> tuple[str, float]:
    """Return the peer with the best subtype labels in any fit, whether the number of patterns was given or chosen."""
    own = TABLE[(TABLE["cohort"] == SUBTYPES) & TABLE["method"].isin(PEERS)]
    best = own.loc[own["ari"].idxmax()]
    return str(best["method"]), float(best["ari"])


def _labels() -> Claim:
    ari = {name: told(cell(name, SUBTYPES, "ari")) for name in METHODS}
    text = f"ARI {ari[OURS]} on *subtypes* (`--method linear`: {ari[LINEAR]}); opNMF {ari[OPNMF]}, "
    text += f"Smile-GAN {ari[SMILE]}, NMF {ari[NMF]} and HYDRA {ari[HYDRA]}"
    return Claim(text, min(cell(name, SUBTYPES, "ari") for name in (OURS, LINEAR)) > best_subtypes()[1])


def _order() -> Claim:
    both = (SEQUENCE, INDEPENDENT)
    text = (
        f"only SuStaIn estimates an order; its concordance with the true stage is {found(SUSTAIN, *both)} on the "
        "two kinds of "
    )
    text += f"*sequence*, and that of rindices is {found(OURS, *both)}"
    return Claim(text, all(cell(SUSTAIN, name) > cell(OURS, name) for name in both))


def _difference() -> Claim:
    verdicts = pd.concat([rows_of(name, NONE)["verdict"] for name in (OURS, LINEAR)])
    text = (
        f"without disease, the verdict is *{verdicts.iloc[0]}*. Other methods have no test, and fits to halves "
        "still agree for some: opNMF "
    )
    text += f"{halves_of(OPNMF, NONE)}, SuStaIn {halves_of(SUSTAIN, NONE)} and NMF {halves_of(NMF, NONE)}"
    return Claim(text, set(verdicts) == {"no difference"})


def _easy() -> Claim:
    close = [cell(name, AUTHORS) for name in (OURS, LINEAR, NMF, OPNMF, SURREAL)]
    text = f"{told(min(close))} to {told(max(close))} on the authors' sample; {NAMED}: "
    return Claim(text + found(BOUND, AUTHORS), max(close) - min(close) < 0.03)


def findings() -> list[Claim]:
    """Return the findings of the comparison."""
    return [_continuous(), _authors_package(), _linear(), _sequences(), _subtypes(), _halves()]


def _continuous() -> Claim:
    gap = max(cell(BOUND, name) - cell(OURS, name) for name in CONTINUOUS)
    lead = {name: cell(OURS, name) - best_peer(name)[1] for name in HARD}
    real, peer = lead.pop(REAL), best_peer(REAL)[0]
    return Claim(
        f"**With continuous severities**, the concordance of rindices is at most {told(gap, 3)} below that of {NAMED}. "
        f"At the paper's difficulty, it is at least {told(min(lead.values()))} above that of every other method; in "
        f"real people, it is {told(real, 3)} above that of {peer}. NMF, opNMF, PCA and SuStaIn mostly describe healthy "
        "variation, which exceeds the effect of the disease.",
        gap < 0.03 and min(lead.values()) > 0.03 and 0 < real < 0.03,
    )


def _authors_package() -> Claim:
    behind = [cell(OURS, name) - cell(SURREAL, name) for name in HARD]
    return Claim(
        f"**Surreal-GAN** comes second in most of these cohorts, {told(min(behind))} to {told(max(behind))} below "
        "rindices. It was trained for longer than in its authors' sample code, but for less time than their README "
        "recommends.",
        min(behind) > 0 and sum(best_peer(name)[0] == SURREAL for name in HARD) > len(HARD) / 2,
    )


def _linear() -> Claim:
    apart = max(abs(cell(OURS, name) - cell(LINEAR, name)) for name in CONTINUOUS)
    labels = [cell(name, SUBTYPES, "ari") for name in (LINEAR, OURS)]
    return Claim(
        f"**The linear model alone** is within {told(apart, 3)} of the networks in these cohorts and labels subtypes "
        f"equally well (ARI {told(labels[0])}, compared with {told(labels[1])}).",
        apart < 0.02 and abs(labels[0] - labels[1]) < 0.05,
    )


def _sequences() -> Claim:
    named = (OURS, SUSTAIN, NMF, SURREAL)
    stage = {name: [cell(name, cohort) for cohort in (SEQUENCE, INDEPENDENT)] for name in named}
    label = {name: [cell(name, cohort, "ari") for cohort in (SEQUENCE, INDEPENDENT)] for name in named}
    each = " and ".join(told(value) for value in rows_of(SUSTAIN, SEQUENCE)["ari"])
    return Claim(
        "**If the disease is a sequence of events, SuStaIn is better.** Its expected stage agrees better with "
        f"the true stage ({told(stage[SUSTAIN][0])} compared with {told(stage[OURS][0])}; {told(stage[SUSTAIN][1])} "
        f"compared with {told(stage[OURS][1])} if regions vary independently, as it assumes), and only SuStaIn "
        "estimates the order in which lobes change. With independent regions, NMF is also better than rindices "
        f"({told(stage[NMF][1])}), and both NMF and SuStaIn give better subtype labels (ARI {told(label[NMF][1])} and "
        f"{told(label[SUSTAIN][1])}; rindices {told(label[OURS][1])}). With correlated regions, rindices and "
        f"Surreal-GAN give the best labels (ARI {told(label[OURS][0])} and {told(label[SURREAL][0])}; SuStaIn "
        f"{told(label[SUSTAIN][0])}, NMF {told(label[NMF][0])}), and Surreal-GAN's concordance is "
        f"{told(stage[SURREAL][0])}. These two cohorts differ widely (ARI of SuStaIn: {each}). SuStaIn used eight "
        "lobar means; the other methods used 128 regions.",
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
        f"**If patients belong to subtypes** and their number is known, rindices labels them best (ARI "
        f"{told(own)}; next best: {peer}, {told(second)}; {best_subtypes()[0]} reached {told(best_subtypes()[1])} in "
        "one cohort after fewer epochs). If the number is estimated, rindices finds "
        f"{WORDS[int(chosen['number'])]} of the three, and the ARI falls to {told(chosen['ari'])}; set `--patterns` if "
        f"you expect subtypes. The estimate is {WORDS[int(counts[SEQUENCE])]} for a sequence with two orders, and "
        f"is correct in all {WORDS[len(three)]} kinds of cohort with three continuous patterns.",
        own > second and chosen["number"] == 2 and counts[SEQUENCE] > 2 and all(counts[name] == 3 for name in three),
    )


def _halves() -> Claim:
    steady, own = (NMF, OPNMF, SUSTAIN), {"column": "agreement", "part": "halves"}
    mild, none = ([cell(name, cohort, **own) for name in steady] for cohort in ("mild", NONE))
    return Claim(
        "**Agreement between halves is not evidence of disease.** On *mild*, the components of NMF, opNMF and SuStaIn "
        f"agree between halves at {told(min(mild))} or more, better than our patterns ({halves_of(OURS, 'mild')}; "
        f"linear: {halves_of(LINEAR, 'mild')}). Without disease, the former still agree at {told(min(none))} or more, "
        f"because healthy variation is also reproducible, whereas our patterns ({halves_of(OURS, NONE)}; linear: "
        f"{halves_of(LINEAR, NONE)}) and those of Surreal-GAN ({halves_of(SURREAL, NONE)}) agree little better than "
        "chance.",
        min(mild) > max(cell(name, "mild", **own) for name in (OURS, LINEAR))
        and min(none) > 0.85
        and max(cell(name, NONE, **own) for name in (OURS, LINEAR, SURREAL)) < 0.55,
    )
