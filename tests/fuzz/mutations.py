"""Damage to bytes: what disks, transfers, editors and people with bad intentions do to any file."""

import numpy as np

_TELLING = [b"\x00", b"\xff", b'"', b"'", b",", b";", b"\t", b"\n", b"\r", b"\\", b" ", b"{", b"[", b"-", b"9", b"e"]


def chance(rng: np.random.Generator, share: float) -> bool:
    """Say yes in this share of cases."""
    return bool(rng.random() < share)


def pick(rng: np.random.Generator, options):
    """Return one of several."""
    return options[int(rng.integers(len(options)))]


def damaged(content: bytes, rng: np.random.Generator, low: int = 0, high: int | None = None) -> tuple[bytes, str]:
    """Damage bytes between `low` and `high` in one to three ways; return them and the words for it."""
    words = []
    for _ in range(int(rng.integers(1, 4))):
        end = min(len(content), len(content) if high is None else high)
        place, name = int(rng.integers(min(low, end), end + 1)), pick(rng, list(_DAMAGES))
        content = _DAMAGES[name](content, place, rng)
        words.append(f"{name} at {place}")
    return content, ", ".join(words)


def altered(array: np.ndarray, rng: np.random.Generator, kinds: tuple[str, ...]) -> np.ndarray:
    """Return an array of another type among `kinds`, of another shape, or with other numbers."""
    place = np.arange(array.size).reshape(array.shape) == rng.integers(array.size)
    with np.errstate(all="ignore"):
        ways = [
            array.astype(pick(rng, kinds)),
            pick(rng, [array[..., :-1], array[None], array.T, array.ravel(), array[:0]]),
            np.where(place, pick(rng, [np.nan, np.inf, 0.0, -1.0, 1e39, 1e38, 1e-38, 1e300, -1e300]), array),
            array * pick(rng, [0.0, -1.0, np.nan, 1e30, 1e150, 1e300, 1e-300]),
        ]
    return pick(rng, ways)


def _flip(content: bytes, place: int, rng: np.random.Generator) -> bytes:
    return _replaced(content, place, bytes([content[place] ^ (1 << int(rng.integers(8)))])) if content[place:] else b""


def _replaced(content: bytes, place: int, by: bytes) -> bytes:
    return content[:place] + by + content[place + len(by) :]


def _length(rng: np.random.Generator, content: bytes) -> int:
    return int(min(2 ** rng.uniform(0, 9), max(1, len(content) // 4)))


def _repeat(content: bytes, place: int, rng: np.random.Generator) -> bytes:
    return content[:place] + content[place : place + _length(rng, content)] * int(rng.integers(1, 20)) + content[place:]


def _swap(content: bytes, place: int, rng: np.random.Generator) -> bytes:
    size = _length(rng, content)
    first, second = content[place : place + size], content[place + size : place + 2 * size]
    return content[:place] + second + first + content[place + 2 * size :]


_DAMAGES = {
    "bit flipped": _flip,
    "cut": lambda content, place, rng: content[:place],
    "head cut off": lambda content, place, rng: content[place:],
    "inserted": lambda content, place, rng: content[:place] + rng.bytes(_length(rng, content)) + content[place:],
    "sign inserted": lambda content, place, rng: content[:place] + pick(rng, _TELLING) + content[place:],
    "overwritten": lambda content, place, rng: _replaced(content, place, rng.bytes(_length(rng, content))),
    "zeros": lambda content, place, rng: _replaced(content, place, bytes(_length(rng, content))),
    "removed": lambda content, place, rng: content[:place] + content[place + _length(rng, content) :],
    "repeated": _repeat,
    "swapped": _swap,
}
