"""Run all experiments of the paper, in stages of up to eight minutes each on one H200 with 16 cores.

    python experiments/paper/all.py --list
    python experiments/paper/all.py --stage 1 --out results
    python experiments/paper/all.py --out results --controls healthy.csv         # everything that is missing

An interrupted stage continues where it stopped. Without --controls, experiments on real people are skipped.
"""

from __future__ import annotations

import argparse
import importlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tables import RESULTS


class Run(NamedTuple):
    """A script, the table it writes, and further options."""

    script: str
    table: str
    options: tuple[str, ...] = ()
    needs_controls: bool = False


class Stage(NamedTuple):
    """Scripts that run together: while one trains, the others compile or judge."""

    about: str
    seconds: int  # expected on one H200 with 16 cores
    gpu: bool
    runs: tuple[Run, ...]
    after: tuple[int, ...] = ()  # stages whose tables it reads


STAGES = {
    1: Stage(
        "Table 1, Fig. 2; Table 6; B.7",
        220,
        True,
        (Run("table1", "table1"), Run("folds", "folds"), Run("split_half", "split_half")),
    ),
    2: Stage("choice of M", 190, True, (Run("choice_of_patterns", "choice_of_patterns"),)),
    3: Stage(
        "B.2, B.3 at the λ that stage 1 chose",
        200,
        True,
        (Run("robustness", "robustness"), Run("ablations", "ablations")),
        after=(1,),
    ),
    4: Stage(
        "B.8, from stage 1", 480, False, (Run("split_half", "split_half_diagnosis", ("--diagnose",)),), after=(1,)
    ),
    5: Stage("Table 1 on real people", 100, True, (Run("real_controls", "real_controls", needs_controls=True),)),
    6: Stage("section 4.3, Table 2", 120, True, (Run("study", "study"),)),
    7: Stage(
        "cost of the protocol",
        330,
        True,
        (Run("cost", "cost", ("--part", "protocol", "--formulas", "paper")),),
    ),
    8: Stage(
        "models and people needed, growth",
        320,
        True,
        (Run("models_and_people", "models_and_people"), Run("cost", "growth", ("--part", "growth"))),
    ),
    9: Stage(
        "baselines of Tables 1 and 7",
        400,
        False,
        (Run("comparison", "baselines"), Run("comparison", "real_baselines", needs_controls=True)),
    ),
    10: Stage(
        "choice of M, mild", 190, True, (Run("choice_of_patterns", "choice_of_patterns_mild", ("--kind", "mild")),)
    ),
    11: Stage(
        "cost of the protocol with our formulas",
        220,
        True,
        (Run("cost", "cost_default", ("--part", "protocol", "--formulas", "default")),),
    ),
}


def run_stage(stage: Stage, out: Path, controls: Path | None, small: bool) -> None:
    """Run the scripts of a stage."""

    def run_script(run: Run) -> None:
        if run.needs_controls and controls is None:
            print(f"{run.table}: left out, needs --controls", flush=True)
            return
        arguments = ["--out", str(out / f"{run.table}.csv"), *run.options]
        arguments += ["--controls", str(controls)] if run.needs_controls else []
        start = time.perf_counter()
        scripts[run.script].main([*arguments, "--small"] if small else arguments)
        print(f"{run.table}: {time.perf_counter() - start:.0f} s", flush=True)

    scripts = {run.script: importlib.import_module(run.script) for run in stage.runs}
    with ThreadPoolExecutor(len(stage.runs) if stage.gpu else 1) as pool:
        list(pool.map(run_script, stage.runs))


def main(arguments: list[str] | None = None) -> None:
    """Run the chosen stages."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--stage", type=int, nargs="*", choices=list(STAGES), default=list(STAGES))
    options.add_argument("--out", type=Path, default=RESULTS, help="folder of the tables")
    options.add_argument("--controls", type=Path, help="table of real healthy people")
    options.add_argument("--small", action="store_true", help="smoke runs; results are not comparable")
    options.add_argument("--list", action="store_true", help="print the stages and what they take")
    chosen = options.parse_args(arguments)
    for number in chosen.stage:
        stage = STAGES[number]
        where = "GPU" if stage.gpu else "cores"
        print(f"stage {number}: {stage.about} (about {stage.seconds} s, {where})", flush=True)
        if not chosen.list:
            run_stage(stage, chosen.out, chosen.controls, chosen.small)


if __name__ == "__main__":
    main()
