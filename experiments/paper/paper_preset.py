"""Table 1 and Fig. 2 with the paper's own settings (preset "paper"), and possible reasons for a gap (GPU).

    python experiments/paper/paper_preset.py --part 1 --out trained      # five kinds, five λ, ten models
    python experiments/paper/paper_preset.py --part 2 --out trained      # more cohorts, 200,000 steps, no rule
    python experiments/paper/paper_preset.py --part 3 --out trained      # variants at λ = 0.4, 100,000 steps
    python experiments/paper/paper_preset.py --judge trained             # on cores: results/paper_preset*.csv
    python experiments/paper/paper_preset.py --part 4 --out hard         # at the paper's difficulty, three cohorts each
    python experiments/paper/paper_preset.py --judge hard --name matched_paper
    python experiments/paper/paper_preset.py --part 5 --out long         # there, eight times as long, also with decay
    python experiments/paper/paper_preset.py --judge long --name paper_long

Each part is one program of 250 or 350 models (part 3: one for each formula), takes less than ten minutes on one H200
and writes after every look, so an interrupted part keeps its looks so far. It writes the R-indices of all patients at
each look; everything else is computed from them afterwards. Part 1 follows the paper's stopping rule, which stops every
model as early as allowed, at 100,000 steps. Results of part 2 at 100,000 steps, without the rule, are therefore those
that the rule would give. Networks compute in bfloat16 from float32 weights; the variant "float32" shows the effect.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
from cases import KINDS, SEEDS, SIZE, SPREAD, Case, draw, scaled
from joblib import Parallel, delayed
from judging import judge
from many_cohorts import Brains, Group, Trained, train
from table1 import ORTHOGONALITIES
from tables import RESULTS, Results, device

from rindices.core import devices
from rindices.judging.agreement_and_misfit import pattern_concordance
from rindices.presets import LearningRates, Preset, Training, blind, paper

LOOKS = (25_000, 50_000, 75_000, 100_000, 125_000, 150_000, 175_000, 200_000)
N_MODELS = 10
MIDDLE = 0.4  # λ of the variants
VARIED_KINDS = ("basic", "mild")
HARDER = {"basic": 1.75, "mild": 1.7}  # times the healthy spread: matches the paper's regression on the truth
_BEGAN = time.perf_counter()


class Variant(NamedTuple):
    """A single deviation from the preset."""

    training: dict[str, Any] | None = None
    precision: Any = None


FORMULAS = {
    "float32": Variant(precision=jnp.float32),
    "separate": Variant({"updates": "separate"}),
    "one_pass": Variant({"composition": "one_pass"}),
    "joint": Variant({"composition": "joint"}),
}
RATES = {"rates of the package": LearningRates(8e-4, 1.6e-4), "equal rates": LearningRates(2e-4, 2e-4)}
PEOPLE = ("divided by means", "harder")  # variants of the data
HARDER_DEFAULT = "harder, default preset"
MATCHED, MATCHED_MODELS = "matched", 5
NO_RULE = "no rule"
# The released package counts passes through the patients, not batches: 100,000 of them are 800,000 steps.
LONG_LOOKS, LONG_MODELS = (100_000, 200_000, 400_000, 800_000), 3
RELEASED = {"weight_decay": Training.weight_decay, "gradient_clip": Training.gradient_clip}
LONG: dict[str, dict[str, Any]] = {MATCHED: {}, f"{MATCHED}, decay": RELEASED}


def brains_of(case: Case) -> Brains:
    """Return the people of a case, in the variant named by its part."""
    known = draw(case, spread=SPREAD if case.part.startswith(MATCHED) else 1.0)
    regions = known.regions
    controls = regions[~known.patient]
    if case.part in ("harder", HARDER_DEFAULT):
        middle = controls.mean(axis=0)
        healthy = regions[known.patient] / factor_of(case)
        spread = HARDER[case.kind]
        controls = np.maximum(middle + spread * (controls - middle), 0.05 * middle)
        patients = np.maximum(middle + spread * (healthy - middle), 0.05 * middle) * factor_of(case)
        return scaled(controls, patients, known.truth)
    found = scaled(controls, regions[known.patient], known.truth)
    if case.part != "divided by means":
        return found
    middle = controls.mean(axis=0)
    return found._replace(controls=controls / middle, patients=regions[known.patient] / middle)


def factor_of(case: Case) -> np.ndarray:
    """Return the fraction of each region that the disease left: patients relative to the same people without it."""
    diseased, healthy = draw(case), draw(case._replace(kind="null"))
    return diseased.regions[diseased.patient] / healthy.regions[healthy.patient]


class Store:
    """R-indices of a part's groups, two bytes each; the whole file is rewritten after each look."""

    def __init__(self, path: Path) -> None:
        self.path, self.arrays, self.rows = path, {}, {}

    def keep(self, name: str, group: Group, brains: Sequence[Brains], looks: Sequence[int], trained: Trained) -> None:
        """Write the results of a group so far."""
        n_patients = max(len(one.patients) for one in brains)
        r_indices = trained.r_indices[..., :n_patients, :]
        finite = np.where(np.isfinite(r_indices), r_indices, 0)
        low, high = finite.min(axis=-2, keepdims=True), finite.max(axis=-2, keepdims=True)
        share = (finite - low) / np.maximum(high - low, 1e-9)
        self.arrays |= {
            f"{name}/r_indices": np.round(65535 * share).astype(np.uint16),
            f"{name}/low": low.astype(np.float32),
            f"{name}/high": np.where(np.isfinite(r_indices).all(axis=-2, keepdims=True), high, np.nan),
            f"{name}/truth": np.stack([one.truth for one in brains]).astype(np.float32),
        }
        weights = group.of_cohorts()
        self.rows[name] = [
            {"group": name, "kind": case.kind, "seed": case.seed, "variant": case.part}
            | {"orthogonality": weights[place][which].orthogonality, "repetition": k, "step": at}
            | {"stopped": int(trained.steps[look, place, which, k])}
            | {f"loss_{term}": float(values[look, place, which, k]) for term, values in trained.losses.items()}
            for look, at in enumerate(looks[: len(trained.steps)])
            for place, case in enumerate(group.cohorts)
            for which in range(len(weights[place]))
            for k in range(group.n_repetitions)
        ]
        beside = self.path.with_suffix(".part.npz")
        np.savez_compressed(beside, **self.arrays)
        beside.rename(self.path.with_suffix(".npz"))
        table = pd.DataFrame([row for rows in self.rows.values() for row in rows]).assign(device=device())
        table.to_csv(self.path.with_suffix(".csv"), index=False, float_format="%.5g")


def restored(arrays: Any, name: str) -> np.ndarray:
    """Return the R-indices of a group → ``(looks, cohorts, weightings, repetitions, patients, patterns)``."""
    low, high = arrays[f"{name}/low"], arrays[f"{name}/high"]
    return low + (high - low) * arrays[f"{name}/r_indices"].astype(np.float32) / 65535


def follow(name: str, group: Group, looks: Sequence[int], keep: Callable[[Trained], None]) -> Callable[[Trained], None]:
    """Return a function to call after each look, which keeps the results and prints the progress."""

    def after(trained: Trained) -> None:
        keep(trained)
        done = looks[len(trained.steps) - 1]
        stopped = int((trained.steps[-1] < done).sum())
        rate = group.n_models() * done / trained.seconds
        print(
            f"{time.perf_counter() - _BEGAN:.0f} s: {name}, {group.n_models()} models, step {done:,} after "
            f"{trained.seconds:.0f} s ({rate:,.0f} models' steps per second), {stopped} stopped",
            flush=True,
        )

    return after


def run_group(
    name: str,
    cases: list[Case],
    values: Sequence[float],
    preset: Preset,
    looks: Sequence[int],
    store: Store,
    n_models: int,
    **how: Any,
) -> None:
    """Train one program of models, and store their results."""
    with Parallel(n_jobs=-1) as cores:
        brains = cores(delayed(brains_of)(case) for case in cases)
    weightings = [preset.weights._replace(orthogonality=value) for value in values]
    rates = [RATES.get(case.part, preset.rates) for case in cases]
    group = Group(3, cases, [case.seed for case in cases], weightings, n_models, rates)

    def keep(trained: Trained) -> None:
        store.keep(name, group, brains, looks, trained)

    n_rows = max(max(case[:2]) for case in cases)
    train(group, brains, n_rows, preset, looks, after_look=follow(name, group, looks, keep), **how)


def run_part(part: int, out: Path, small: bool, only: Sequence[str] | None) -> None:
    """Train one part."""
    out.mkdir(parents=True, exist_ok=True)
    store, preset = Store(out / f"paper_part{part}"), paper()
    size, n_models, looks = ((50, 64), 2, (4, 8)) if small else (SIZE, N_MODELS, LOOKS)
    if small:
        preset = replace(preset, schedule=replace(preset.schedule, min_steps=4, max_steps=8))
    if part < 3:
        cases = [Case(*size, kind, SEEDS[0]) for kind in KINDS]
        if part == 2:
            cases = [case._replace(part=NO_RULE) for case in cases if case.kind not in VARIED_KINDS]
            cases += [Case(*size, kind, seed, part=NO_RULE) for kind in VARIED_KINDS for seed in SEEDS[1:]]
            preset = replace(preset, training=replace(preset.training, freeze_below=None))
        values = ORTHOGONALITIES[:2] if small else ORTHOGONALITIES
        run_group("paper", cases[:2] if small else cases, values, preset, looks, store, n_models)
        return
    looks = [at for at in looks if at <= preset.schedule.min_steps]
    if part == 4:
        cases = [Case(*size, kind, seed, part=MATCHED) for kind in KINDS for seed in SEEDS]
        some, values = (cases[:2], ORTHOGONALITIES[:2]) if small else (cases, ORTHOGONALITIES)
        run_group(MATCHED, some, values, preset, looks[1::2] or looks, store, min(n_models, MATCHED_MODELS))
        return
    cases = [Case(*size, kind, SEEDS[0]) for kind in VARIED_KINDS]
    if part == 5:
        preset = replace(preset, training=replace(preset.training, freeze_below=None))
        for name, changes in LONG.items():
            changed = replace(preset, training=replace(preset.training, **changes))
            own = [case._replace(part=name) for case in cases]
            at = looks if small else LONG_LOOKS
            run_group(name, own, ORTHOGONALITIES, changed, at, store, min(n_models, LONG_MODELS))
        return
    for_all = {"values": [MIDDLE], "looks": looks, "store": store, "n_models": n_models}
    jobs: dict[str, dict[str, Any]] = {}
    varied = [case._replace(part=name) for name in (*RATES, *PEOPLE) for case in cases]
    jobs["settings"] = for_all | {"cases": varied, "preset": preset}
    ours = replace(blind(), schedule=replace(blind().schedule, max_steps=8)) if small else blind()
    harder = [case._replace(part=HARDER_DEFAULT) for case in cases]
    jobs["default"] = for_all | {"cases": harder, "preset": ours, "looks": [ours.schedule.max_steps]}
    jobs["default"]["values"] = [ours.weights.orthogonality]
    for name, variant in FORMULAS.items():
        changed = replace(preset, training=replace(preset.training, **(variant.training or {})))
        own = [case._replace(part=name) for case in cases]
        jobs[name] = for_all | {"cases": own, "preset": changed, "precision": variant.precision}
    with ThreadPoolExecutor(3) as pool:  # one trains, the others compile
        running = [pool.submit(run_group, name, **job) for name, job in jobs.items() if not only or name in only]
        for one in running:
            one.result()


def judge_stored(folder: Path, out: Path, name: str) -> None:
    """Compute accuracy and agreement of all settings trained, and the accuracy of each model."""
    results = Results(out / f"{name}.csv", ["variant"])
    results.table = results.table.iloc[:0]
    rows: list[dict[str, Any]] = []
    models = []
    for path in sorted(folder.glob("paper_part*.npz")):
        arrays = np.load(path)
        members = pd.read_csv(path.with_suffix(".csv"), keep_default_na=False)
        for group, of in members.groupby("group", sort=False):
            r_indices, truth = restored(arrays, group), arrays[f"{group}/truth"].astype(float)
            steps = sorted(of["step"].unique())
            about = of[["kind", "seed", "variant", "orthogonality"]].drop_duplicates().to_dict("records")
            places = [np.unravel_index(k, r_indices.shape[1:3]) for k in range(len(about))]
            with Parallel(n_jobs=-1) as cores:
                judged = cores(delayed(judge)(r_indices[:, c, w], steps, truth[c]) for c, w in places)
                single = cores(delayed(concordances)(r_indices[:, c, w], truth[c]) for c, w in places)
            rows += [one | row for one, found in zip(about, judged, strict=True) for row in found]
            values = np.stack(single).reshape(*r_indices.shape[1:3], len(steps), -1).transpose(2, 0, 1, 3)
            models.append(of.assign(concordance=values.ravel()))
    results.add(rows)
    table = pd.concat(models)
    trained_on = ", ".join(table.pop("device").unique())
    about = {
        "seeds": SEEDS,
        "n_models": int(results.table["n_models"].max()),
        "size": SIZE,
        "precision": "bfloat16 from float32 weights",
    }
    results.describe(paper(), **about, device=trained_on)
    table.to_csv(out / f"{name}_models.csv", index=False, float_format="%.5g")


def concordances(looks: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the concordance of each model at each look."""
    return np.array(
        [
            [pattern_concordance(truth, one.astype(float)) if np.isfinite(one).all() else np.nan for one in members]
            for members in looks
        ]
    )


def main() -> None:
    """Train a part, or judge trained parts."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--part", type=int, choices=(1, 2, 3, 4, 5))
    options.add_argument("--only", nargs="+", help="of part 3: settings, or names of formulas")
    options.add_argument("--judge", type=Path, help="folder of what was trained")
    options.add_argument("--name", default="paper_preset", help="of the tables of what is judged")
    options.add_argument("--out", type=Path, default=RESULTS)
    options.add_argument("--small", action="store_true", help="a minute on two cores; results are not comparable")
    chosen = options.parse_args()
    devices.prepare()
    if chosen.part:
        run_part(chosen.part, chosen.out, chosen.small, chosen.only)
    if chosen.judge:
        judge_stored(chosen.judge, chosen.out, chosen.name)


if __name__ == "__main__":
    main()
