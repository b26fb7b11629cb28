"""What one second of linear algebra says of a table before anything is trained: `rindices check`, and the page of it.

The test is the one that `fit` makes, with the same random numbers; the patterns are those of one linear model.
"""

import os
import time
import warnings
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rindices import plots
from rindices.analysis import group_balance
from rindices.cohort import Cohort, correction_of
from rindices.core import devices
from rindices.judging.spectrum import Spectrum
from rindices.judging.verdict import Evidence, differences_that_count, likely_missed
from rindices.linear_estimator import ContrastiveFactors
from rindices.pages.elements import Gallery, Picture
from rindices.pages.privacy import Curtain
from rindices.pages.sections.verdict_section import spectrum_picture
from rindices.presets import get_preset
from rindices.problems import InputError, Wording, counted, listed, roughly
from rindices.regions.region_names import known_regions
from rindices.run.check_table import CheckedTable, FirstLook, PreviewedPattern, refused_for
from rindices.run.study_power import in_words
from rindices.schema.sums_and_sides import pairs_of_sides
from rindices.settings import AUTO, SearchSettings

_ROWS = 6  # of a pattern, in its drawing


def first_look(cohort: Cohort, search: SearchSettings | None = None) -> FirstLook:
    """Look at people as `fit` would before it trains.

    Parameters
    ----------
    cohort
        The people.
    search
        What would be trained; the defaults where not given.
    """
    search, training = search or SearchSettings(), cohort.training
    regions, patient = cohort.features[training], (cohort.group[training] == "patient").to_numpy()
    covariates = cohort.covariates[training] if cohort.covariates.shape[1] else None
    model = ContrastiveFactors(correction=correction_of(cohort.settings), random_state=search.random_state)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(regions, patient, covariates)
    spectrum, differing = model.spectrum_, differences_that_count(group_balance(cohort.background[training], patient))
    evidence = {} if spectrum is None else asdict(Evidence.of(spectrum))
    is_counted = spectrum is not None and spectrum.differs and spectrum.found_again > 0
    n_numbers = 2 if search.n_patterns == AUTO and not is_counted else 1
    needed = time_needed(len(patient), regions.shape[1], model.n_patterns_, search, n_numbers)
    return FirstLook(
        headline=_headline(spectrum, model.untestable_),
        verdicts=_verdicts(spectrum, differing)
        + ("" if spectrum is None else _few(patient, list(map(str, regions)), spectrum.differs)),
        chances=in_words(int((~patient).sum()), int(patient.sum()), regions.shape[1]),
        time=str(needed),
        seconds=needed.seconds,
        warnings=tuple(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning))),
        n_patterns=model.n_patterns_,
        patterns=_preview(model, regions[~patient]) if spectrum is not None and spectrum.differs else (),
        **{name: value for name, value in evidence.items() if name in FirstLook.model_fields},
    )


def with_look(checked: CheckedTable, cohort: Cohort, wording: Wording) -> CheckedTable:
    """Return a checked table with the look at its people, or with what training would refuse them for."""
    try:
        return checked.model_copy(update={"look": first_look(cohort)})
    except InputError as error:
        curtain = Curtain({*cohort.people["participant_id"]}, active=True)
        return checked.model_copy(update=refused_for(error, error.problems, curtain, wording))


def _headline(spectrum: Spectrum | None, untestable: str) -> str:
    if spectrum is None:
        return f"Whether patients and controls differ cannot be tested: {untestable}."
    if not spectrum.differs:
        return f"Patients and controls differ no more than expected by chance (p = {spectrum.p:.2g})."
    if not spectrum.found_again:
        return (
            f"Patients and controls differ (p = {spectrum.p:.2g}), but no single direction is found again in held-out "
            "people."
        )
    return f"At least {counted(spectrum.found_again, 'direction')} beyond chance (p = {spectrum.p:.2g})."


def _verdicts(spectrum: Spectrum | None, differing: list[str]) -> str:
    """Say which verdicts a table can get, and why."""
    if spectrum is None:
        return "The only possible verdict is: not testable."
    if not spectrum.differs:
        return f"The only possible verdict is: no difference found; {likely_missed(*spectrum.detectable)}"
    good = "reproducible, or weak (for comparing groups only)"
    if differing:
        also = listed(differing, joiner=" and ")
        good = f"confounded, because the groups also differ in {also}"
    return f"Possible verdicts: {good}; or not found again, if two halves of the sample do not agree."


def _few(patient: NDArray[np.bool_], regions: list[str], differs: bool) -> str:
    """Say what is missed where there are more regions than people of a group, and what helps."""
    number, group = min((int((~patient).sum()), "control"), (int(patient.sum()), "patient"))
    if number >= len(regions):
        return ""
    sides = "average left and right, " if len(pairs_of_sides(regions)) > len(regions) / 4 else ""
    said = f" With {counted(number, group)} and {counted(len(regions), 'region')}, "
    missed = "weaker additional patterns may be missed" if differs else "a smaller difference would be missed"
    return f"{said}{missed}: {sides}choose fewer regions, or add people."


def _preview(model: ContrastiveFactors, controls: pd.DataFrame) -> tuple[PreviewedPattern, ...]:
    """Return the regions of each pattern, the strongest first."""
    names, scaler = np.array(controls.columns, str), model.preprocessing_.scaler
    sizes = np.where(controls.min() < 0, np.nan, np.abs(scaler.mean))
    patterns = []
    for number, change in enumerate(model.changes_, start=1):
        order = np.argsort(-np.abs(change), kind="stable")
        percent = 100 * change * scaler.sd / sizes
        patterns.append(
            PreviewedPattern(
                pattern=number,
                regions=tuple(names[order].tolist()),
                changes=tuple(change[order].tolist()),
                percent=tuple(None if np.isnan(one) else float(one) for one in percent[order]),
            )
        )
    return tuple(patterns)


def look_pictures(look: FirstLook) -> tuple[Picture | None, Picture | None]:
    """Return the directions over what chance makes, and the patterns of the linear model, as drawings."""
    gallery = Gallery()
    scree = None if look.limit is None else spectrum_picture(gallery, look.eigenvalues, look.band, look.limit)
    rows = [
        {"pattern": one.pattern, "region": name, "change_sd": change, "change_percent": percent, "spread_sd": np.nan}
        for one in look.patterns
        for name, change, percent in zip(one.regions, one.changes, one.percent, strict=True)
    ]
    if not rows:
        return scree, None
    words = [f"pattern {one.pattern}: {listed(one.regions, 3)}" for one in look.patterns]
    titles = {name: region.title for name, region in known_regions(look.patterns[0].regions).items()}
    figure = plots.pattern_dots(pd.DataFrame(rows).astype({"change_percent": float}), top=_ROWS, names=titles)
    return scree, gallery.draw("preview", figure, f"Strongest regions of a linear model, {'; '.join(words)}.")


# Seconds on one core whose `_slowness` is 1: of a step with three patterns, and more for each pair of regions (16 to
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
        return f"about {roughly(self.seconds)} on {self.place} of this machine"


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
    return TimeNeeded(seconds, f"the {n_cores} cores" if n_cores > 1 else "the one core")


def _has_accelerator() -> bool:
    """Say whether JAX would train on a GPU, without starting it: a page that only asks should not hold its memory."""
    wanted = os.environ.get("JAX_PLATFORMS", "cuda")
    plugins = any(find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
    return plugins and "cuda" in wanted and Path("/dev/nvidiactl").exists()


@threadpool_limits.wrap(limits=1, user_api="blas")
def slowness() -> float:
    """Return how slow one core is at what training does, relative to the one that was measured on."""
    weights = np.full((128, 128), 1 / 128, np.float32)
    times = []
    for _ in range(3):
        batch, start = np.ones((_BATCH, 128), np.float32), time.perf_counter()
        for _ in range(_LOOPS):
            batch = np.maximum(batch @ weights, 0.01)
        times.append(time.perf_counter() - start)
    return median(times) / _USUAL
