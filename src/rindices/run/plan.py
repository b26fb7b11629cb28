"""From a user's table and settings to a run: checked and planned here, carried out by `rindices.run.fit_table`.

Nothing here loads the training engine before the table has been read and found to be sound.
"""

import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from rindices import __version__, record
from rindices.analysis import group_balance
from rindices.cohort import Cohort, Looked, look_at, named_parts
from rindices.files import check_folder
from rindices.interop.muse import MUSE72, MUSE72_NAMES, UNIT, with_muse72
from rindices.presets import adjusted, get_preset
from rindices.problems import Blank, InputError, Message, Remedy, listed, roughly
from rindices.schema.role_guesses import is_region_name
from rindices.settings import OutputSettings, SearchSettings, TableSettings
from rindices.tables import Source, Table, files_of, read_source
from rindices.tables.text_and_workbook import TABLES
from rindices.value_kinds import check_level, check_scan_noise, paths_of, settings_of, wanted_names

_VERSIONS = ("jax", "optax", "numpy", "scipy", "pandas", "scikit-learn")
_MOST_PATTERNS = 20


class PlannedRun(NamedTuple):
    """A run before training, whose table has been read.

    Attributes
    ----------
    out
        The run folder.
    cohort
        The people.
    table
        How their table was read.
    search, output
        What is trained, and what is written.
    models_per_chunk
        Number of models trained together in the run that this one repeats.
    """

    out: Path
    cohort: Cohort
    table: record.RunTable
    search: SearchSettings
    output: OutputSettings
    models_per_chunk: int | None = None

    def settings(self, command: str = "") -> record.RunSettings:
        """Return all that is needed to repeat the run, with the versions and device that exact results depend on."""
        from rindices.core import devices

        devices.prepare()
        device = devices.describe()
        return record.RunSettings(
            command={"line": command},
            table=self.table,
            training=self.search,
            versions=versions(),
            device={"platform": device.platform, "kind": device.kind},
        )

    def is_complete(self) -> bool:
        """Return whether the folder holds this very run, finished; raise if it holds another."""
        return bool(record.status_of(self.out)) and record.is_complete(self.out, self.settings())

    def more(self) -> dict[str, str]:
        """Return the settings by which the run in the folder is extended, with old and new values."""
        return record.more_of(self.out, self.settings()) if record.status_of(self.out) else {}


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    return {
        "rindices": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _VERSIONS},
    }


def planned(
    path: str | Path, out: Path, table: TableSettings, search: SearchSettings, output: OutputSettings
) -> PlannedRun:
    """Check the settings, then read and check the table.

    Parameters
    ----------
    path
        A table, or the folder of a BIDS dataset.
    out
        The run folder.
    table, search, output
        How the table is read, what is trained, and what is written.

    Raises
    ------
    InputError
        If anything is wrong; in that case, nothing is written.
    """
    check_search(search)
    check_level(output.level)
    check_scan_noise(output.scan_noise, _numbers(search), visits=table.visit is not None)
    record.check_free(out)
    _check_places(out, output.figures, (table.dictionary, *files_of(path), *paths_of(table.join)))
    return plan_of(look(path, table).cohort(), path, out, table, search, output)


def plan_of(
    cohort: Cohort, path: str | Path, out: Path, table: TableSettings, search: SearchSettings, output: OutputSettings
) -> PlannedRun:
    """Plan a run with a cohort that has been read and checked; the other parameters are those of `planned`."""
    most, n_regions = max(_numbers(search), default=1), cohort.features.shape[1]
    if most > n_regions:
        raise InputError(
            f"{most} patterns cannot be distinguished in {n_regions} regions.\nRequest at most {n_regions} with ",
            Remedy("n_patterns"),
            ".",
        )
    # If regions were summed, record which columns were left out; otherwise the list of regions suffices.
    asked, summed = cohort.settings, table.features == MUSE72
    said = {
        **asdict(asked),
        **{
            one.name: wanted_names(getattr(asked, one.name))
            for one in settings_of(TableSettings)
            if one.kind.several and one.default == ()
        },
        "join": tuple(map(str, paths_of(asked.join))),
        "features": MUSE72 if summed else tuple(map(str, cohort.features.columns)),
        "exclude": wanted_names(table.exclude) if summed else (),
        "unit": cohort.unit,
    }
    return PlannedRun(out, cohort, record.RunTable(**said, path=str(path), sha256=cohort.sha256), search, output)


def planned_again(config: Path, out: Path, output: OutputSettings, path: Path | None = None) -> PlannedRun:
    """Plan a repeat of the run that a ``run.toml`` describes; `path` is where its table is now."""
    before = record.read_settings(config)
    where = str(before.table.path if path is None else path)
    again = Message("rindices fit TABLE ", Remedy("config", str(config)), " ", Remedy("out", Blank("FOLDER")), ".")
    if path is None and not all(file.exists() for file in files_of(where)):
        raise InputError(
            f"{config} refers to the table {where}, which does not exist.\nProvide the current location of the table: ",
            again,
        )
    plan = planned(
        where,
        out,
        TableSettings(**{one.name: getattr(before.table, one.name) for one in fields(TableSettings)}),
        before.training,
        output,
    )
    if before.table.sha256 not in (None, plan.cohort.sha256):
        raise InputError(
            f"{where} is not the table used for the run: its contents differ.\nSpecify the original table: ",
            again,
            " To use another table, omit ",
            Remedy("config"),
            ".",
        )
    return plan._replace(models_per_chunk=before.plan.get("models_per_chunk"))


def _numbers(search: SearchSettings) -> tuple[int, ...]:
    """Return the requested numbers of patterns; none if the number is determined from the data."""
    return () if isinstance(search.n_patterns, str) else search.n_patterns


def check_search(search: SearchSettings) -> None:
    """Refuse settings that cannot be trained."""
    for one in settings_of(SearchSettings):
        given, least = getattr(search, one.name), one.kind.least
        if least is not None and given is not None and given < least:
            raise InputError(Remedy(one.name), f" should be at least {least}, but got {given}.")
    for weight in search.orthogonality or (None,):
        adjusted(get_preset(search.preset), weight, search.max_steps, search.latent)
    beyond = [number for number in _numbers(search) if not 1 <= number <= _MOST_PATTERNS]
    if beyond:
        raise InputError(Remedy("n_patterns"), f" should be between 1 and {_MOST_PATTERNS}, but got {listed(beyond)}.")


def _check_places(out: Path, figures: Path | None, inputs: tuple[str | Path | None, ...]) -> None:
    """Refuse input tables and figures inside the run folder, where files of the run could overwrite them."""
    for path in inputs:
        if path is not None and out.resolve() in Path(path).resolve().parents:
            raise InputError(
                f"{path} is inside the output folder {out} and could be overwritten.\nChoose another folder with ",
                Remedy("out"),
                ".",
            )
    check_folder(figures, "figures")
    if (
        figures is not None
        and out.resolve() in figures.resolve().parents
        and figures.resolve() != (out / record.FIGURES).resolve()
    ):
        raise InputError(
            Remedy("figures", str(figures)),
            f" is inside the run folder.\nChoose {out / record.FIGURES}, or a folder outside the run folder.",
        )


def _with_scores(table: TableSettings) -> TableSettings:
    """Return settings that join a table of clinical scores; its columns without another role are the scores."""
    file = str(table.clinical).partition("#")[0].casefold()
    if not isinstance(table.clinical, str | Path) or not file.endswith(TABLES):
        return table
    others = dict(named_parts(table))
    scores = tuple(name for name in Table(table.clinical).columns if name not in others and is_region_name(name))
    if not scores:
        raise InputError(
            f"{table.clinical} contains no clinical scores: all its columns have other roles.\nAdd columns with scores."
        )
    return replace(table, clinical=scores, join=(*map(str, paths_of(table.join)), str(table.clinical)))


def look(path: str | Path, table: TableSettings, read: Callable[..., Source] = read_source) -> Looked:
    """Read a table as a run does: join clinical scores, and sum volumes of single MUSE regions if requested."""
    table = _with_scores(table)
    if table.features != MUSE72:
        return look_at(path, table, read=read)
    return look_at(
        path,
        replace(table, features=MUSE72_NAMES, exclude=(), unit=table.unit or UNIT),
        prepare=partial(with_muse72, exclude=table.exclude, complete=True, covariates=table.covariates),
        read=read,
    )


def balance_of(cohort: Cohort) -> pd.DataFrame:
    """Compare the background of controls and patients in the training; see `rindices.analysis.group_balance`."""
    own, (regions, patient, _) = cohort.training, cohort.of_training()
    return group_balance(cohort.background[own], patient, None if cohort.site is None else cohort.site[own], regions)


# Seconds of a step with three patterns on one core whose `slowness` is 1: fixed, and per squared number of regions
# (measured from 16 to 400). With other numbers of patterns, time is proportional to that number plus `_PATTERNS`.
_STEP, _STEP_BY_REGIONS, _PATTERNS = 0.6e-3, 1.0e-7, 2.5
_BATCH = 32  # people per step, for which these hold
# Of compiling, table and report at any size; of linear models and permutations, per person and squared regions.
_AROUND, _JUDGING = 35.0, 6e-7
# On an H200: a step, as long for ten models as for one; a step per model, with many models; start-up and the rest.
_GPU_STEP, _GPU_STEP_OF_MODEL, _GPU_AROUND = 1.8e-4, 8e-6, 20.0
_LOOPS, _USUAL = 1000, 0.021  # repeats of the arithmetic timed in `slowness`; seconds on the reference core


class TimeNeeded(NamedTuple):
    """Approximate duration of a fit in seconds, report included, and the hardware."""

    seconds: float
    place: str

    def __str__(self) -> str:
        return f"about {roughly(self.seconds)} on {self.place} of this machine, if it is otherwise idle"


def time_needed(
    n_people: int, n_regions: int, n_patterns: int, search: SearchSettings, n_numbers: int = 1
) -> TimeNeeded:
    """Estimate how long a fit takes on this machine.

    Parameters
    ----------
    n_people, n_regions
        Number of people and of regions in training.
    n_patterns
        The largest number of patterns that is trained.
    search
        What is trained.
    n_numbers
        How many numbers of patterns are tried: two if the look before training cannot determine the number.
    """
    from rindices.core import devices

    schedule = get_preset(search.preset).schedule
    steps = search.max_steps or schedule.max_steps
    models = n_numbers * search.n_repetitions * len(search.orthogonality or (1,))
    if _has_accelerator():
        seconds = _GPU_AROUND + steps * max(_GPU_STEP, models * _GPU_STEP_OF_MODEL)
        return TimeNeeded(seconds, "the GPU")
    people = (schedule.batch_size or n_people / 8) / _BATCH
    a_step = (_STEP + _STEP_BY_REGIONS * n_regions**2) * people * (n_patterns + _PATTERNS) / (3 + _PATTERNS)
    n_cores = devices.n_cores()
    on_each = -(-models // n_cores)
    seconds = slowness() * (_AROUND + _JUDGING * n_people * n_regions**2 + on_each * steps * a_step)
    return TimeNeeded(seconds, f"the {n_cores} cores" if n_cores > 1 else "the single core")


def _has_accelerator() -> bool:
    """Return whether JAX would train on a GPU, without starting JAX, which would occupy the GPU's memory."""
    return (
        any(find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
        and "cuda" in os.environ.get("JAX_PLATFORMS", "cuda")
        and Path("/dev/nvidiactl").exists()
    )


@threadpool_limits.wrap(limits=1, user_api="blas")
def slowness() -> float:
    """Return how slow one core is at the arithmetic of training, relative to the reference core.

    The shortest processor time of five, because other running programs lengthen the elapsed time without slowing the
    core.
    """
    weights = np.full((128, 128), 1 / 128, np.float32)
    times = []
    for _ in range(5):
        batch, start = np.ones((_BATCH, 128), np.float32), time.thread_time()
        for _ in range(_LOOPS):
            batch = np.maximum(batch @ weights, 0.01)
        times.append(time.thread_time() - start)
    return min(times) / _USUAL
