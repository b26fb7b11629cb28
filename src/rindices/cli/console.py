"""What is shown: sentences, or JSON lines."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rindices.errors import counted, listed

if TYPE_CHECKING:
    from rindices.cohort import Cohort

# What is shown holds ids and names of the user: neither markup nor emoji codes such as :x: are meant by them.
console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
_json_lines = False


def set_output(*, quiet: bool = False, log_json: bool = False) -> None:
    """Choose between sentences, nothing but errors, and one JSON object a line."""
    global _json_lines
    _json_lines = log_json
    console.quiet = quiet or log_json


def log(event: str, **fields: Any) -> None:
    """Write a line of JSON, where they are asked for."""
    if _json_lines:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        sys.stdout.write(json.dumps({"time": moment, "event": event} | fields, ensure_ascii=False, default=str) + "\n")
        sys.stdout.flush()


def has_json_lines() -> bool:
    """Whether a line of JSON is wanted for each event."""
    return _json_lines


def describe_cohort(cohort: Cohort, most_names: int = 250) -> None:
    """Say who and what was read."""
    labels = f"{', '.join(cohort.control_labels)} against {', '.join(cohort.patient_labels)}"
    people = [counted(n, name) for n, name in ((cohort.n_controls, "control"), (cohort.n_patients, "patient"))]
    people += [counted(cohort.n_other, "other person", "other people")] if cohort.n_other else []
    console.print(f"Read {cohort.source}: {', '.join(people)} ({labels}).")
    console.print(f"{counted(cohort.features.shape[1], 'region')}: {listed(cohort.features.columns, most_names)}.")
    console.print(f"Covariates removed: {listed(cohort.covariates.columns, 20) or 'none'}.")
    log("table", source=cohort.source, controls=cohort.n_controls, patients=cohort.n_patients, others=cohort.n_other)
    warn(cohort.warnings)


def describe_run(summary: dict[str, Any], out: Path, cohort: Cohort, *, report: bool = True) -> None:
    """Say what came out and where it is; the last line is the status."""
    value = summary["agreement"]["pattern_agreement"]
    used = f"{summary['members_used']} of {counted(summary['repetitions'], 'repetition')}"
    console.print(summary["search"]["reason"])
    agreement = "unknown with a single one" if math.isnan(value) else f"{value:.3f} (0.5 is chance, 1 is perfect)"
    console.print(f"Used {used} at step {summary['step']:,}; the agreement of all sound repetitions is {agreement}.")
    warn(warning for warning in summary["warnings"] if warning not in cohort.warnings)
    if summary["reliable"]:
        console.print(f"Reliable: {summary['reliable_reason']}")
    else:
        console.print(f"Not reliable: {summary['reliable_reason']} Do not interpret these R-indices.", style="bold red")
    describe_places(out, report=report)
    kept = ("n_patterns", "agreement", "reliable", "reliable_reason", "seconds")
    log("done", status="done", exit_code=0, out=str(out), **{name: summary[name] for name in kept})
    console.print(f"Done in {summary['seconds']:.0f} s.", style="green")


def describe_places(out: Path, *, report: bool = True) -> None:
    """Say where the results are."""
    places = {"R-indices": "r_indices.csv", "Patterns": "patterns.csv", "Model": "model.safetensors"}
    places |= {"Picture": "r_indices.png"} | ({"Report": "report.html"} if report else {})
    for name, file in places.items():
        console.print(f"{name + ':':<11} {out / file}")


def warn(sentences: Iterable[str]) -> None:
    """Show what there is to look at."""
    for sentence in sentences:
        console.print(f"Warning: {sentence}", style="yellow")
        log("warning", message=sentence)
