"""How columns of measures hang together: left and right, sums and their parts, copies in another unit."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SIDES = tuple(
    (re.compile(left, re.IGNORECASE), right) for left, right in (("left", "right"), ("lh", "rh"), ("l", "r"))
)
_MOST_PEOPLE = 2000  # that are looked at
_MORE_PEOPLE = 20  # than columns: with fewer, any column is a combination of others
_LEFT_OVER = 0.01  # share of a column's sd; the best predicted of 164 real volumes keeps a quarter of it
_FAR = 5.0  # times the usual distance from the middle
_SAME = 0.02  # by which the weights of a sum's parts may differ


def pairs_of_sides(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the regions that are there on both sides: names that differ by left and right, lh and rh, or l and r.

    Examples
    --------
    >>> pairs_of_sides(["Lthal", "Rthal", "ctx-lh-insula", "ctx-rh-insula", "vermis"])
    [('Lthal', 'Rthal'), ('ctx-lh-insula', 'ctx-rh-insula')]
    """
    every = set(names)
    pairs: dict[str, str] = {}
    for name in names:
        for right, found in ((right, found) for left, right in _SIDES for found in left.finditer(name)):
            word = right.upper() if found[0].isupper() else right.title() if found[0].istitle() else right
            other = name[: found.start()] + word + name[found.end() :]
            if other in every:
                pairs.setdefault(name, other)
    return list(pairs.items())


def copies_and_sums(names: Sequence[str], values: NDArray[np.float64]) -> dict[int, tuple[int, ...]]:
    """Return which columns (of people × columns) are sums or means of others, or multiples of one: its parts.

    Sums of left and right are found among any number of people, other sums only where people are more than columns.

    Examples
    --------
    >>> block = np.random.default_rng(0).normal(5, 1, (60, 3))
    >>> copies_and_sums(["a", "b", "c", "both"], np.column_stack([block, block[:, 0] + block[:, 2]]))
    {3: (0, 2)}
    """
    complete = values[np.isfinite(values).all(axis=1)][:_MOST_PEOPLE]
    if len(complete) < _MORE_PEOPLE or not len(names):
        return {}
    distance = np.abs(complete - np.median(complete, axis=0)).sum(axis=1)
    complete = complete[distance <= _FAR * np.median(distance)]  # who is in another unit would make columns alike
    centred = complete - complete.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    unit = centred / np.where(spread > 0, spread, np.inf)
    # 1 - r² is the share of the variance that is left over.
    later, earlier = np.nonzero(np.tril(unit.T @ unit, -1) > 1 - _LEFT_OVER**2 / 2)
    found: dict[int, tuple[int, ...]] = dict(zip(later.tolist(), zip(earlier.tolist()), strict=True))
    found |= {place: pair for place, pair in _sums_of_sides(names, centred, spread).items() if place not in found}
    # A sum is larger than its parts; several means, which are not, go with the others better than their parts do.
    for height in (np.abs(np.median(complete, axis=0)), (unit.T @ unit).sum(axis=0)):
        by_height = np.argsort(height, kind="stable").tolist()
        order = [place for place in by_height if spread[place] and place not in found][: len(complete) - _MORE_PEOPLE]
        found |= _sums_in_order(order, centred, spread)
    return found


def _sums_in_order(
    order: Sequence[int], centred: NDArray[np.float64], spread: NDArray[np.float64]
) -> dict[int, tuple[int, ...]]:
    """Return the columns that are sums or means of columns before them in the order."""
    left_over = np.abs(np.diag(np.linalg.qr(centred[:, order], mode="r")))
    found, plain = dict[int, tuple[int, ...]](), list[int]()
    for place, rest in zip(order, left_over.tolist(), strict=True):
        plain.append(place)
        if rest <= _LEFT_OVER * spread[place] and len(plain) > 2:
            weights, *_ = np.linalg.lstsq(centred[:, plain[:-1]], centred[:, place])
            if sum_of := _whole_and_parts(weights):
                whole, parts = sum_of
                found[plain[whole]] = tuple(plain[part] for part in parts)
                plain.pop(whole)
    return found


def _whole_and_parts(weights: NDArray[np.floating]) -> tuple[int, list[int]] | None:
    """Return the place of a sum or mean among weighted columns and the one after them that they make up, and its parts.

    It is the last one, made of equal parts; or one of the others: a mean is smaller than its largest part, which is n
    times the mean less the other parts. Other combinations, such as shares that add up to 1, are none.
    """
    largest, last = int(weights.argmax()), len(weights)
    is_part = weights > weights[largest] / 2
    if is_part.sum() > 1:
        alike = np.abs(np.where(is_part, weights - weights[largest], weights)).max() < _SAME * weights[largest]
        return (last, np.flatnonzero(is_part).tolist()) if alike else None
    is_part = np.abs(weights + 1) < _SAME
    neither = ~is_part & (np.arange(last) != largest)
    if weights[largest] < 2 - _SAME or not is_part.any() or np.abs(weights[neither]).max(initial=0.0) > _SAME:
        return None
    return largest, [*np.flatnonzero(is_part).tolist(), last]


def _sums_of_sides(
    names: Sequence[str], centred: NDArray[np.float64], spread: NDArray[np.float64]
) -> dict[int, tuple[int, ...]]:
    """Return the columns that are sums or means of a left and a right one."""
    place_of, found = {name: place for place, name in enumerate(names)}, dict[int, tuple[int, ...]]()
    products = centred.T @ centred
    for left, right in pairs_of_sides(names):
        pair = place_of[left], place_of[right]
        both = products[pair[0]] + products[pair[1]]
        for times in (1.0, 0.5):
            rest = spread**2 - 2 * times * both + times**2 * both[[*pair]].sum()  # what is left of squares
            same = np.flatnonzero((rest <= (_LEFT_OVER * spread) ** 2) & (spread > 0))
            found.update(dict.fromkeys([place for place in same.tolist() if place not in pair], pair))
    return found
