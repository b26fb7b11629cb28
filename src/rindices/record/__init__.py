"""The run folder: the names and types of its files, and their only writer and reader.

Writing a run
    `check_free` refuses a folder that holds other files; `held` locks it for this process and yields whether an
    earlier run of the same `RunSettings` is resumed; `write_tables` writes `Results`, analyses, selection and truth;
    `write_summary` comes last, with a `Summary` whose status is `DONE`; `keep_trained` keeps the models of the journal
    and removes the rest; `discard` removes a run that never began. `more_of` returns what is added to a run.

    Fields of a `Summary` that were not given are not written. It is immutable; ``summary.updated(...)`` returns a
    changed copy. NaN becomes null.

Reading a run
    `status_of` and `is_complete` inspect a folder; `read_summary` reads a run in any state; `read_settings` reads a
    ``run.toml`` anywhere; `read_run` reads all of a finished run and refuses files that do not belong together.

Refusals raise `rindices.problems.InputError`, which names the file, the problem and the remedy.
"""

from rindices.record.documents import (
    DONE,
    FAILED,
    SETTINGS,
    SUMMARY,
    UNFINISHED,
    Document,
    Recovery,
    RunSettings,
    RunTable,
    Summary,
    damaged,
    in_words,
    read_settings,
    read_summary,
    write_summary,
)
from rindices.record.run_folder import (
    BIDS,
    BRAIN,
    FIGURES,
    JOURNAL,
    MODEL,
    PATTERNS,
    PEOPLE,
    PICTURE,
    R_INDICES,
    REPORT,
    RESULTS,
    SELECTION,
    TRAINED,
    VOXELWISE,
    Z_SCORES,
    check_free,
    discard,
    held,
    is_complete,
    keep_trained,
    locked,
    more_of,
    run_around,
    shown_setting,
    status_of,
    worker_of,
)
from rindices.record.run_tables import AGREEMENTS, Results, Run, read_run, sha256_of, write_tables

__all__ = [
    "AGREEMENTS",
    "BIDS",
    "BRAIN",
    "DONE",
    "FAILED",
    "FIGURES",
    "JOURNAL",
    "MODEL",
    "PATTERNS",
    "PEOPLE",
    "PICTURE",
    "REPORT",
    "RESULTS",
    "R_INDICES",
    "SELECTION",
    "SETTINGS",
    "SUMMARY",
    "TRAINED",
    "UNFINISHED",
    "VOXELWISE",
    "Z_SCORES",
    "Document",
    "Recovery",
    "Results",
    "Run",
    "RunSettings",
    "RunTable",
    "Summary",
    "check_free",
    "damaged",
    "discard",
    "held",
    "in_words",
    "is_complete",
    "keep_trained",
    "locked",
    "more_of",
    "read_run",
    "read_settings",
    "read_summary",
    "run_around",
    "sha256_of",
    "shown_setting",
    "status_of",
    "worker_of",
    "write_summary",
    "write_tables",
]
