"""A one-second test before training: whether patients differ from controls, and in how many directions.

*Spread*: the eigenvalues of the patients' covariance relative to the controls'. A pattern whose severity differs
between patients is a direction in which they vary more. *Shift*: how well regions distinguish the groups in held-out
people. Both are compared with the same table after permuting people between the groups, which makes the joint p value
valid by construction, whatever the distribution of the regions.

Covariates: rows are first rotated into the space orthogonal to the covariates, where residuals are exchangeable (Huh
and Jhun, 2001); residuals themselves are not. Sites: their means are among the covariates, and people are permuted
within sites. Regions are used as measured, and each site is scaled by all its people: a scale estimated in controls
would fit them better than patients, which would look like disease.
"""

from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import eigh, qr
from scipy.linalg.lapack import dormqr
from scipy.special import ndtr
from sklearn.covariance import shrunk_covariance

from rindices.linear import DIFFERENT, ledoit_wolf, ledoit_wolf_share, one_thread, side_by_side

N_PERMUTATIONS = 199
LEVEL = 0.05
_KEPT = 10  # eigenvalues to report
_FAR = 4.0  # robust sd of people's distances from the centre, beyond which they are drawn in
_FEWEST_ROWS = 10  # that must remain of a group after adjustment for covariates
_DIRECTIONS = 8  # that are looked for again in held-out people
_FOLDS, _REPEATS = 10, 2
_FOUND_AGAIN = 4.5  # standard errors; folds share most people, so chance makes larger values than a normal error would


class Spectrum(NamedTuple):
    """Result of the comparison before training.

    Attributes
    ----------
    eigenvalues : ndarray
        Variance of patients relative to controls in each direction, the largest first.
    null : ndarray of shape (permutations, directions)
        The same after permutations.
    limit : float
        The 95th centile of the first eigenvalue after permutations.
    shift, null_shift : float, ndarray
        Correlation of the group with its leave-one-out prediction from the regions, and the same after permutations.
    share : float
        Proportion of patients.
    held_out : ndarray
        How much more held-out patients vary than held-out controls in each direction, in standard errors: among
        changes of the regions whose means differ or, if that finds nothing, of all regions.
    p, p_spread, p_shift : float
        Joint p value, and those of the first eigenvalue and of the shift.
    """

    eigenvalues: np.ndarray
    null: np.ndarray
    limit: float
    shift: float
    null_shift: np.ndarray
    share: float
    held_out: np.ndarray
    p: float
    p_spread: float
    p_shift: float

    @property
    def directions(self) -> int:
        """The number of directions beyond chance."""
        return int((self.eigenvalues > self.limit).sum())

    @property
    def found_again(self) -> int:
        """The number of directions, counted from the largest, in which held-out people also differ.

        This is the estimated number of patterns. Eigenvalues are maximised over many directions, so in small samples
        they can exceed the limit by chance, or fail to reach it although they are real; nothing is maximised in
        held-out people.
        """
        return int(np.append(self.held_out > _FOUND_AGAIN, False).argmin())

    @property
    def differs(self) -> bool:
        """Whether patients and controls differ beyond chance."""
        return self.p <= LEVEL

    @property
    def detectable(self) -> tuple[float, float]:
        """The smallest AUC, and ratio of the sd of patients to that of controls in a direction, likely to be found."""
        correlation = max(float(np.quantile(self.null_shift, 1 - LEVEL)), 0.0)
        distance = correlation / np.sqrt(self.share * (1 - self.share) * (1 - correlation**2))
        return float(ndtr(distance / np.sqrt(2))), float(np.sqrt(self.limit))


class NotTestable(ValueError):
    """Too few people remain after adjustment for covariates and sites to permute their labels."""


@one_thread()
def look(
    regions: np.ndarray,
    patient: np.ndarray,
    design: np.ndarray | None = None,
    site: np.ndarray | None = None,
    seed: int = 0,
    n_permutations: int = N_PERMUTATIONS,
) -> Spectrum:
    """Compare patients with controls, and their difference with that between permuted groups.

    Parameters
    ----------
    regions : ndarray of shape (people, regions)
        Complete, in any unit.
    patient : ndarray of bool
        True for patients.
    design : ndarray of shape (people, columns), optional
        Covariates as numbers, without a constant.
    site : ndarray of shape (people,), optional
        People are permuted within sites that have both groups; other sites are excluded.
    seed : int
        Seed of the permutations.
    n_permutations : int
        Number of permutations.

    Raises
    ------
    NotTestable
        With too few people.
    """
    rng = np.random.default_rng([seed, len(patient)])
    regions, patient, design, site = _comparable(regions, patient, design, site)
    spread, shift = _Spread.of(regions, patient, design, site), _Shift.of(regions, patient, design, site)
    eigenvalues, correlation = spread.eigenvalues(spread.labels), shift.correlation(shift.labels)
    permuted = [_permuted(spread.labels, spread.blocks, rng) for _ in range(n_permutations)]
    null = np.stack(list(side_by_side(spread.eigenvalues, permuted)))
    shifts = [shift.correlation(_permuted(shift.labels, shift.blocks, rng)) for _ in range(n_permutations)]
    first, second = np.log(np.append(eigenvalues[0], null[:, 0])), np.array([correlation, *shifts])
    largest = np.maximum(_standardised(first), _standardised(second))
    return Spectrum(
        eigenvalues,
        null,
        float(np.quantile(null[:, 0], 1 - LEVEL)),
        correlation,
        second[1:],
        float(patient.mean()),
        spread.held_out(rng),
        # Shares of permutations, including the data (which come first), that are at least as large as the data.
        *(float((values >= values[0]).mean()) for values in (largest, first, second)),
    )


def _standardised(values: np.ndarray) -> np.ndarray:
    """Standardise by the mean and sd of all values, including the data's, so that permutations stay exchangeable."""
    return (values - values.mean()) / max(values.std(), 1e-12)


def _comparable(
    regions: np.ndarray, patient: np.ndarray, design: np.ndarray | None, site: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return people of sites with both groups, outliers drawn in by site, and covariates with a constant per site."""
    as_measured = site is not None  # otherwise covariates are removed already
    site = np.zeros(len(patient), int) if site is None else np.unique(site, return_inverse=True)[1]
    both = np.isin(site, np.intersect1d(site[patient], site[~patient]))
    if not both.any():
        raise NotTestable("no site has both controls and patients")
    regions, patient, site = regions[both], patient[both], site[both]
    design = np.empty((len(patient), 0)) if design is None else design[both]
    columns, even = np.column_stack([site[:, None] == np.unique(site), design]), np.empty(regions.shape)
    if as_measured:  # people must not be drawn in because of their covariates
        regions = _unexplained(regions, columns)
    for place in np.unique(site):
        even[site == place] = drawn_in(regions[site == place])
    return even, patient, columns, site


def drawn_in(regions: np.ndarray) -> np.ndarray:
    """Standardise regions robustly and draw outlying people in, to the edge of where others are.

    Labels are not used.
    """
    middle = np.median(regions, axis=0)
    away = regions - middle
    sd = 1.4826 * np.median(np.abs(away), axis=0)
    away = away / np.where(sd > 0, sd, np.maximum(regions.std(axis=0), 1e-12))
    distance = np.sqrt((away**2).mean(axis=1))
    usual = np.median(distance)
    most = usual + _FAR * 1.4826 * np.median(np.abs(distance - usual))
    return away * np.minimum(1, most / np.maximum(distance, 1e-12))[:, None]


def _basis(columns: np.ndarray) -> np.ndarray:
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, : _rank(values)]


def _unexplained(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return residuals, rescaled to the variance of the errors."""
    basis = _basis(columns)
    return (rows - basis @ (basis.T @ rows)) * np.sqrt(len(rows) / max(len(rows) - basis.shape[1], 1))


def _rotated(columns: np.ndarray, values: np.ndarray, *, one_site: bool, many: int = 5000) -> np.ndarray:
    """Rotate values ``(people, …)`` into the space orthogonal to some columns → ``(people − rank, …)``.

    By a matrix of people by people, or by reflections, which take no memory: with `many` people, and with several
    sites, because each row is then mostly the person at the same place from the end.
    """
    if one_site and len(columns) < many:
        left, sizes, _ = np.linalg.svd(columns, full_matrices=True)
        return left[:, _rank(sizes) :].T @ values
    (reflected, scales), triangle, _ = qr(columns, mode="raw", pivoting=True, check_finite=False)
    rank = _rank(np.abs(np.diag(triangle)))
    return dormqr("L", "T", reflected[:, :rank], scales[:rank], values, 64 * values.shape[1])[0][rank:]


def _rank(sizes: np.ndarray) -> int:
    return int((sizes > 1e-9 * max(sizes.max(initial=0), 1e-12)).sum())


def _permuted(labels: np.ndarray, blocks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Permute rows of `labels` within blocks."""
    # The k-th row of a block gets the k-th of the block's rows in random order.
    places, order = np.lexsort([blocks]), np.lexsort([rng.random(len(blocks)), blocks])
    new = np.empty_like(labels)
    new[places] = labels[order]
    return new


class _Spread(NamedTuple):
    """Rows of both groups, each group's orthogonal to its own mean and covariates, and the people to permute.

    With one site, the rows are permuted. With several, where rows mix people of all sites, residuals of both groups are
    permuted, and each group's own covariates are removed every time; with many people, by sums of products.
    """

    rows: np.ndarray
    row_labels: np.ndarray  # of bool: True for patients
    different: np.ndarray  # of bool: regions whose means differ; rows, orthogonal to means, do not show this
    people: np.ndarray
    labels: np.ndarray
    design: np.ndarray
    blocks: np.ndarray  # sites
    products: np.ndarray  # of the columns of design and people, summed over people; empty unless there are many people

    @classmethod
    def of(
        cls, regions: np.ndarray, patient: np.ndarray, design: np.ndarray, site: np.ndarray, many: int = 5000
    ) -> Self:
        one_site = len(set(site)) == 1
        parts = [_rotated(design[own], regions[own], one_site=one_site) for own in (~patient, patient)]
        rows, labels = np.concatenate(parts), np.repeat([False, True], [len(part) for part in parts])
        if min(labels.sum(), (~labels).sum()) < _FEWEST_ROWS:
            raise NotTestable("too few people remain in a group after adjustment for covariates")
        different = np.abs(_differences(regions, patient, design)) > DIFFERENT
        people, own, columns, blocks = rows, labels, np.empty((len(rows), 0)), np.zeros(len(rows), int)
        if not one_site:
            people, own, columns, blocks = (
                _unexplained(regions, np.column_stack([design, patient])),
                patient,
                design,
                site,
            )
        products = np.empty((0, 0))
        if len(people) >= many:
            columns = _basis(columns)
            both = np.column_stack([columns, people])
            products = both.T @ both
        return cls(rows, labels, different, people, own, columns, blocks, products)

    def eigenvalues(self, labels: np.ndarray) -> np.ndarray:
        """Return the largest variances of patients relative to controls."""
        if len(self.products):
            return _largest(*self._covariances(labels), _KEPT)[0]
        patients, controls = (_unexplained(self.people[own], self.design[own]) for own in (labels, ~labels))
        return _directions(patients, controls, _KEPT)[0]

    def _covariances(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the covariances of patients and controls, each adjusted for covariates, the controls' also shrunk."""
        own = np.column_stack([self.design[labels], self.people[labels]])
        patients, n_patients = own.T @ own, int(labels.sum())
        sick = _left(patients, self.design.shape[1], n_patients)[0]
        controls, effects = _left(self.products - patients, self.design.shape[1], len(labels) - n_patients)
        squares = np.empty(len(labels))
        for start in range(0, len(labels), 4096):
            part = slice(start, start + 4096)
            squares[part] = ((self.people[part] - self.design[part] @ effects) ** 2).sum(axis=1)
        lengths = squares[~labels] * (np.trace(controls) / squares[~labels].mean())
        return sick, shrunk_covariance(controls, ledoit_wolf_share(controls, lengths))

    def held_out(self, rng: np.random.Generator) -> np.ndarray:
        """Return the log ratio of the variances of held-out rows in each direction, in standard errors."""
        if self.different.any():
            directions = self._held_out(self.different, rng)
            if directions[0] > _FOUND_AGAIN:
                return directions
        return self._held_out(None, rng)

    def _held_out(self, changed: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
        """Return the same for directions in which only the `changed` regions change, or for all directions."""
        rows, labels, ratios = self.rows, self.row_labels, []
        n_directions = min(_DIRECTIONS, rows.shape[1] if changed is None else int(changed.sum()))
        for _ in range(_REPEATS):
            fold = np.empty(len(labels), int)
            for group in (labels, ~labels):
                fold[group] = rng.permutation(int(group.sum())) % _FOLDS
            squares = np.zeros((2, n_directions))
            for one in range(_FOLDS):
                seen = fold != one
                directions = _directions(rows[seen & labels], rows[seen & ~labels], n_directions, changed)[1]
                squares += [((rows[~seen & group] @ directions) ** 2).sum(axis=0) for group in (labels, ~labels)]
            ratios.append(np.log(squares[0] / labels.sum()) - np.log(squares[1] / (~labels).sum()))
        return np.mean(ratios, axis=0) / np.sqrt(2 / labels.sum() + 2 / (~labels).sum())


def _differences(regions: np.ndarray, patient: np.ndarray, design: np.ndarray) -> np.ndarray:
    """Return how much patients differ from controls in each region, in standard errors, given covariates and sites."""
    columns = np.column_stack([patient, design]).astype(float)
    inverse = np.linalg.pinv(columns)
    coefficients = inverse @ regions
    squares = ((regions - columns @ coefficients) ** 2).sum(axis=0)
    errors = np.sqrt(squares / max(len(columns) - np.linalg.matrix_rank(columns), 1) * (inverse[0] ** 2).sum())
    return coefficients[0] / np.maximum(errors, 1e-12)


def _directions(
    patients: np.ndarray, controls: np.ndarray, number: int, changed: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest variances of patients relative to controls, and their directions.

    Of all directions, or of Σ⁻¹m for maps m in which only the `changed` regions change; Σ is the controls' covariance.
    """
    healthy = ledoit_wolf(controls, assume_centered=True)[0]
    return _largest(patients.T @ patients / len(patients), healthy, number, changed)


def _largest(
    sick: np.ndarray, healthy: np.ndarray, number: int, changed: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    if changed is not None:
        weights = np.linalg.inv(healthy)[:, changed]
        sick, healthy = weights.T @ sick @ weights, weights[changed]
    last = len(healthy) - 1
    wanted = (max(0, last + 1 - number), last)
    values, vectors = eigh(sick, healthy, subset_by_index=wanted)
    return values[::-1], (vectors if changed is None else weights @ vectors)[:, ::-1]


def _left(products: np.ndarray, n_columns: int, n_people: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance of `_unexplained` residuals, from sums of products with the columns, and the effects."""
    values, vectors = np.linalg.eigh(products[:n_columns, :n_columns])
    real = values > 1e-10 * values.max(initial=0)
    crossed = vectors[:, real].T @ products[:n_columns, n_columns:]
    left = products[n_columns:, n_columns:] - crossed.T @ (crossed / values[real, None])
    return left / max(n_people - int(real.sum()), 1), vectors[:, real] @ (crossed / values[real, None])


class _Shift(NamedTuple):
    """Ridge regression of the group on regions, both orthogonal to the covariates."""

    left: np.ndarray  # left singular vectors of the regions
    weighted: np.ndarray  # the same, shrunk
    own: np.ndarray  # weight of each row in its own prediction
    labels: np.ndarray  # the group, as a number
    blocks: np.ndarray

    @classmethod
    def of(cls, regions: np.ndarray, patient: np.ndarray, design: np.ndarray, site: np.ndarray) -> Self:
        rotated = _rotated(design, np.column_stack([regions, patient]), one_site=len(set(site)) == 1)
        rows, group, blocks = rotated[:, :-1], rotated[:, -1], site[-len(rotated) :]
        if len(rows) < 2 * _FEWEST_ROWS:
            raise NotTestable("too few people remain after adjustment for covariates")
        left, values, _ = np.linalg.svd(rows, full_matrices=False)
        weighted = left * (values**2 / (values**2 + (values**2).mean()))
        return cls(left, weighted, (weighted * left).sum(axis=1), group, blocks)

    def correlation(self, labels: np.ndarray) -> float:
        """Correlate each row's group with its leave-one-out prediction."""
        predicted = (self.weighted @ (self.left.T @ labels) - self.own * labels) / (1 - self.own)
        return float(np.corrcoef(predicted, labels)[0, 1])
