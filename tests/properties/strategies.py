"""People, names and numbers as tables have them, realistic but nasty, and fitted models of such studies."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from rindices import SurrealGAN
from rindices.presets import Correction, Schedule, fast
from rindices.schema.cells import plain_code

# People, names and numbers as tables have them: several scales, ties, odd names; realistic, but nasty.


# Everything that can be written to a file: surrogates cannot.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ODD = st.sampled_from(
    ['say "hi"', "a, b", "line\nbreak", "tab\t", "海马体", "Größe", "🧠", "null", "NaN", " ", "0", "\x7f"]
)
NAMES = st.one_of(TEXT, ODD)
LABELS = NAMES.filter(plain_code)  # an empty site means that it is not known
SEEDS, SCALES = st.integers(0, 2**32 - 1), st.floats(-6, 9).map(lambda exponent: 10.0**exponent)
FACTORS = st.builds(lambda size, sign: sign * size, SCALES, st.sampled_from([1.0, -1.0]))
NUMBERS = st.floats(-1e9, 1e9, allow_nan=False, allow_subnormal=False)


def names(number, kind=NAMES):
    """So many different names; 1 and 1.0 are the same, and so are blanks."""
    return st.lists(kind, min_size=number, max_size=number, unique_by=plain_code)


@st.composite
def orders(draw, number):
    """All orders of so many things."""
    return np.array(draw(st.permutations(range(number))), int)


@dataclass(frozen=True)
class Study:
    """Regions and covariates of controls, who come first, and patients."""

    features: np.ndarray
    covariates: pd.DataFrame
    n_controls: int
    correction: Correction

    def _repr_pretty_(self, printer, cycle):
        """Say in short what Hypothesis drew."""
        kinds = {name: self.covariates[name].unique().tolist() for name in self.categories}
        sizes = self.features.mean(axis=0).tolist()
        printer.text(f"<{self.n_controls} controls of {self.n_people}; means {sizes}; {kinds}; {self.correction}>")

    @property
    def n_people(self):
        """Controls and patients."""
        return len(self.features)

    @property
    def numbers(self):
        """Names of the covariates that are numbers."""
        return [name for name in self.covariates if self.covariates[name].dtype.kind == "f"]

    @property
    def categories(self):
        """Names of the covariates that are categories, the site included."""
        return [name for name in self.covariates if name not in self.numbers]


def _balanced(rng, labels, n_people):
    """Everybody's label, each nearly as often as the others in any part of the table."""
    rounds = [rng.permutation(len(labels)) for _ in range(-(-n_people // len(labels)))]
    return np.array(labels, dtype=object)[np.concatenate(rounds)[:n_people]]


@st.composite
def corrections(draw, sites=True):
    """Any correction of age, head, sex and site; sites with a correction of their own cannot have another."""
    smooth = draw(st.sets(st.sampled_from(["age", "score"])).map(sorted))
    pairs = draw(st.sampled_from([[], [("age", "sex")], [("age", "score")], [("sex", "age"), ("score", "sex")]]))
    proportion = draw(st.sampled_from([None, "head"]))
    return Correction(smooth, pairs, proportion, draw(st.sampled_from([None, "site"])) if sites else None)


@st.composite
def studies(draw, n_regions=None, controls=(64, 90)):
    """A cohort with effects of its covariates on its regions, and a correction for them.

    Means of regions are up to 1000 sd, as whole brains are; covariates may have ties; categories have odd names.
    """
    rng = np.random.default_rng(draw(SEEDS))
    n_controls, n_patients = draw(st.integers(*controls)), draw(st.integers(3, 12))
    n_regions = draw(st.integers(1, 6)) if n_regions is None else n_regions
    n_people = n_controls + n_patients
    age = rng.uniform(50, 90, n_people)
    score = 20 + 0.1 * age + rng.exponential(3, n_people)
    if draw(st.booleans()):
        age, score = np.round(age), np.round(score)
    sex = _balanced(rng, draw(names(2)), n_people)
    site = _balanced(rng, draw(names(draw(st.integers(2, 3)), LABELS)), n_people)
    head = rng.normal(1500, 120, n_people)
    covariates = pd.DataFrame({"age": age, "score": score, "sex": sex, "site": site, "head": head})
    if draw(st.booleans()):  # the same in all controls: it has no effect that could be known
        covariates["constant"] = np.where(np.arange(n_people) < n_controls, 5.3, rng.normal(5, 1, n_people))
    is_one, at_site = pd.factorize(sex)[0], pd.factorize(site)[0]
    effects = np.outer(age - 70, rng.normal(0, 0.1, n_regions)) + np.outer(is_one, rng.normal(0, 1, n_regions))
    effects += rng.normal(0, 1, (4, n_regions))[at_site]
    noise = rng.normal(0, rng.uniform(0.7, 1.5, (4, n_regions))[at_site])
    means = 10.0 ** rng.uniform(0, 3, n_regions)
    scales = np.array(draw(st.lists(SCALES, min_size=n_regions, max_size=n_regions)))
    features = scales * (means + effects + noise)
    if draw(st.booleans()):  # as many digits as a table prints: ties
        features = scales * np.round(features / scales, 1)
    return Study(features, covariates, n_controls, draw(corrections()))


# Fitted models of drawn studies: trained for a step or two, all else as users have it.


N_REGIONS = 12
SHAPES = [(3, 3), (1, 1), (3, 1), (2, 3)]  # patterns and repetitions; few, so that few programs are compiled
QUICK = replace(fast(), schedule=Schedule(8, 1, 2, checkpoint_every=2, whitening=0.0))


@st.composite
def fitted_models(draw, shapes=SHAPES[:2]):
    """A fitted model, and regions and covariates of the people it comes from."""
    study = draw(studies(n_regions=N_REGIONS))
    n_patterns, n_repetitions = draw(st.sampled_from(shapes))
    model = SurrealGAN(
        n_patterns,
        n_repetitions=n_repetitions,
        preset=QUICK,
        inference=draw(st.sampled_from(["consensus", "medoid"])),
        orthogonality=draw(st.none() | st.floats(0, 1e6)),
        latent=draw(st.sampled_from([None, "independent", "correlated"])),
        correction=draw(st.sampled_from([None, study.correction])),
        random_state=draw(st.integers(0, 2**31)),
    )
    regions = study.features
    if draw(st.booleans()):
        taken = {"participant_id", "diagnosis", *study.covariates}
        regions = pd.DataFrame(regions, columns=draw(names(N_REGIONS, NAMES.filter(lambda name: name not in taken))))
    patient = np.arange(study.n_people) >= study.n_controls
    return model.fit(regions, patient, study.covariates), regions, study.covariates
