"""The words of a verdict, wherever it is shown: on the screen, in the report, in a BIDS derivative."""

from __future__ import annotations

from rindices.settings import State

# In a sentence, and what follows from it; the reason stands between them. None: was not judged.
SENTENCES: dict[State | None, tuple[str, str]] = {
    "reproducible": ("The patterns are reproducible:", ""),
    "weak": (
        "The patterns are reproducible, but weak:",
        "Compare groups by them; a single person's severity says little.",
    ),
    "confounded": (
        "The patterns are reproducible, but the groups also differ in something else.",
        "Do not interpret them as disease before that is ruled out.",
    ),
    "not found again": (
        "The groups differ, but not in patterns that are found again.",
        "Do not interpret single patterns.",
    ),
    "no difference": ("No difference between patients and controls was found.", "Do not interpret these patterns."),
    "not testable": (
        "Whether there is anything to find could not be tested.",
        "Do not interpret the patterns before that is settled.",
    ),
    None: ("Whether the patterns are reproducible was not judged.", ""),
}

# Whether patterns are reliable.
IN_SHORT: dict[State | None, str] = {
    "reproducible": "yes",
    "weak": "yes, for groups; a single person's severity says little",
    "confounded": "yes, but patients and controls also differ in something else",
    "not found again": "no, though the groups differ",
    "no difference": "no difference between the groups was found",
    "not testable": "could not be tested",
    None: "not judged",
}
