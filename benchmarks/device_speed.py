"""Measure how fast a GPU trains, how close that is to its limits, and which changes of the program would help.

    python benchmarks/device_speed.py --out results/device_speed.csv            # rates of all variants, about 2 minutes
    python benchmarks/device_speed.py --accuracy "bfloat16 data" --out FOLDER   # does a variant cost accuracy?

Variants change the traced program, in this script only. Bytes and operations are those that XLA counts for one step;
the limits are those of one H200 (4.8 TB/s; 990 TFLOP/s in bfloat16). A program for several numbers of patterns is
padded to the largest of them, so it runs at the rate of the largest.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd

from rindices.core import devices, networks, step
from rindices.core import train as core
from rindices.core.losses import Losses
from rindices.presets import LearningRates, LossWeights, Training, blind, paper

BYTES_PER_SECOND, OPERATIONS_PER_SECOND = 4.8e12, 9.9e14
N_REGIONS, PEOPLE = 128, (492, 900)
INDEPENDENT = replace(Training(), latent="independent")


class Size(NamedTuple):
    """The models trained together."""

    batch: int
    models: int
    patterns: int = 3
    formulas: str = "independent"


FORMULAS = {"default": Training(), "independent": INDEPENDENT, "paper": replace(paper().training, freeze_below=None)}
SIZES = (
    Size(112, 150),
    Size(32, 240),
    Size(112, 50),
    Size(112, 150, 4),
    Size(112, 150, 3, "paper"),
    Size(32, 240, 3, "default"),
)
_adam = optax.scale_by_adam


def _flat(training: Training) -> networks.Parameters:
    """Return optimisers that each work on one vector of all weights of a network."""
    return networks.Parameters(*(optax.flatten(of) for of in _optimisers(training)))


_optimisers = step.optimisers
VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {"inner": 100},  # loops of fixed length
    "steps one by one": {},
    "float32": {"precision": jnp.float32},
    "bfloat16 data": {"data": jnp.bfloat16},
    "bfloat16 first moments": {"adam": optax.scale_by_adam(b1=0.5, b2=0.999, mu_dtype=jnp.bfloat16)},
    "flat updates": {"flat": True},
    "bfloat16 data, moments": {
        "data": jnp.bfloat16,
        "adam": optax.scale_by_adam(b1=0.5, b2=0.999, mu_dtype=jnp.bfloat16),
    },
}


@contextlib.contextmanager
def traced_as(variant: dict[str, Any]) -> Iterator[None]:
    """Trace steps as in a variant."""
    with contextlib.ExitStack() as changes:
        if "adam" in variant:
            changes.enter_context(mock.patch.object(step, "_ADAM", variant["adam"]))
        if "flat" in variant:
            changes.enter_context(mock.patch.object(step, "optimisers", _flat))
        yield


class Program(NamedTuple):
    """A program ready to compile, with its initial states and arguments."""

    lowered: Any
    states: Any
    arguments: tuple


def program(size: Size, variant: dict[str, Any]) -> Program:
    """Trace the training of models on simulated noise."""
    rng = np.random.default_rng(0)
    people = core.TrainingPeople(*(1 + 0.1 * rng.standard_normal((n, N_REGIONS)) for n in PEOPLE))
    data, _ = core._data(people, N_REGIONS, 0)
    kind = variant.get("data", jnp.float32)
    data = data._replace(controls=data.controls.astype(kind), seen_patients=data.seen_patients.astype(kind))
    members = core.make_members(0, [LossWeights()] * size.models, [LearningRates()] * size.models, PEOPLE[0])
    training, sizes = FORMULAS[size.formulas], networks.sizes(N_REGIONS, size.patterns)
    precision = variant.get("precision", jnp.bfloat16)

    def one_model(state: step.TrainState, member: core.Members, n_steps: Any) -> tuple[step.TrainState, Losses]:
        own = data._replace(drawn=member.controls, n_controls=member.n_controls)

        def one_step(number: Any, carry: tuple[step.TrainState, Losses]) -> tuple[step.TrainState, Losses]:
            before, sums = carry
            moves = number % step.COPULA_EVERY == 0
            after, losses = step.step(before, own, member.weights, member.rates, training, size.batch, precision, moves)
            return after, jax.tree.map(lambda a, b: a + jnp.asarray(b, a.dtype), sums, losses)

        inner = variant.get("inner", 1)  # a loop of fixed length needs no check on the device before each step

        def some_steps(number: Any, carry: tuple[step.TrainState, Losses]) -> tuple[step.TrainState, Losses]:
            return jax.lax.fori_loop(0, inner, lambda k, carry: one_step(number * inner + k, carry), carry)

        nothing = Losses(*[jnp.zeros(())] * len(Losses._fields))
        if inner == 1:
            return jax.lax.fori_loop(0, n_steps, one_step, (state, nothing))
        return jax.lax.fori_loop(0, n_steps // inner, some_steps, (state, nothing))

    advance = jax.jit(jax.vmap(one_model, in_axes=(0, 0, None)), donate_argnums=0)
    with traced_as(variant):
        start = jax.vmap(lambda key: step.initial_state(key, sizes, sizes, training))
        states = _made_up(jax.eval_shape(start, members.keys), members.keys, rng)
        return Program(advance.lower(states, members, 1), states, (members,))


def _made_up(shapes: step.TrainState, keys: jax.Array, rng: np.random.Generator) -> step.TrainState:
    """Return states of these shapes with random weights; drawing them as in training would need another compilation."""

    def weights(leaf: Any) -> jax.Array:
        return jnp.asarray(0.1 * rng.standard_normal(leaf.shape, np.float32))

    rest = shapes._replace(key=None, parameters=None)
    states = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), rest)
    return states._replace(key=jnp.copy(keys), parameters=jax.tree.map(weights, shapes.parameters))


def rate(compiled: Any, made: Program, n_models: int, seconds: float) -> float:
    """Return model steps per second."""
    states, _ = compiled(made.states, *made.arguments, 100)
    jax.block_until_ready(states)
    began = time.perf_counter()
    states, _ = compiled(states, *made.arguments, 100)
    jax.block_until_ready(states)
    n_steps = 100 * max(1, int(seconds / (time.perf_counter() - began)))
    began = time.perf_counter()
    states, losses = compiled(states, *made.arguments, n_steps)
    jax.block_until_ready(states)
    took = time.perf_counter() - began
    if not np.isfinite(np.asarray(losses.change)).all():
        print("  losses are not finite", flush=True)
    return n_models * n_steps / took


def variants(out: Path, small: bool, seconds: float, names: list[str] | None) -> None:
    """Measure the variants; programs are compiled in parallel."""
    chosen = [(size, name) for size in SIZES for name in VARIANTS if size in SIZES[:2] or name == "as it is"]
    if names:
        chosen = [(size, name) for size in (*SIZES[:3], Size(32, 10)) for name in names]
    if small:
        chosen = [(size._replace(batch=8, models=2), name) for size, name in chosen[:2]]
    rows = []
    began = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        waiting = []
        for size, name in chosen:
            made = program(size, VARIANTS[name])
            waiting.append((size, name, made, pool.submit(made.lowered.compile)))
        print(f"{time.perf_counter() - began:.0f} s: {len(waiting)} programs traced", flush=True)
        compiled = [one[-1].result() for one in waiting]
        print(f"{time.perf_counter() - began:.0f} s: compiled", flush=True)
    for (size, name, made, _), ready in zip(waiting, compiled, strict=True):
        found = rate(ready, made, size.models, seconds)
        costs = ready.cost_analysis() or {}
        costs = costs[0] if isinstance(costs, list) else costs
        per_second = found / size.models
        n_bytes, n_operations = costs.get("bytes accessed", np.nan), costs.get("flops", np.nan)
        row = {
            "variant": name,
            **size._asdict(),
            "rate": found,
            "bytes a step": n_bytes,
            "operations a step": n_operations,
        }
        row |= {"share of memory": n_bytes * per_second / BYTES_PER_SECOND}
        row |= {"share of operations": n_operations * per_second / OPERATIONS_PER_SECOND}
        rows.append(row | {"device": devices.describe().kind})
        print(
            f"{name:24s} batch {size.batch:4d}, {size.models:4d} models, M = {size.patterns}, {size.formulas}: "
            f"{found:9,.0f}/s; memory {row['share of memory']:.0%}, operations {row['share of operations']:.1%}",
            flush=True,
        )
        write(rows, out)


def accuracy(name: str, out: Path, small: bool) -> None:
    """Train ten models on three kinds of cohorts from random weights, as in a variant, and print their concordance."""
    sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("experiments", "experiments/paper")]
    import many_cohorts
    from cases import Case, whole
    from judging import judge

    preset, variant = blind(), VARIANTS[name]
    size, n_models, steps = ((50, 64), 2, 8) if small else (PEOPLE, 10, preset.schedule.max_steps)
    cases = [Case(*size, kind, seed) for kind in ("basic", "scarce", "mild") for seed in (20, 21, 22)]
    brains = [whole(case) for case in cases]
    group = many_cohorts.Group(3, cases, [case.seed for case in cases], [preset.weights], n_models)
    as_it_was = many_cohorts.stack

    def stack(*given: Any) -> Any:
        data, patients = as_it_was(*given)
        kind = variant.get("data", jnp.float32)
        data = data._replace(controls=data.controls.astype(kind), seen_patients=data.seen_patients.astype(kind))
        return data, patients

    with traced_as(variant), mock.patch.object(many_cohorts, "stack", stack):
        found = many_cohorts.train(group, brains, max(size), preset, [steps], variant.get("precision"))
    rows = []
    for place, (case, one) in enumerate(zip(cases, brains, strict=True)):
        row = judge(found.of_cohort(place, case.n_patients)[:, 0], [steps], one.truth)[0]
        rows.append({"variant": name, "kind": case.kind, "seed": case.seed, "seconds": found.seconds} | row)
    table = write(rows, out / f"accuracy_{name.replace(' ', '_').replace(',', '')}.csv")
    print(table.groupby("kind")[["single", "consensus", "pattern_agreement"]].mean().round(4).to_string())


def write(rows: list[dict[str, Any]], path: Path) -> pd.DataFrame:
    """Write the rows so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(rows)
    table.to_csv(path, index=False, float_format="%.6g")
    return table


def main() -> None:
    """Measure rates, or the accuracy of variants."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, required=True, help="CSV to write; for --accuracy a folder")
    options.add_argument("--accuracy", nargs="+", choices=list(VARIANTS))
    options.add_argument("--only", nargs="+", choices=list(VARIANTS), help="these, at few sizes")
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--small", action="store_true", help="to try the script on two cores")
    chosen = options.parse_args()
    devices.prepare()
    if chosen.accuracy:
        for name in chosen.accuracy:
            jax.clear_caches()
            accuracy(name, chosen.out, chosen.small)
    else:
        variants(chosen.out, chosen.small, chosen.seconds, chosen.only)


if __name__ == "__main__":
    main()
