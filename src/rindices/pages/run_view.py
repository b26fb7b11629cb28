"""A run as pages show it: what its verdict allows, whose ids are hidden, and where its figures are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import pandas as pd

from rindices.pages.elements import Gallery, listed
from rindices.pages.privacy import Curtain
from rindices.record import Results, Run, Summary
from rindices.regions import known_regions
from rindices.settings import State

MOST_PEOPLE = 3000  # in the explorer of a report


class VerdictLook(NamedTuple):
    """How a verdict looks: the class of its box, a warning above every figure, and whether results are folded away."""

    colour: str = ""
    strip: str = ""
    folded: bool = False


VERDICT_LOOKS: dict[State | None, VerdictLook] = {
    "reproducible": VerdictLook("good"),
    "confounded": VerdictLook("warnings", "CONFOUNDED: the groups also differ in {}"),
    "weak": VerdictLook("weak", "WEAK: for comparing groups, not individuals"),
    "not found again": VerdictLook("bad", "NOT FOUND AGAIN: do not interpret", folded=True),
    "no difference": VerdictLook("nothing", "NO DIFFERENCE FOUND: do not interpret", folded=True),
    "not testable": VerdictLook("untested", "NOT TESTED: do not interpret", folded=True),
    None: VerdictLook(),
}


def strip_of(summary: Summary) -> str:
    """Return the warning that stands above every figure of a result; none where it can be taken as it is."""
    differing = [row["variable"] for row in summary.balance or () if row["imbalanced"]]
    return VERDICT_LOOKS[summary.state].strip.format(listed(differing[:3]) or "something else")


@dataclass(frozen=True)
class RunView:
    """A run, and how it is shown; every section is made from one.

    Attributes
    ----------
    run
        The run; its texts are without ids where these are hidden.
    gallery
        Draws the figures, and keeps them.
    curtain
        Hides ids in texts.
    show_ids
        Whether people can be looked up by their id.
    variables
        What people are shown with besides their severities.
    most_people
        How many people can be looked at one by one.
    """

    run: Run
    gallery: Gallery
    curtain: Curtain
    show_ids: bool
    variables: Sequence[str]
    most_people: int

    @property
    def results(self) -> Results:
        """The tables of the run."""
        return self.run.results

    @property
    def summary(self) -> Summary:
        """What came of the run."""
        return self.run.summary

    @property
    def analyses(self) -> Mapping[str, pd.DataFrame]:
        """The analyses of the run, by name."""
        return self.run.analyses

    @cached_property
    def region_names(self) -> dict[str, str]:
        """The full name of each region: what the table's dictionary calls it, else what its atlas does."""
        regions = list(map(str, self.results.patterns["region"].unique()))
        known = {name: region.title for name, region in known_regions(regions).items()}
        return {name: name for name in regions} | known | self.summary.region_names


def view_of(
    run: Run, *, show_ids: bool = False, variables: Sequence[str] | None = None, most_people: int = MOST_PEOPLE
) -> RunView:
    """Return a run as pages show it; see `RunView`. Without `variables`, these are the clinical scores."""
    curtain = Curtain({*run.results.people["participant_id"]}, active=not show_ids)
    run = replace(run, summary=curtain.summary(run.summary))
    shown = run.summary.clinical if variables is None else variables
    return RunView(run, Gallery(strip_of(run.summary)), curtain, show_ids, shown, most_people)
