"""The words of a verdict, wherever it is shown: on the screen, in the report, in a BIDS derivative."""

from __future__ import annotations

from rindices.settings import State

# In a sentence, and what follows from it; the reason stands between them. None: was not judged.
SENTENCES: dict[State | None, tuple[str, str]] = {
    "reproducible": ("The patterns are reproducible.", ""),
    "confounded": (
        "The patterns are reproducible, but the groups also differ in something else.",
        "Do not interpret them as disease before that is ruled out.",
    ),
    "not reproducible": ("The patterns are not reproducible.", "Do not interpret them."),
    "not testable": (
        "Whether the patterns are reproducible cannot be told.",
        "Do not interpret them before that is settled.",
    ),
    None: ("Whether the patterns are reproducible was not judged.", ""),
}

# Whether patterns are reliable.
IN_SHORT: dict[State | None, str] = {
    "reproducible": "yes",
    "confounded": "yes, but patients and controls also differ in something else",
    "not reproducible": "no",
    "not testable": "cannot be told",
    None: "not judged",
}
