"""Every method on the same cohorts: concordance, subtypes, split halves, verdicts, processor time and memory.

    make peers                                            # builds the environments, then all of this
    make peers PYSUSTAIN=~/pySuStaIn MINUTES=60           # with SuStaIn from a checkout; more time for each fit
    python benchmarks/peers/compare_peers.py --methods NMF rindices --cohorts basic mild --halves

Writes results/peers.csv: a row for each fit of everybody (`whole`), and for each pair of fits of halves of the people
that have nobody in common (`halves`). Rows that are there already are not computed again. Methods without an
environment, and cohorts without data (RINDICES_DATA names the folder), are left out and named. Each fit is a process of
its own with one thread.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from foreign_methods import METHODS as FOREIGN
from own_methods import METHODS as OWN
from sklearn.metrics import adjusted_rand_score
from truths import COHORTS, Cohort

from rindices.judging.agreement import compare, pattern_concordance

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "results" / "peers.csv"
KEY = ["cohort", "seed", "method", "part"]
ENVIRONMENTS = {"Surreal-GAN": "surrealgan", "Smile-GAN": "smilegan", "HYDRA": "hydra", "SuStaIn": "sustain"}


class Fit:
    """What one process found, and what it cost."""

    def __init__(self, method: str, cohort: Cohort, train: np.ndarray, options: argparse.Namespace) -> None:
        with tempfile.TemporaryDirectory() as folder:
            given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
            np.savez(
                given,
                regions=cohort.regions,
                patient=cohort.patient,
                train=train,
                truth=cohort.truth,
                lobes=cohort.lobes,
                seed=options.seed,
            )
            command = [*script(method, options), method, given, found, 60 * options.minutes]
            threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
            process = subprocess.Popen([str(part) for part in command], env=os.environ | threads)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise ChildProcessError(f"{method} ended with {process.returncode}.")
            self.minutes = (used.ru_utime + used.ru_stime) / 60
            arrays = np.load(found)
            self.scores, self.labels = np.asarray(arrays["scores"], float), arrays["labels"]
            self.verdict, self.note = str(arrays["verdict"]), str(arrays["note"])
            self.finished, self.gib = bool(arrays["finished"]), float(arrays["gib"])


def script(method: str, options: argparse.Namespace) -> list[Path | str]:
    """Return the interpreter and the script of a method."""
    if method in OWN:
        return [sys.executable, HERE / "own_methods.py"]
    return [options.environments / ENVIRONMENTS[method] / "bin" / "python", HERE / "foreign_methods.py"]


def halves_of(cohort: Cohort, seed: int) -> list[np.ndarray]:
    """Split controls and patients in two halves that have nobody in common."""
    rng, first = np.random.default_rng(seed), np.zeros(len(cohort.patient), bool)
    for group in (cohort.patient, ~cohort.patient):
        people = rng.permutation(np.flatnonzero(group))
        first[people[: len(people) // 2]] = True
    return [first, ~first]


def whole(method: str, cohort: Cohort, options: argparse.Namespace) -> dict[str, object]:
    """Fit everybody, and compare with the truth where there is one."""
    fit = Fit(method, cohort, np.ones(len(cohort.patient), bool), options)
    row: dict[str, object] = {"minutes": fit.minutes, "gib": fit.gib, "verdict": fit.verdict, "note": fit.note}
    row |= {"finished": fit.finished, "limit_minutes": options.minutes}
    if cohort.truth.any():
        row["concordance"] = pattern_concordance(cohort.truth, fit.scores)
    if cohort.discrete:
        row["ari"] = adjusted_rand_score(cohort.labels, fit.labels)
    return row


def halves(method: str, cohort: Cohort, options: argparse.Namespace) -> dict[str, object]:
    """Fit two disjoint halves of the people, and compare what they say of all patients."""
    first, second = (Fit(method, cohort, train, options) for train in halves_of(cohort, options.seed))
    row: dict[str, object] = {"minutes": first.minutes + second.minutes, "gib": max(first.gib, second.gib)}
    row |= {"verdict": f"{first.verdict}; {second.verdict}" if first.verdict else "", "note": first.note}
    row |= {"finished": first.finished and second.finished, "limit_minutes": options.minutes}
    row["agreement"] = compare(first.scores, second.scores).pattern_agreement
    row["agreement_ari"] = adjusted_rand_score(first.labels, second.labels)
    return row


def possible(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Return cohorts and methods for which all is there; name the others."""
    methods = [name for name in options.methods if Path(script(name, options)[0]).is_file()]
    if "SuStaIn" in methods and not os.environ.get("PYSUSTAIN"):
        methods.remove("SuStaIn")
    foreign = [] if os.environ.get("RINDICES_DATA") else ["real people", "authors' sample"]
    cohorts = [name for name in options.cohorts if name not in foreign]
    for name in (*options.methods, *options.cohorts):
        if name not in (*methods, *cohorts):
            print(f"left out: {name}")
    return [(cohort, method) for cohort in cohorts for method in methods]


def main() -> None:
    """Compute what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="*", default=[*OWN, *FOREIGN])
    parser.add_argument("--cohorts", nargs="*", default=list(COHORTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30, help="processor time after which a training is stopped")
    parser.add_argument("--halves", action="store_true", help="fit halves of the people instead of everybody")
    parser.add_argument("--environments", type=Path, default=HERE.parents[1] / ".venv-peers")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    part = "halves" if options.halves else "whole"
    for name, method in possible(options):
        table = pd.read_csv(options.out) if options.out.is_file() else pd.DataFrame(columns=KEY)
        row: dict[str, object] = dict(zip(KEY, (name, options.seed, method, part), strict=True))
        if (table[KEY] == pd.Series(row)).all(axis=1).any():
            continue
        cohort = COHORTS[name](options.seed)
        if method == "SuStaIn" and not len(cohort.lobes):
            print(f"left out: SuStaIn on {name}, whose regions have no names")
            continue
        try:
            row |= (halves if options.halves else whole)(method, cohort, options)
        except ChildProcessError as problem:
            print(f"{name}: {problem}")
            continue
        print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}, flush=True)
        table = pd.concat([table, pd.DataFrame([row])]).sort_values(KEY)
        table.to_csv(options.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
