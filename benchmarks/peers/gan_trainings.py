"""Train many models of Surreal-GAN and Smile-GAN at once, with the networks of the authors' packages.

All models with the same shape take their steps together, and on a GPU an epoch is replayed as a CUDA graph. Steps are
those of the packages (`gan_batches.py --check`), and so is the procedure around them: Surreal-GAN keeps the checkpoint
and the repetition that agree best with the other repetitions; Smile-GAN stops each fold by its own rule and averages
the folds' probabilities. Controls are redrawn for each epoch.
"""

from __future__ import annotations

import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import combinations, permutations
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score
from stacked_networks import ADAM, DEVICE, Networks, clipped, entropy
from torch import Tensor, nn

for _name in ("lifelines", "lifelines.utils"):  # imported by SurrealGAN's utilities, not used here
    sys.modules.setdefault(_name, types.ModuleType(_name))
sys.modules["lifelines.utils"].concordance_index = None  # type: ignore[attr-defined]
FIRST_EPOCH, LAST_EPOCH, EVERY = 6000, 14_000, 5  # Smile-GAN's sample code: epochs after which it may, or must, stop
WD, CLUSTER_LOSS = 0.14, 0.002


class People(NamedTuple):
    """The people of one training, scaled as in both packages: controls have mean 1 and sd 0.1."""

    name: tuple[str, ...]  # cohort, seed, part
    controls: np.ndarray
    patients: np.ndarray  # of the training
    everybody: np.ndarray  # all patients, who get scores
    n_patterns: int


class Trainings(ABC):
    """Models with the same method and shape; `step` is one training step of all of them."""

    batch: int
    steps_an_epoch: int

    def __init__(self, people: list[People], fraction: float, seed: int) -> None:
        self.people, self.n, self.m = people, len(people), people[0].n_patterns
        rng, keep = np.random.default_rng(seed), lambda rows, own: rows[own.permutation(len(rows))]
        cut = [[keep(rows, rng)[: int(fraction * len(rows))] for rows in (p.controls, p.patients)] for p in people]
        self.controls, self.patients = (self._tensor(rows) for rows in zip(*cut, strict=True))
        self.everybody = self._tensor([p.everybody for p in people])
        self.generator = torch.Generator(DEVICE).manual_seed(seed)
        self.steps, self.done = 0, False
        self.stream = torch.cuda.Stream() if DEVICE.type == "cuda" else None
        self.graph: Any = None

    @staticmethod
    def _tensor(rows: Iterable[np.ndarray]) -> Tensor:
        return torch.tensor(np.stack(list(rows)), dtype=torch.get_default_dtype(), device=DEVICE)

    def rand(self, *shape: int) -> Tensor:
        """Draw from the generator of these trainings, which is registered with the graph."""
        return torch.rand(*shape, generator=self.generator, device=DEVICE)

    def batches(self, rows: Tensor, number: int) -> list[Tensor]:
        """Draw batches of people, without replacement as long as there are enough."""
        drawn: list[Tensor] = []
        while len(drawn) < number:
            order = self.rand(self.n, rows.shape[1]).argsort(dim=1)
            for first in range(0, rows.shape[1] - self.batch + 1, self.batch):
                index = order[:, first : first + self.batch, None].expand(-1, -1, rows.shape[2])
                drawn.append(rows.gather(1, index))
        return drawn[:number]

    def epoch(self) -> None:
        """Run the steps of an epoch."""
        number = self.steps_an_epoch
        for x, y in zip(self.batches(self.controls, number), self.batches(self.patients, number), strict=True):
            self.step(x, y, *self.draws())

    @abstractmethod
    def draws(self) -> tuple[Tensor, ...]:
        """Draw the random numbers of a step."""

    @abstractmethod
    def step(self, x: Tensor, y: Tensor, *draws: Tensor) -> None:
        """Take one step."""

    @abstractmethod
    def look(self) -> None:
        """Keep what is needed of the models in their current state."""

    def due(self, time_for_a_checkpoint: bool) -> bool:
        """Return whether it is time for a look."""
        return time_for_a_checkpoint

    def capture(self) -> None:
        """Record an epoch as a CUDA graph, after a few epochs without it."""
        assert self.stream is not None
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self.epoch()
            self.stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            with torch.cuda.graph(graph, stream=self.stream):
                self.epoch()
        self.graph = graph

    def advance(self, epochs: int) -> None:
        """Launch the given number of epochs."""
        for _ in range(epochs):
            if self.graph is None:
                self.epoch()
            else:
                self.graph.replay()
        self.steps += epochs * self.steps_an_epoch


class SurrealGANs(Trainings):
    """Surreal-GAN 0.1.1 with the defaults of `repetitive_representation_learning`."""

    weights: ClassVar = {
        "orthogonality": 0.2,
        "reconstruction": 80,
        "decomposition": 80,
        "change": 2,
        "mono": 500,
        "control": 6,
    }

    def __init__(self, people: list[People], seed: int = 0) -> None:
        from SurrealGAN import networks as authors

        super().__init__(people, 1.0, seed)
        n_patients, regions = self.patients.shape[1:]
        self.batch = min(300, n_patients // 3)  # with fewer than two batches the package takes no step
        self.steps_an_epoch = n_patients // self.batch - 1  # the package skips the last one
        made = {
            name: lambda define=define: define(regions, self.m)
            for name, define in (
                ("mapping", authors.define_Linear_Mapping),
                ("decomposer", authors.define_Linear_Decomposer),
                ("reconstruction", authors.define_Linear_Reconstruction),
            )
        }
        self.g = Networks(made, self.n)
        self.d = Networks({"d": lambda: authors.define_Linear_Discriminator(regions, self.m)}, self.n)
        rows, columns = np.tril_indices(self.m)
        self.place = torch.zeros(len(rows), self.m, self.m, device=DEVICE)
        self.place[range(len(rows)), rows, columns] = 1
        self.phi = (self._tensor(rows == columns)).repeat(self.n, 1).requires_grad_()
        self.optimizers = (
            torch.optim.Adam([self.g.flat], lr=8e-4, weight_decay=2.5e-3, **ADAM),
            torch.optim.Adam([self.d.flat], lr=8e-4 / 5, **ADAM),
            torch.optim.Adam([self.phi], lr=8e-4 / 30, **ADAM),
        )
        self.eye, self.snapshots, self.size = torch.eye(self.m, device=DEVICE), [], self.g.size("mapping")

    def draws(self) -> tuple[Tensor, ...]:
        """Draw severities for the earlier stage, increments for the later one, and severities for controls."""
        shape = (self.n, self.batch, self.m)
        return self.rand(*shape).clamp(1e-7, 1 - 1e-7), self.rand(*shape), 0.05 * self.rand(*shape)

    def solve(self, factor: Tensor, rows: Tensor) -> Tensor:
        """Solve each model's lower triangular system for each row."""
        solved: list[Tensor] = []
        for i in range(self.m):
            rest = rows[..., i] - sum((factor[:, i, j, None] * solved[j] for j in range(i)), start=0 * rows[..., i])
            solved.append(rest / factor[:, i, i, None])
        return torch.stack(solved, dim=-1)

    def density(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the copula density of severities, and its divergence from independence."""
        factor = torch.einsum("rt,tij->rij", self.phi, self.place)
        factor = factor / factor.norm(dim=2, keepdim=True).clamp(min=1e-12)
        factor = torch.where(self.eye > 0, factor.abs(), factor)
        normal = torch.special.ndtri(z)
        logs = factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        exponent = 0.5 * (normal.square() - self.solve(factor, normal).square()).sum(dim=2) - logs[:, None]
        inverse = self.solve(factor, self.eye.expand(self.n, -1, -1))
        return exponent.exp(), logs + 0.5 * (inverse.square().sum(dim=(1, 2)) - self.m)

    def step(self, x: Tensor, y: Tensor, *draws: Tensor) -> None:
        """Update the discriminators, the copulas and the mappings, as in `train_instance`."""
        (before, share, healthy), m, batch = draws, self.m, self.batch
        after, named = (1 - before) * share + before, self.g.split(self.g.flat)
        z = [part.transpose(1, 2)[..., None] * self.eye[:, None] for part in (before, after)]  # one pattern at a time
        given = torch.cat([*z, healthy[:, None]], dim=1)  # (models, 2 m + 1, batch, m)
        repeated = x[:, None].expand(-1, 2 * m + 1, -1, -1)
        change = self.g("mapping", named, repeated.flatten(1, 2), given.flatten(1, 2)).unflatten(1, (2 * m + 1, batch))
        early, late = change[:, :m], change[:, m : 2 * m]
        fake = x + early.sum(dim=1)
        density, divergence = self.density(before)
        weight = density.detach()

        found = self.d("d", self.d.split(self.d.flat), torch.cat([fake.detach(), y], dim=1))
        both = entropy(found[:, :batch], 1) * weight + entropy(found[:, batch:], 0) * weight
        (gradient,) = torch.autograd.grad(0.5 * both.mean(dim=1).sum(), self.d.flat)
        self._update(1, self.d.flat, clipped(gradient, gradient.shape[1]))

        fixed = self.d.split(self.d.flat.detach())
        score = entropy(self.d("d", fixed, fake), 0)
        loss = (score.detach() * density).mean(dim=1) + 0.02 * divergence
        (gradient,) = torch.autograd.grad(loss.sum(), self.phi)
        self._update(2, self.phi, gradient)

        parts = torch.stack(self.g("decomposer", named, fake), dim=1)
        restored = self.g("reconstruction", named, parts.flatten(1, 2)).unflatten(1, (m, batch))
        mean = 0.5 * (early.mean(dim=2) + late.mean(dim=2)).abs()
        mean = mean / mean.norm(dim=2, keepdim=True)
        w, over = self.weights, (1, 2, 3)
        loss = (
            (score * weight).mean(dim=1) / weight.mean(dim=1)
            + w["orthogonality"] * (mean @ mean.transpose(1, 2) - self.eye).square().mean(dim=(1, 2))
            + w["reconstruction"] * (restored - z[0]).square().mean(dim=over)
            + w["decomposition"] * (parts - early).square().mean(dim=over)
            + w["change"] * (fake - x).abs().mean(dim=(1, 2))
            + w["mono"] * (early.abs() - late.abs()).clamp(min=0).square().mean(dim=over)
            + w["control"] * change[:, 2 * m].abs().mean(dim=(1, 2))
        )
        (gradient,) = torch.autograd.grad(loss.sum(), self.g.flat)
        self._update(0, self.g.flat, clipped(gradient, self.size))
        with torch.no_grad():
            self.g.flat.clamp_(-0.5, 0.5)

    def _update(self, number: int, leaf: Tensor, gradient: Tensor) -> None:
        leaf.grad = gradient
        self.optimizers[number].step()

    @torch.no_grad()
    def scores(self) -> np.ndarray:
        """Return R-indices of all patients, (models, patients, patterns)."""
        named = self.g.split(self.g.flat)
        parts = self.g("decomposer", named, self.everybody)
        return sum(self.g("reconstruction", named, part) for part in parts).cpu().numpy()  # type: ignore[union-attr]

    def look(self) -> None:
        """Keep a checkpoint."""
        self.snapshots.append((self.steps, self.scores()))

    def results(self) -> dict[tuple[str, ...], dict[str, Any]]:
        """Return scores from the checkpoint with the best agreement and the repetition that agrees best there."""
        found = {}
        for name in dict.fromkeys(p.name for p in self.people):
            own = [index for index, p in enumerate(self.people) if p.name == name]
            agreements = [correlations(scores[own]) for _, scores in self.snapshots]
            best = int(np.argmax([values.mean() for values in agreements]))
            scores = self.snapshots[best][1][own[int(agreements[best].argmax())]]
            note = f"{len(own)} repetitions of {self.steps:,} steps, the one kept after {self.snapshots[best][0]:,}"
            found[name] = {"scores": scores, "labels": scores.argmax(axis=1), "finished": False, "note": note}
            found[name]["stability"] = agreements[best].mean()
        return found


def correlations(scores: np.ndarray) -> np.ndarray:
    """Return each repetition's mean R-indices correlation with the others: of patterns and of their differences."""
    n, _, m = scores.shape
    table, pairs = np.zeros((n, n)), list(combinations(range(m), 2))
    for a, b in combinations(range(n), 2):
        both = np.nan_to_num(np.corrcoef(scores[a].T, scores[b].T)[:m, m:])
        order = max(permutations(range(m)), key=lambda o: both[range(m), list(o)].mean())
        value = both[range(m), list(order)].mean()
        if pairs:
            gaps = [
                (scores[a][:, i] - scores[a][:, j], scores[b][:, order[i]] - scores[b][:, order[j]]) for i, j in pairs
            ]
            value = 0.5 * (value + np.mean(np.nan_to_num([np.corrcoef(*gap)[0, 1] for gap in gaps])))
        table[a, b] = table[b, a] = value
    return table.sum(axis=1) / max(1, n - 1)


class SmileGANs(Trainings):
    """Smile-GAN 0.1.4 with the settings of its sample code: folds of 80 % of the people."""

    def __init__(self, people: list[People], seed: int = 0, fraction: float = 0.8) -> None:
        from SmileGAN import networks as authors

        super().__init__(people, fraction, seed)
        self.given = self._tensor([p.patients for p in people]), self._tensor([p.controls for p in people])
        n_patients, regions = self.given[0].shape[1:]
        self.batch = n_patients // 15  # a tenth to a twentieth of the patients
        self.steps_an_epoch = -(-self.patients.shape[1] // self.batch) - 1
        made = {
            "mapping": lambda: authors.define_Linear_Mapping(regions, self.m),
            "clustering": lambda: authors.define_Linear_Clustering(regions, self.m),
        }
        self.g = Networks(made, self.n)
        self.d = Networks({"d": lambda: authors.define_Linear_Discriminator(regions, self.m)}, self.n)
        self.optimizers = (
            torch.optim.Adam([self.g.flat], lr=2e-4, weight_decay=2.5e-3, **ADAM),
            torch.optim.Adam([self.d.flat], lr=2e-4 / 5, **ADAM),
        )
        self.loss, self.size = torch.zeros(self.n, device=DEVICE), self.g.size("mapping")
        self.kept: dict[int, tuple[int, np.ndarray]] = {}
        self.distances: list[np.ndarray] = []
        self.history: list[np.ndarray] = []
        self.past: Tensor | None = None

    def draws(self) -> tuple[Tensor, ...]:
        """Draw a cluster for each person."""
        chosen = (self.rand(self.n, self.batch) * self.m).long().clamp(max=self.m - 1)
        return ((chosen[..., None] == torch.arange(self.m, device=DEVICE)).to(self.loss.dtype),)

    def step(self, x: Tensor, y: Tensor, *draws: Tensor) -> None:
        """Update the discriminators, then mappings and clusterings, as in `train_instance`."""
        (z,), batch, named = draws, self.batch, self.g.split(self.g.flat)
        fake = self.g("mapping", named, x, z) + x
        found = self.d("d", self.d.split(self.d.flat), torch.cat([fake.detach(), y], dim=1))
        both = entropy(found[:, :batch], 1) + entropy(found[:, batch:], 0)
        (gradient,) = torch.autograd.grad(0.5 * both.mean(dim=1).sum(), self.d.flat)
        self.d.flat.grad = clipped(gradient, gradient.shape[1])
        self.optimizers[1].step()

        score = entropy(self.d("d", self.d.split(self.d.flat.detach()), fake), 0).mean(dim=1)
        _, logits = self.g("clustering", named, fake)
        cluster = -(logits.log_softmax(dim=-1) * z).sum(dim=2).mean(dim=1)
        self.loss.copy_(cluster.detach())
        loss = score + 9 * cluster + 5 * (fake - x).abs().mean(dim=(1, 2))
        (gradient,) = torch.autograd.grad(loss.sum(), self.g.flat)
        self.g.flat.grad = clipped(gradient, self.size)
        self.optimizers[0].step()
        with torch.no_grad():
            self.g.flat.clamp_(-0.5, 0.5)

    def due(self, time_for_a_checkpoint: bool) -> bool:
        """Return whether a look is due: every five epochs once folds may stop, and rarely before."""
        epochs = self.steps // self.steps_an_epoch
        return epochs > 0 and epochs % (EVERY if epochs > FIRST_EPOCH - 10 * EVERY else 50 * EVERY) == 0

    @torch.no_grad()
    def look(self) -> None:
        """Stop the folds that meet the package's rule: close to the patients, stable labels, small loss."""
        epochs, named, (patients, controls) = self.steps // self.steps_an_epoch, self.g.split(self.g.flat), self.given
        given, _ = self.g("clustering", named, patients)
        labels = given.argmax(dim=2)
        changed = (labels != self.past).sum(dim=1) if self.past is not None else torch.full_like(labels[:, 0], 10**6)
        self.past = labels
        members = nn.functional.one_hot(labels, self.m).float()
        sizes = members.sum(dim=1)[..., None]
        centres = torch.einsum("rnk,rnp->rkp", members, patients) / sizes.clamp(min=1)
        away = []
        for k in range(self.m):
            z = torch.zeros(*controls.shape[:2], self.m, device=DEVICE)
            z[..., k] = 1
            made = (self.g("mapping", named, controls, z) + controls).mean(dim=1)
            away.append(torch.where(sizes[:, k, 0] > 1, (made - centres[:, k]).square().sum(dim=1), torch.inf))
        self.distances = [*self.distances, torch.stack(away).mean(dim=0).cpu().numpy()][-2:]
        steady = (changed < patients.shape[1] // 20) & (self.loss < CLUSTER_LOSS)
        self.history = [*self.history, steady.cpu().numpy()][-4:]
        if epochs <= FIRST_EPOCH or len(self.history) < 4:
            return
        stops = np.all(self.history, axis=0) & (np.max(self.distances, axis=0) < WD)
        new = [index for index in np.flatnonzero(stops) if index not in self.kept]
        if new:
            scores = self.scores()
            self.kept |= {index: (epochs, scores[index]) for index in new}
        self.done = len(self.kept) == self.n or epochs >= LAST_EPOCH

    @torch.no_grad()
    def scores(self) -> np.ndarray:
        """Return cluster probabilities of all patients, (models, patients, clusters)."""
        return self.g("clustering", self.g.split(self.g.flat), self.everybody)[0].cpu().numpy()

    def results(self) -> dict[tuple[str, ...], dict[str, Any]]:
        """Return mean probabilities over folds, with clusters as in the fold that agrees best with the others."""
        found, latest, epochs = {}, self.scores(), self.steps // self.steps_an_epoch
        for name in dict.fromkeys(p.name for p in self.people):
            own = [index for index, p in enumerate(self.people) if p.name == name]
            stopped = [index for index in own if index in self.kept]
            probabilities = [self.kept[index][1] if index in self.kept else latest[index] for index in own]
            labels = [part.argmax(axis=1) for part in probabilities]
            table = np.array([[adjusted_rand_score(a, b) for a in labels] for b in labels])
            first = int(table.mean(axis=0).argmax())
            mean = np.mean([aligned(part, labels[first]) for part in probabilities], axis=0)
            stability = (table.sum() - len(own)) / max(1, len(own) * (len(own) - 1))
            note = f"{len(own)} folds, {len(stopped)} stopped by their rule, the others after {epochs:,} epochs"
            note += f"; ARI between folds {stability:.2f}"
            finished = len(stopped) == len(own)
            found[name] = {"scores": mean, "labels": mean.argmax(axis=1), "finished": finished, "note": note}
            found[name]["stability"] = stability
        return found


def aligned(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return probabilities with clusters reordered to match `labels` best."""
    m = probabilities.shape[1]
    own = np.array([[(labels == i) & (probabilities.argmax(axis=1) == j) for j in range(m)] for i in range(m)]).sum(
        axis=2
    )
    order = max(permutations(range(m)), key=lambda o: own[range(m), list(o)].sum())
    return probabilities[:, list(order)]
