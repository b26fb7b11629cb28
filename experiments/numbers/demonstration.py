"""Run the demonstration with other seeds: its verdict, number of patterns and concordance.

    python experiments/numbers/demonstration.py                 # seeds 0 to 19, writes results/demonstration.csv
    python experiments/numbers/demonstration.py --minutes 15    # as many as fit; repeat the command to continue
    python experiments/numbers/demonstration.py --show

Each run is `rindices demo --seed SEED`, with its own cohort and its own training.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pandas as pd
from cases import RESULTS, parser, say, write

from rindices.cli import app
from rindices.record import read_summary

N_SEEDS = 20


def demonstrated(seed: int, *, small: bool) -> dict[str, object]:
    """Run the demonstration with a seed, and return its main results."""
    with tempfile.TemporaryDirectory() as folder:
        quick = ["--repetitions", "2", "--steps", "20"] if small else []
        app(["demo", "--out", f"{folder}/demo", "--seed", str(seed), *quick], standalone_mode=False)
        summary = read_summary(Path(folder, "demo", "run"))
    return {
        "seed": seed,
        "verdict": summary.verdict,
        "n_patterns": summary.n_patterns,
        "concordance": None if summary.recovery is None else summary.recovery.pattern_concordance,
        "trained": summary.repetitions,
        "used": summary.members_used,
        "seconds": summary.seconds,
        "device": summary.device,
    }


def show(table: pd.DataFrame) -> None:
    """Print the rows and a summary."""
    print(table.to_string(index=False))
    print(f"{(table['verdict'] == 'reproducible').sum()} of {len(table)} are reproducible;", end=" ")
    print(f"{(table['n_patterns'] == 3).sum()} have three patterns; median concordance", end=" ")
    print(f"{table['concordance'].median():.3f}, median time {table['seconds'].median():.0f} s")


def main() -> None:
    """Run all missing seeds, and show the results."""
    arguments = parser(__doc__)
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--minutes", type=float, default=float("inf"), help="begin no further seed after that")
    arguments.add_argument(
        "--seeds", type=int, nargs=2, default=(0, N_SEEDS), help="the first, and the one after the last"
    )
    options = arguments.parse_args()
    path, began = options.out / "demonstration.csv", time.monotonic()
    rows = pd.read_csv(path).to_dict("records") if path.is_file() else []
    for seed in [] if options.show else range(*((0, 2) if options.small else options.seeds)):
        if seed in {row["seed"] for row in rows} or time.monotonic() - began > 60 * options.minutes:
            continue
        rows.append(demonstrated(seed, small=options.small))
        write(rows, path)
        say(f"seed {seed}: {rows[-1]['verdict']}")
    show(pd.DataFrame(rows) if rows else pd.read_csv(RESULTS / "demonstration.csv"))


if __name__ == "__main__":
    main()
