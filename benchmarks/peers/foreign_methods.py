"""Fit one method of other authors, in its own environment, through its public functions.

    python foreign_methods.py METHOD GIVEN.npz FOUND.npz SECONDS

Files are those of own_methods.py. Settings are the authors' (docs/peers.md cites them). A training that has not met its
own stopping rule after the given seconds of processor time is stopped, and its model is used as it is.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import time
import types
from typing import Any

import numpy as np
import pandas as pd

NEVER = 10**6  # epochs


class TimeIsUpError(Exception):
    """Ends a training that would otherwise continue for hours."""


class Found(dict):
    """Scores of patients, whether the method finished by itself, and how far it got."""

    def __init__(self, scores: np.ndarray, finished: bool, note: str, labels: np.ndarray | None = None) -> None:
        labels = scores.argmax(axis=1) if labels is None else labels
        super().__init__(scores=scores, labels=labels, finished=finished, note=note, verdict="")


class Given:
    """The people of one fit."""

    def __init__(self, arrays: Any, seconds: float) -> None:
        self.regions, self.patient, self.train = arrays["regions"], arrays["patient"], arrays["train"]
        self.n_patterns, self.seed, self.lobes = arrays["truth"].shape[1], int(arrays["seed"]), arrays["lobes"]
        self.seconds = seconds
        controls = self.regions[self.train & ~self.patient]
        self.mean, self.sd = controls.mean(axis=0), controls.std(axis=0)
        self.patients = self.regions[self.patient]

    def table(self, *further: str) -> pd.DataFrame:
        """Return the training people, with controls labelled -1 and patients 1."""
        names = [f"region{number}" for number in range(self.regions.shape[1])]
        table = pd.DataFrame(self.regions, columns=names)
        table.insert(0, "diagnosis", np.where(self.patient, 1, -1))
        for name in further:
            table.insert(0, name, "1")
        table.insert(0, "participant_id", [f"sub-{number:05d}" for number in range(len(table))])
        return table[self.train].reset_index(drop=True)

    def timed(self, model: Any) -> list[Any]:
        """Make trainings of a model class end when time is up; return a list that receives the latest model."""
        latest: list[Any] = [None, 0]
        train, start = model.train_instance, time.process_time()

        def watched(trained: Any, *arguments: Any) -> Any:
            latest[:] = [trained, latest[1] + 1]
            if time.process_time() - start > self.seconds:
                raise TimeIsUpError
            return train(trained, *arguments)

        model.train_instance = watched
        return latest


def surreal_gan(given: Given) -> Found:
    """Train one model of the authors' package with its default settings."""
    import torch
    from SurrealGAN.model import SurrealGAN
    from SurrealGAN.Surreal_GAN_representation_learning import repetitive_representation_learning as learn

    torch.set_num_threads(1)
    latest = given.timed(SurrealGAN)
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(TimeIsUpError):
        # A single repetition fails when it is saved and compared with others, so saving is postponed forever.
        number, table = given.seed % 100, given.table()
        batch = min(300, int((table["diagnosis"] == 1).sum()) // 3)  # with fewer than two batches it takes no step
        more = {"saving_freq": NEVER // 4, "start_repetition": number, "batchsize": batch}
        learn(table, given.n_patterns, number + 1, 1.0, NEVER, folder, **more)
    scaled = torch.FloatTensor(1 + (given.patients - given.mean) / (10 * given.sd))
    return Found(latest[0].predict_rindices(scaled), False, f"{latest[1]} steps")


def smile_gan(given: Given) -> Found:
    """Train one model as in the package's sample code; scores are cluster probabilities."""
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # the package loads its own files
    import torch
    from SmileGAN.model import SmileGAN
    from SmileGAN.Smile_GAN_clustering import single_model_clustering

    torch.set_num_threads(1)
    torch.manual_seed(given.seed)
    latest, finished, table = given.timed(SmileGAN), False, given.table()
    n_patients = int((table["diagnosis"] == 1).sum())
    batch = n_patients // 15  # a tenth to a twentieth
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(TimeIsUpError):
        single_model_clustering(
            table, given.n_patterns, 6000, 14_000, folder, 0.14, n_patients // 20, 0.002, batchSize=batch
        )
        finished = True
    scaled = torch.FloatTensor(1 + (given.patients - given.mean) / (10 * given.sd))
    epochs = latest[1] // max(1, n_patients // batch)
    return Found(latest[0].predict_cluster(scaled), finished, f"about {epochs} epochs")


def hydra(given: Given, numbers: tuple[int, ...] = ()) -> Found:
    """Run hold-out repetitions with the defaults of mlni; scores are signed distances to each subtype's hyperplane.

    The repetitions give a consensus assignment, to which hyperplanes are fitted as in mlni. With several numbers of
    subtypes, the one with the best agreement of repetitions (adjusted Rand index) is taken.
    """
    for name in ("torchvision", "torchvision.models", "torchvision.models.resnet", "tensorboardX"):
        sys.modules[name] = types.ModuleType(name)  # imported for tasks other than clustering
    sys.modules["torchvision.models.resnet"].BasicBlock = object  # type: ignore[attr-defined]
    sys.modules["tensorboardX"].SummaryWriter = object  # type: ignore[attr-defined]
    from mlni.hydra_clustering import clustering
    from mlni.utils import launch_svc

    np.random.seed(given.seed)  # noqa: NPY002  # mlni draws from it
    numbers, repetitions = numbers or (given.n_patterns,), int(os.environ.get("HYDRA_REPETITIONS", "100"))
    table = given.table("session_id")
    with tempfile.TemporaryDirectory() as folder:
        file, results = os.path.join(folder, "features.tsv"), os.path.join(folder, "clustering")
        table.to_csv(file, sep="\t", index=False)
        os.makedirs(results)
        clustering(file, folder, min(numbers), max(numbers), repetitions, n_threads=1)
        stable = pd.read_csv(os.path.join(results, "adjusted_rand_index.tsv"), sep="\t").to_numpy()[0]
        k = numbers[int(np.nanargmax(stable))] if len(numbers) > 1 else numbers[0]
        assigned = pd.read_csv(os.path.join(results, "clustering_assignment.tsv"), sep="\t")[f"assignment_{k}"]
    trained, group = table.iloc[:, 3:].to_numpy(), table["diagnosis"].to_numpy()
    mean, sd = trained.mean(axis=0), trained.std(axis=0)  # mlni scales by all training people
    weights = np.where(group[:, None] == 1, assigned.to_numpy()[:, None] == 1 + np.arange(k), 1 / k)
    planes = [launch_svc((trained - mean) / sd, group, 0.25, weight, True)[2] for weight in weights.T.copy()]
    scores = np.column_stack([plane.decision_function((given.patients - mean) / sd) for plane in planes])
    return Found(scores, repetitions == 100, f"{repetitions} of 100 repetitions")


def sustain(given: Given, largest_number: int = 0) -> Found:
    """Fit the z-score model to lobar means; scores are expected stages in each subtype, without sampling.

    If a largest number of subtypes is given, the number with the lowest cross-validation information criterion is used.
    """
    from quick_sustain import QuickSustain

    z = -(given.regions - given.mean) / given.sd @ given.lobes.T
    z /= z[given.train & ~given.patient].std(axis=0)
    thresholds, starts = np.array([1.0, 2.0, 3.0]), int(os.environ.get("PYSUSTAIN_STARTS", "25"))
    reached = (z[given.train & given.patient][:, :, None] > thresholds).mean(axis=0) >= 0.05
    reached[:, 0] = True
    largest = np.array([2, 3, 5])[reached.sum(axis=1) - 1]
    names, number = [f"lobe{number}" for number in range(z.shape[1])], given.n_patterns

    def model(folder: str, number: int) -> Any:
        shape = (thresholds * reached, largest, names, starts, number, 1, folder, "peers", False, 1)
        return QuickSustain(z[given.train], *shape)

    with tempfile.TemporaryDirectory() as folder:
        if largest_number:
            folds = np.array_split(np.random.default_rng(0).permutation(int(given.train.sum())), 3)
            criterion, _ = model(folder, largest_number).cross_validate_sustain_model(folds)
            number = 1 + int(np.argmin(criterion))
    with tempfile.TemporaryDirectory() as folder:
        fitted = model(folder, number)
        sequences, shares, *_ = fitted.run_sustain_algorithm()
        *_, stages = fitted.subtype_and_stage_individuals_newData(z[given.patient], sequences, shares, 1)
    scores = np.einsum("nsk,s->nk", stages, np.arange(stages.shape[1]))
    return Found(scores, True, f"{starts} starts, no sampling", stages.sum(axis=1).argmax(axis=1))


METHODS = {
    "Surreal-GAN": surreal_gan,
    "Smile-GAN": smile_gan,
    "HYDRA": hydra,
    "HYDRA, number chosen": lambda given: hydra(given, (2, 3, 4)),
    "SuStaIn": sustain,
    "SuStaIn, number chosen": lambda given: sustain(given, 4),
}


def peak_memory() -> float:
    """Return the peak memory of this process in GiB, not counting that of its parent."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 2**20 for line in file if line.startswith("VmHWM"))


def main() -> None:
    """Fit the method, and write its results."""
    method, source, target, seconds = sys.argv[1:]
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        found = METHODS[method](Given(np.load(source), float(seconds)))
    np.savez(target, **found, gib=peak_memory())


if __name__ == "__main__":
    main()
