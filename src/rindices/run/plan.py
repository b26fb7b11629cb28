"""From a user's table and settings to a run: checked and planned here, carried out by `rindices.run.fit_table`.

Nothing here loads the training engine before the table was read and found to be sound.
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

import rindices
from rindices import record
from rindices.analysis import group_balance
from rindices.cohort import Cohort, Looked, look_at
from rindices.cohort.training_table import named_parts
from rindices.files import check_folder
from rindices.interop.muse import MUSE72, MUSE72_NAMES, UNIT, with_muse72
from rindices.presets import adjusted, get_preset
from rindices.problems import Blank, InputError, Message, Remedy, listed, roughly
from rindices.schema.role_guesses import is_region_name
from rindices.settings import OutputSettings, SearchSettings, TableSettings
from rindices.tables import Source, Table, files_of, read_source
from rindices.value_kinds import check_level, check_scan_noise, paths_of, settings_of, wanted_names

_VERSIONS = ("jax", "optax", "numpy", "scipy", "pandas", "scikit-learn")
_MOST_PATTERNS = 20
_TABLES = (".csv", ".tsv", ".xlsx", ".xlsm", ".parquet")  # a name that ends so is that of a table


class PlannedRun(NamedTuple):
    """A run whose table was read, before it is trained.

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
        How many models trained together in the run that this one repeats.
    """

    out: Path
    cohort: Cohort
    table: record.RunTable
    search: SearchSettings
    output: OutputSettings
    models_per_chunk: int | None = None

    def settings(self, command: str = "") -> record.RunSettings:
        """Return all that is needed to run the same again, with the versions and the device that bits depend on."""
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
        """Whether the folder holds this very run, finished; another run is refused."""
        return bool(record.status_of(self.out)) and record.is_complete(self.out, self.settings())

    def more(self) -> dict[str, str]:
        """Return what the run in the folder is asked for more of, from what to what."""
        return record.more_of(self.out, self.settings()) if record.status_of(self.out) else {}


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    ours = {"rindices": rindices.__version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in _VERSIONS}


def planned(
    path: str | Path, out: Path, table: TableSettings, search: SearchSettings, output: OutputSettings
) -> PlannedRun:
    """Check what is asked for, then read and check the table.

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
        If anything is wrong; nothing is written then.
    """
    check_search(search)
    check_level(output.level)
    check_scan_noise(output.scan_noise, _numbers(search), visits=table.visit is not None)
    record.check_free(out)
    files = (*files_of(path), *paths_of(table.join))
    _check_places(out, output.figures, (table.dictionary, *map(str, files)))
    return plan_of(look(path, table).cohort(), path, out, table, search, output)


def plan_of(
    cohort: Cohort, path: str | Path, out: Path, table: TableSettings, search: SearchSettings, output: OutputSettings
) -> PlannedRun:
    """Plan a run with the people of a table that was read and checked; the parameters are those of `planned`."""
    most, n_regions = max(_numbers(search), default=1), cohort.features.shape[1]
    if most > n_regions:
        raise InputError(
            f"{most} patterns cannot be distinguished in {n_regions} regions.\nRequest fewer with ",
            Remedy("n_patterns"),
            ", such as 2-5.",
        )
    # Where regions were summed, the columns that were not are said; else the regions say it all.
    asked, summed = cohort.settings, table.features == MUSE72
    several = [one.name for one in settings_of(TableSettings) if one.kind.several and one.default == ()]
    said = asdict(asked) | {name: wanted_names(getattr(asked, name)) for name in several}
    said |= {
        "join": tuple(map(str, paths_of(asked.join))),
        "features": MUSE72 if summed else tuple(map(str, cohort.features.columns)),
        "exclude": wanted_names(table.exclude) if summed else (),
        "unit": cohort.unit,
    }
    described = record.RunTable(**said, path=str(path), sha256=cohort.sha256)
    return PlannedRun(out, cohort, described, search, output)


def planned_again(config: Path, out: Path, output: OutputSettings, path: Path | None = None) -> PlannedRun:
    """Plan the run that a ``run.toml`` describes once more; `path` is where its table is now."""
    before = record.read_settings(config)
    where = str(before.table.path if path is None else path)
    again = Message("rindices fit TABLE ", Remedy("config", str(config)), " ", Remedy("out", Blank("FOLDER")), ".")
    if path is None and not all(file.exists() for file in files_of(where)):
        raise InputError(
            f"{config} refers to the table {where}, which does not exist.\nProvide the current location of the table: ",
            again,
        )
    table = TableSettings(**{one.name: getattr(before.table, one.name) for one in fields(TableSettings)})
    networks = get_preset(before.training.preset).schedule.max_steps
    training = before.training if networks else replace(before.training, orthogonality=None)  # which had no effect
    plan = planned(where, out, table, training, output)
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
    """Return the numbers of patterns that were asked for; none where they are counted before training."""
    return () if isinstance(search.n_patterns, str) else search.n_patterns


def check_search(search: SearchSettings) -> None:
    """Refuse what cannot be trained."""
    for one in settings_of(SearchSettings):
        given, least = getattr(search, one.name), one.kind.least
        if least is not None and given is not None and given < least:
            raise InputError(Remedy(one.name), f" should be at least {least}, but got {given}.")
    for weight in search.orthogonality or (None,):
        adjusted(get_preset(search.preset), weight, search.max_steps, search.latent)
    beyond = [number for number in _numbers(search) if not 1 <= number <= _MOST_PATTERNS]
    if beyond:
        raise InputError(Remedy("n_patterns"), f" should be between 1 and {_MOST_PATTERNS}, but got {listed(beyond)}.")


def _check_places(out: Path, figures: Path | None, inputs: tuple[str | None, ...]) -> None:
    """Refuse tables and figures in the folder for the results, which has files of its own by such names."""
    for path in inputs:
        if path is not None and out.resolve() in Path(path).resolve().parents:
            raise InputError(
                f"{path} is inside the output folder {out} and could be overwritten.\nChoose another folder with ",
                Remedy("out"),
                ".",
            )
    check_folder(figures, "figures")
    own = (out / record.FIGURES).resolve()
    if figures is not None and out.resolve() in figures.resolve().parents and figures.resolve() != own:
        raise InputError(
            Remedy("figures", str(figures)),
            f" is inside the run folder.\nChoose {out / record.FIGURES}, or a folder outside the run folder.",
        )


def _with_scores(table: TableSettings) -> TableSettings:
    """Return settings in which a table of clinical scores is joined; its columns without another role are scores."""
    file = str(table.clinical).partition("#")[0].casefold().removesuffix(".gz")
    if not isinstance(table.clinical, str | Path) or not file.endswith(_TABLES):
        return table
    others = dict(named_parts(table))
    scores = tuple(name for name in Table(table.clinical).columns if name not in others and is_region_name(name))
    if not scores:
        raise InputError(f"{table.clinical} contains no clinical scores: all its columns have other roles.")
    return replace(table, clinical=scores, join=(*map(str, paths_of(table.join)), str(table.clinical)))


def look(path: str | Path, table: TableSettings, read: Callable[..., Source] = read_source) -> Looked:
    """Read a table as a run does: with its clinical scores, and volumes of single MUSE regions summed where asked."""
    table = _with_scores(table)
    if table.features != MUSE72:
        return look_at(path, table, read=read)
    sums = replace(table, features=MUSE72_NAMES, exclude=(), unit=table.unit or UNIT)
    prepare = partial(with_muse72, exclude=table.exclude, complete=True, covariates=table.covariates)
    return look_at(path, sums, prepare=prepare, read=read)


def balance_of(cohort: Cohort) -> pd.DataFrame:
    """Compare controls and patients of the training in their background; see `rindices.analysis.group_balance`."""
    own, (regions, patient, _) = cohort.training, cohort.of_training()
    return group_balance(cohort.background[own], patient, None if cohort.site is None else cohort.site[own], regions)


# Seconds on one core whose `slowness` is 1: of a step with three patterns, and more for each pair of regions (16 to
# 400 regions measured); the same with other numbers of patterns, relative to so many more than there are.
_STEP, _STEP_BY_REGIONS, _PATTERNS = 0.6e-3, 1.0e-7, 2.5
_BATCH = 32  # people a step, for which that holds
# Of compiling, the table and the report, whatever its size; of linear models and permutations, by people and regions.
_AROUND, _JUDGING = 35.0, 6e-7
# On an H200: ten models take no longer than one, more take longer in proportion; to start it and the rest.
_GPU_STEP, _GPU_STEP_OF_MODEL, _GPU_AROUND = 1.8e-4, 8e-6, 20.0
_LOOPS, _USUAL = 1000, 0.021  # of the arithmetic that tells how slow a core is; seconds that it took


class TimeNeeded(NamedTuple):
    """About how many seconds a fit takes, the report included, and on what."""

    seconds: float
    place: str

    def __str__(self) -> str:
        return f"about {roughly(self.seconds)} on {self.place} of this machine, if it is otherwise idle"


def time_needed(
    n_people: int, n_regions: int, n_patterns: int, search: SearchSettings, n_numbers: int = 1
) -> TimeNeeded:
    """Return about how long a fit takes here.

    Parameters
    ----------
    n_people, n_regions
        Of the training.
    n_patterns
        The largest number of patterns that is trained.
    search
        What is trained.
    n_numbers
        How many numbers of patterns are tried: two where the look before training finds none to count.
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
    """Say whether JAX would train on a GPU, without starting it: a page that only asks should not hold its memory."""
    wanted = os.environ.get("JAX_PLATFORMS", "cuda")
    plugins = any(find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
    return plugins and "cuda" in wanted and Path("/dev/nvidiactl").exists()


@threadpool_limits.wrap(limits=1, user_api="blas")
def slowness() -> float:
    """Return how slow one core is at what training does, relative to the one that was measured on.

    Processor time, and the least of five, because other programs that happen to run now make the clock, but not
    the core, slower.
    """
    weights = np.full((128, 128), 1 / 128, np.float32)
    times = []
    for _ in range(5):
        batch, start = np.ones((_BATCH, 128), np.float32), time.thread_time()
        for _ in range(_LOOPS):
            batch = np.maximum(batch @ weights, 0.01)
        times.append(time.thread_time() - start)
    return min(times) / _USUAL
