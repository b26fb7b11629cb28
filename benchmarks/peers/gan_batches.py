"""Train hundreds of models of Surreal-GAN and Smile-GAN at once on a GPU, and write their rows of results/peers.csv.

python benchmarks/peers/gan_batches.py --seconds 480 --out gans.csv      # all cohorts; needs both packages, PyTorch
python benchmarks/peers/gan_batches.py --check                           # compares steps with those of the packages
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from compare_peers import Found, halves, halves_of, keep, whole
from gan_trainings import DEVICE, EVERY, People, SmileGANs, SurrealGANs, Trainings
from truths import COHORTS

SNAPSHOTS = 20  # checkpoints of Surreal-GAN, saved every twentieth of the training, as its authors recommend
NUMBERS = (2, 3, 4)  # of patterns, if the number is chosen
KINDS: dict[str, type[Trainings]] = {"Surreal-GAN": SurrealGANs, "Smile-GAN": SmileGANs}


def people_of(name: str, seed: int, chosen: bool) -> list[People]:
    """Return everybody and the halves of a cohort; if `chosen`, everybody also with other numbers of patterns."""
    cohort = COHORTS[name](seed)
    masks = {"whole": np.ones(len(cohort.patient), bool)}
    masks["first"], masks["second"] = halves_of(cohort, seed)
    made = []
    for part, mask in masks.items():
        controls = cohort.regions[mask & ~cohort.patient]
        scaled = 1 + (cohort.regions - controls.mean(axis=0)) / (10 * controls.std(axis=0))
        own = (scaled[mask & ~cohort.patient], scaled[mask & cohort.patient], scaled[cohort.patient])
        for number in {cohort.n_patterns, *(NUMBERS if chosen and part == "whole" else ())}:
            made.append(People((name, str(seed), part, str(number)), *own, number))
    return made


def grouped(options: argparse.Namespace) -> list[Trainings]:
    """Return trainings, grouped by shape."""
    groups: dict[tuple[Any, ...], list[People]] = defaultdict(list)
    for name in options.cohorts:
        for seed in options.seeds if name != "authors' sample" else [0]:
            for own in people_of(name, seed, name in options.choose and seed == options.seeds[0]):
                for method in options.methods:
                    if method == "Smile-GAN" and own.n_patterns == 1:
                        continue  # one cluster is not a clustering
                    number = options.folds if method == "Smile-GAN" else options.repetitions
                    number = number if own.name[2] == "whole" else max(1, number // 2)
                    shapes = (own.controls.shape, own.patients.shape, own.everybody.shape, own.n_patterns)
                    groups[(method, *shapes)] += [own] * number
    torch.manual_seed(0)
    return [KINDS[method](people) for (method, *_), people in groups.items()]


def train(trainings: list[Trainings], seconds: float) -> None:
    """Advance all trainings together until the time is up."""
    start, events = time.monotonic(), {}
    for own in trainings if DEVICE.type == "cuda" else []:
        try:
            own.capture()
        except RuntimeError as problem:
            print(f"without a graph: {problem!r}", flush=True)
            own.stream = torch.cuda.current_stream()
    begun, looked = time.monotonic(), [0] * len(trainings)
    print(f"{len(trainings)} groups ready after {begun - start:.0f} s", flush=True)
    while time.monotonic() - start < seconds and not all(own.done for own in trainings):
        for number, own in enumerate(trainings):
            if own.done or (number in events and not events[number].query()):
                continue
            with contextlib.nullcontext() if own.stream is None else torch.cuda.stream(own.stream):
                share = (time.monotonic() - begun) / max(1e-9, seconds - (begun - start))
                if own.due(share * SNAPSHOTS >= looked[number] + 1):
                    looked[number] += 1
                    own.look()
                    if number == 0:
                        print(f"{time.monotonic() - start:.0f} s:", *(one.steps for one in trainings), flush=True)
                own.advance(EVERY)
                if own.stream is not None:
                    events[number] = torch.cuda.Event()
                    events[number].record(own.stream)
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    for own in trainings:
        if not own.done:
            own.look()


def rows_of(method: str, found: dict[tuple[str, ...], dict[str, Any]]) -> list[dict[str, object]]:
    """Return rows of results/peers.csv, with one for the most stable number of patterns if several were trained."""
    rows, fits = [], {name: Found.of(values) for name, values in found.items()}
    for name, seed in dict.fromkeys((name, seed) for name, seed, *_ in fits):
        cohort = COHORTS[name](int(seed))
        key = {"cohort": name, "seed": int(seed), "method": method, "machine": "H200"}
        own = {
            int(number): fit for (*place, part, number), fit in fits.items() if (*place, part) == (name, seed, "whole")
        }
        if cohort.n_patterns in own:
            rows.append({**key, "part": "whole", **whole(cohort, own[cohort.n_patterns])})
        both = [fits.get((name, seed, part, str(cohort.n_patterns))) for part in ("first", "second")]
        if all(both):
            rows.append({**key, "part": "halves", **halves(*both)})  # type: ignore[arg-type]
        if len(own) > 1:
            number = max(own, key=lambda one: found[(name, seed, "whole", str(one))]["stability"])
            rows.append({**key, "part": "chosen", **whole(cohort, own[number]), "number": number})
    return rows


def check() -> None:
    """Print the difference between some steps here and in the packages, given the same draws."""
    from SmileGAN import model as smile
    from SurrealGAN import model as surreal

    torch.set_default_dtype(torch.float64)  # keeps rounding from hiding differences
    rng, columns = np.random.default_rng(0), torch.eye(3)
    people = People(("none",), *(1 + 0.1 * rng.normal(size=(n, 20)) for n in (90, 90, 90)), 3)
    settings = {"npattern": 3, "ncluster": 3, "nROI": 20, "beta1": 0.5, "max_gnorm": 100, "lipschitz_k": 0.5}
    ours = {"lr": 8e-4, "lam": 0.2, "zeta": 80, "kappa": 80, "gamma": 2, "mu": 500, "eta": 6}
    for kind, module, more, names in (
        (SurrealGANs, surreal, ours, ("netMapping", "netDecomposer", "netReconstruction")),
        (SmileGANs, smile, {"lr": 2e-4, "lam": 9, "mu": 5}, ("netMapping", "netClustering")),
    ):
        own: Any = kind([people])
        theirs = getattr(module, kind.__name__[:-1])()
        theirs.create(module.dotdict(settings | more))
        parts = [getattr(theirs, name) for name in names]
        for leaf, modules in ((own.g.flat, parts), (own.d.flat, [theirs.netDiscriminator])):
            values = torch.cat([p.reshape(-1) for m in modules for p in m.parameters()])
            leaf.data.copy_(values[None])
        for _ in range(20):
            x, y = own.batches(own.controls, 1)[0], own.batches(own.patients, 1)[0]
            draws = own.draws()
            own.step(x, y, *draws)
            if kind is SurrealGANs:
                before, share, healthy = (part[0] for part in draws)
                module.sample_z_previous = lambda _, i, __, b=before: b * columns[i]
                module.sample_z_later = lambda _, __, i, ___, b=before, s=share: ((1 - b) * s + b) * columns[i]
                module.sample_z_cn = lambda _, __, h=healthy: h
                theirs.train_instance(x[0], y[0], 0.02)
            else:
                module.sample_z = lambda _, __, z=draws[0][0]: (z, z.argmax(dim=1))
                theirs.train_instance(x[0], y[0])
        values = torch.cat([p.reshape(-1) for m in parts for p in m.parameters()])
        print(f"{kind.__name__[:-1]}: 20 steps, largest difference {(own.g.flat[0] - values).abs().max().item():.1e}")


def main() -> None:
    """Train all models, and write their rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="*", default=list(KINDS))
    parser.add_argument("--cohorts", nargs="*", default=[name for name in COHORTS if name != "small"])
    parser.add_argument("--choose", nargs="*", default=[], help="cohorts whose number of patterns is chosen, too")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--repetitions", type=int, default=6, help="of Surreal-GAN; half as many for halves")
    parser.add_argument("--folds", type=int, default=10, help="of Smile-GAN; half as many for halves")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("gans.csv"))
    options = parser.parse_args()
    if options.check:
        check()
        return
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    trainings = grouped(options)
    train(trainings, options.seconds)
    for method in options.methods:
        found: dict[tuple[str, ...], dict[str, Any]] = {}
        for own in trainings:
            if isinstance(own, KINDS[method]):
                print(method, own.n, "models", own.m, "patterns", own.steps, "steps", flush=True)
                found |= own.results()  # type: ignore[attr-defined]
        keep(options.out, rows_of(method, found))


if __name__ == "__main__":
    main()
