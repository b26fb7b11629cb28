"""Compare all methods on the same cohorts: concordance, subtypes, split halves, verdicts, processor time and memory.

    make peers                                            # builds the environments, then runs everything
    make peers PYSUSTAIN=~/pySuStaIn MINUTES=60 JOBS=16   # with SuStaIn from a checkout; more time for each fit
    make peers QUICK=1                                    # checks that all methods install and give a row
    python benchmarks/peers/compare_peers.py --methods NMF rindices --cohorts basic mild --parts whole --seeds 0

Writes results/peers.csv: a row for each fit of everybody (`whole`, or `chosen` if the method chooses the number of
patterns), and for each pair of fits of disjoint halves of the people (`halves`). Existing rows are not computed again.
Methods without an environment, and cohorts without data (in the folder RINDICES_DATA), are skipped and listed. Each fit
runs in its own process with one thread.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from own_methods import METHODS as OWN
from sklearn.metrics import adjusted_rand_score
from truths import COHORTS, Cohort

from rindices.judging.agreement_and_misfit import pattern_concordance

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "results" / "peers.csv"
KEY = ["cohort", "seed", "method", "part"]
LOCK = threading.Lock()
LONGEST = [
    *("Surreal-GAN", "Smile-GAN", "SuStaIn", "rindices", "HYDRA", "rindices, linear"),
    *("NMF", "opNMF", "discriminant NMF", "factor analysis", "LDA", "PCA of z-scores", "regression told the truth"),
]
CHOOSE = ("HYDRA", "SuStaIn", "rindices, linear")  # the number of patterns; the GANs: gan_batches.py
IMPOSSIBLE = [  # one cluster is not a clustering; lobes need region names; regression needs a truth; shares sum to 1
    *(("Smile-GAN", "one pattern"), ("HYDRA", "one pattern"), ("SuStaIn", "authors' sample")),
    *(("regression told the truth", "no disease"), ("LDA", "one pattern")),
]
ENVIRONMENTS = {"Surreal-GAN": "surrealgan", "Smile-GAN": "smilegan", "HYDRA": "hydra", "SuStaIn": "sustain"}


class Job(NamedTuple):
    """A row of the table."""

    cohort: str
    seed: int
    method: str
    part: str  # whole, halves, or chosen: everybody, with the number of patterns chosen by the method


class Found(NamedTuple):
    """Results of a fit for all patients, and its cost."""

    scores: np.ndarray
    labels: np.ndarray
    verdict: str
    note: str
    finished: bool
    number: int  # of patterns, as used or chosen
    minutes: float
    gib: float

    @classmethod
    def of(cls, arrays: Mapping[str, Any], minutes: float = np.nan) -> Self:
        """Read the results of a method; not all methods report everything."""
        scores = np.asarray(arrays["scores"], float)
        verdict, gib = (str(arrays["verdict"]) if "verdict" in arrays else ""), float(arrays.get("gib", np.nan))
        own = (scores, np.asarray(arrays["labels"]), verdict, str(arrays["note"]), bool(arrays["finished"]))
        return cls(*own, scores.shape[1], minutes, gib)


def fit(job: Job, cohort: Cohort, train: np.ndarray, options: argparse.Namespace) -> Found:
    """Fit in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        arrays = {"regions": cohort.regions, "patient": cohort.patient, "truth": cohort.truth, "lobes": cohort.lobes}
        np.savez(given, **arrays, train=train, seed=job.seed)
        task = job.method + ", number chosen" * (job.part == "chosen")
        command = [*script(job.method, options), task, given, found, 60 * options.minutes]
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        process = subprocess.Popen([str(part) for part in command], env=os.environ | threads)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise ChildProcessError(f"{task} ended with {process.returncode}.")
        return Found.of(np.load(found), (used.ru_utime + used.ru_stime) / 60)


def script(method: str, options: argparse.Namespace) -> list[Path | str]:
    """Return the interpreter and the script of a method."""
    if method in OWN:
        return [sys.executable, HERE / "own_methods.py"]
    return [options.environments / ENVIRONMENTS[method] / "bin" / "python", HERE / "foreign_methods.py"]


def halves_of(cohort: Cohort, seed: int) -> list[np.ndarray]:
    """Split controls and patients into two disjoint halves."""
    rng, first = np.random.default_rng(seed), np.zeros(len(cohort.patient), bool)
    for group in (cohort.patient, ~cohort.patient):
        people = rng.permutation(np.flatnonzero(group))
        first[people[: len(people) // 2]] = True
    return [first, ~first]


def whole(cohort: Cohort, found: Found) -> dict[str, object]:
    """Compare a fit of everybody with the truth, if there is one."""
    row: dict[str, object] = {name: getattr(found, name) for name in ("minutes", "gib", "verdict", "note", "finished")}
    row["number"] = found.number
    if cohort.truth.any():
        row["concordance"] = pattern_concordance(cohort.truth, found.scores)
    if cohort.discrete:
        row["ari"] = adjusted_rand_score(cohort.labels, found.labels)
    return row


def halves(first: Found, second: Found) -> dict[str, object]:
    """Compare the results of fits to two disjoint halves for all patients."""
    row: dict[str, object] = {"minutes": first.minutes + second.minutes, "gib": max(first.gib, second.gib)}
    row |= {"verdict": f"{first.verdict}; {second.verdict}" if first.verdict else "", "note": first.note}
    row |= {"finished": first.finished and second.finished, "number": first.number}
    row["agreement"] = pattern_concordance(first.scores, second.scores)
    row["agreement_ari"] = adjusted_rand_score(first.labels, second.labels)
    return row


def keep(file: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Add rows to the table."""
    table = [pd.read_csv(file)] if file.is_file() else []
    pd.concat([*table, pd.DataFrame(rows)]).sort_values(KEY).to_csv(file, index=False, float_format="%.4g")


def possible(options: argparse.Namespace) -> list[Job]:
    """Return the missing jobs, the longest first; print the methods and cohorts that cannot be run."""
    methods = [name for name in options.methods if Path(script(name, options)[0]).is_file()]
    if not os.environ.get("PYSUSTAIN"):
        methods = [name for name in methods if name != "SuStaIn"]
    foreign = [] if os.environ.get("RINDICES_DATA") else ["real people", "authors' sample"]
    cohorts = [name for name in options.cohorts if name not in foreign]
    for name in (*options.methods, *options.cohorts):
        if name not in (*methods, *cohorts):
            print(f"left out: {name}")
    table = pd.read_csv(options.out) if options.out.is_file() else pd.DataFrame(columns=KEY)
    there = set(table[KEY].itertuples(index=False, name=None))
    jobs = [
        Job(cohort, seed, method, part)
        for part in options.parts
        for method in sorted(methods, key=LONGEST.index)
        for seed in options.seeds
        for cohort in cohorts
        if (seed == 0 or cohort != "authors' sample")
        and (method, cohort) not in IMPOSSIBLE
        and (part != "chosen" or (method in CHOOSE and seed == 0))
    ]
    return [job for job in jobs if job not in there]


def compute(job: Job, options: argparse.Namespace) -> None:
    """Fit and compare, and keep one row."""
    if time.monotonic() > options.end:
        return
    cohort = COHORTS[job.cohort](job.seed)
    masks = halves_of(cohort, job.seed) if job.part == "halves" else [np.ones(len(cohort.patient), bool)]
    try:
        found = [fit(job, cohort, train, options) for train in masks]
    except ChildProcessError as problem:
        print(f"{job.cohort}: {problem}", flush=True)
        return
    row = dict(zip(KEY, job, strict=True)) | {"machine": options.machine, "limit_minutes": options.minutes}
    row |= halves(*found) if job.part == "halves" else whole(cohort, *found)
    print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}, flush=True)
    with LOCK:
        keep(options.out, [row])


def main() -> None:
    """Compute what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="*", default=LONGEST)
    parser.add_argument("--cohorts", nargs="*", default=[name for name in COHORTS if name != "small"])
    parser.add_argument("--parts", nargs="*", default=["whole", "halves", "chosen"], help="see above")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--minutes", type=float, default=30, help="processor time after which a training is stopped")
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time")
    parser.add_argument("--seconds", type=float, default=np.inf, help="after which no further fit is begun")
    parser.add_argument("--machine", default="two cores", help="what the table says about it")
    parser.add_argument("--environments", type=Path, default=HERE.parents[1] / ".venv-peers")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="one small cohort, half a minute a training, a file apart")
    options = parser.parse_args()
    if options.quick:
        options.cohorts, options.seeds, options.parts = ["small"], [0], ["whole"]
        options.minutes = min(options.minutes, 0.5)
        options.out = options.environments / "quick.csv"
        os.environ |= {"PYSUSTAIN_STARTS": "1", "HYDRA_REPETITIONS": "1"}
    options.end = time.monotonic() + options.seconds
    with ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(compute, job, options) for job in possible(options)]:
            done.result()


if __name__ == "__main__":
    main()
