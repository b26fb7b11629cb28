"""What other programs leave behind for each person: FreeSurfer and FastSurfer by subject, others by volumes.

Here is what every reader returns, whichever program wrote it; each reader has a file of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Measured:
    """One person, or one scan of a person.

    Attributes
    ----------
    person
        The id.
    values
        Measures by column: regions, head size and quality.
    program
        What wrote them, with its version where it is known.
    where
        The file or folder.
    problem
        Why the person should not be used as it is, or nothing.
    missing
        Files that are not there.
    session
        The visit, in longitudinal folders.
    """

    person: str
    values: Mapping[str, float]
    program: str
    where: Path
    problem: str = ""
    missing: tuple[str, ...] = ()
    session: str = ""


@dataclass(frozen=True)
class Found:
    """Everybody in a folder, the unit of volumes, and what there is to say about all of them."""

    people: tuple[Measured, ...]
    unit: str
    notes: tuple[str, ...] = field(default=())


def each(read: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> list[Result]:
    """Read several files at once: network drives answer late, so threads help where processors are idle."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(read, items))
