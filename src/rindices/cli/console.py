"""What is shown: sentences, JSON lines, progress; and settings, written as the options that they are here."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from rindices.problems import Remedy, Text, Value, counted, duration, listed, remedies_in, without_people, worded
from rindices.settings import option_name

if TYPE_CHECKING:
    from rindices.cohort import Cohort
    from rindices.record import Summary
    from rindices.training.execution import Progress

# What is shown holds ids and names of the user: neither markup nor emoji codes such as :x: are meant by them.
console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
_json_lines = False
_LINE_SECONDS, _JSON_SECONDS = (
    30.0,
    2.0,
)  # between lines of progress without a terminal; programs read JSON
_MOST_NAMES = 20  # in a sentence; more stand in a line of their own
_VERDICT_STYLES = {
    "reproducible": "green",
    "weak": "cyan",
    "confounded": "yellow",
    "not found again": "bold red",
    "no difference": "bold",
    "not testable": "magenta",
}
_NOT_NONE = " The absence of reproducible patterns does not mean that there is no difference."


def on_command_line(remedy: Remedy) -> str:
    """Write a setting as an option; names that are too many for a sentence are left to `ready_options`.

    Examples
    --------
    >>> settings = Remedy("drop_missing", True), Remedy("report", False), Remedy("n_patterns", "2-5")
    >>> [on_command_line(one) for one in settings]
    ['--drop-missing', '--no-report', '--patterns 2-5']
    >>> on_command_line(Remedy("exclude", ["lHip", "left amygdala"]))
    "--exclude 'lHip,left amygdala'"
    """
    return _as_option(*(remedy._replace(value="NAMES") if _is_long(remedy) else remedy))


def _is_long(remedy: Remedy) -> bool:
    names = remedy.value
    return isinstance(names, tuple) and len(names) > _MOST_NAMES and not any("," in name for name in names)


def _as_option(name: str, value: Value) -> str:
    word = option_name(name)
    if value is None or isinstance(value, bool):
        return f"--no-{word}" if value is False else f"--{word}"
    if not isinstance(value, tuple):
        return f"--{word} {shlex.quote(str(value))}"
    apart = [one for one in value if "," in one]
    if apart:
        return f"--{word} (first rename {listed(map(repr, apart), 2)}: a comma separates names there)"
    return f"--{word} {shlex.quote(','.join(value))}"


def ready_options(text: Text) -> str:
    """Return a line for each option of a text that has too many names to stand in a sentence."""
    return "".join(f"\n{_as_option(*one)}" for one in remedies_in([text]) if _is_long(one))


def set_output(*, quiet: bool = False, log_json: bool = False) -> None:
    """Choose between sentences, nothing but errors, and one JSON object a line."""
    global _json_lines
    _json_lines = log_json
    console.quiet = quiet or log_json


def log(event: str, **fields: object) -> None:
    """Write a line of JSON, where they are asked for."""
    if _json_lines:
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "event": event} | fields
        typer.echo(json.dumps(line, ensure_ascii=False, default=str))


def warn(sentences: Iterable[Text]) -> None:
    """Show what there is to look at."""
    for sentence in sentences:
        text = worded(sentence, on_command_line)
        console.print(f"Warning: {text}", style="yellow")
        log("warning", message=without_people(text))


def regions_in_words(kinds: Mapping[str, Sequence[str]]) -> str:
    """Return how many regions of each kind there are, with a few names."""
    groups = "; ".join(f"{len(names)} {kind} ({listed(names, 4)})" for kind, names in kinds.items())
    total = counted(sum(map(len, kinds.values())), "region")
    return f"{groups}." if [*kinds] == ["regions"] else f"{total}: {groups}."


def describe_cohort(cohort: Cohort) -> None:
    """Say who and what was read."""
    from rindices.schema.role_guesses import grouped, kinds_of

    labels = f"{', '.join(cohort.control_labels)} against {', '.join(cohort.patient_labels)}"
    people = [counted(n, name) for n, name in ((cohort.n_controls, "control"), (cohort.n_patients, "patient"))]
    people += [counted(cohort.n_other, "other person", "other people")] if cohort.n_other else []
    console.print(f"Read {cohort.source}: {', '.join(people)} ({labels}).")
    names = [str(name) for name in cohort.features.columns]
    console.print(regions_in_words(grouped(names, kinds_of(names, cohort.features.to_numpy()))))
    console.print(f"Covariates removed: {listed(cohort.covariates.columns, 20) or 'none'}.")
    sizes = {"controls": cohort.n_controls, "patients": cohort.n_patients, "others": cohort.n_other}
    log("table", source=cohort.source, regions=len(names), **sizes)
    warn(cohort.messages)


def describe_run(summary: Summary, out: Path, cohort: Cohort, *, report: bool = True) -> None:
    """Say what came out and where it is; the last line is the status."""
    value = summary.agreement.get("pattern_agreement")
    used = f"{summary.members_used} of {counted(summary.repetitions, 'repetition')}"
    console.print(summary.search.reason)
    agreement = "unknown with a single repetition" if value is None else f"{value:.3f} (0.5 is chance, 1 is perfect)"
    console.print(f"Used {used} at step {summary.step:,}; the agreement of all sound repetitions is {agreement}.")
    shown_before = {without_people(worded(warning, on_command_line)) for warning in cohort.messages}
    warn(warning for warning in summary.warnings if warning not in shown_before)
    if summary.separation is not None:
        auc, low, high = summary.separation.auc, summary.separation.low, summary.separation.high
        console.print(
            f"Patients and controls can be distinguished with a cross-validated AUC of {auc:.2f} (95 % interval "
            f"{low:.2f} "
            f"to {high:.2f}; 0.5 is chance).{_NOT_NONE if summary.state == 'not found again' else ''}"
        )
    show_verdict(summary)
    kept = ("n_patterns", "agreement", "verdict", "reliable", "reliable_reason", "seconds")
    end(out, f"Done in {summary.seconds:.0f} s.", report=report, **{name: getattr(summary, name) for name in kept})


def show_verdict(summary: Summary, whose: str = "") -> None:
    """Say whether the patterns are reproducible, why, and what follows from that; green is for a plain yes."""
    headline, advice = summary.verdict_words
    sentences = " ".join(filter(None, [headline, summary.reliable_reason, advice]))
    console.print(f"{whose}{sentences}", style=_VERDICT_STYLES.get(summary.state or "", ""))


def end(out: Path, last: str, *, report: bool, **fields: object) -> None:
    """Say where the results are, and in the last line that all is done."""
    places = {"R-indices": "r_indices.csv", "Patterns": "patterns.csv", "Model": "model.safetensors"}
    places |= {"Picture": "r_indices.png"} | ({"Report": "report.html"} if report else {})
    show_places({name: out / file for name, file in places.items()})
    log("done", status="done", exit_code=0, out=str(out), **fields)
    console.print(last, style="green")


def show_places(places: Mapping[str, Path | None]) -> None:
    """Say where files are, as far as there are any."""
    for name, path in places.items():
        if path is not None:
            console.print(f"{name + ':':<11} {path}")


@contextmanager
def training_bars() -> Iterator[Callable[[Progress], None]]:
    """Give a function that shows each stage of training: steps of all models together, speed, time left.

    Where there is no terminal, it prints a line at times.
    """
    shares = TextColumn("{task.percentage:>3.0f}% {task.fields[note]}")
    columns = (TextColumn("{task.description}"), BarColumn(), shares, TimeRemainingColumn())
    tasks: dict[str, Task] = {}
    last_line = float("-inf")

    def show(progress: Progress) -> None:
        nonlocal last_line
        stage, done, total, resumed = progress
        new = stage not in tasks
        if new:  # what an earlier process did took this one no time
            bars.add_task(stage, total=total, completed=resumed, note="")
            tasks[stage] = bars.tasks[-1]
        elif tasks[stage].finished:
            return
        speed = tasks[stage].speed
        note = f"{speed:,.0f} steps/s" if speed else "(preparing)" if done < total else ""
        bars.update(tasks[stage].id, completed=done, note=note)
        pause = _JSON_SECONDS if _json_lines else _LINE_SECONDS
        due = new or done == total or time.monotonic() - last_line > pause
        if due and (_json_lines or not console.is_terminal):
            last_line = time.monotonic()
            left = tasks[stage].time_remaining
            ahead = f", about {duration(left)} left" if speed and left else ""
            console.print(f"{stage}: {100 * done / max(total, 1):.0f} % {note}{ahead}")
            log("progress", stage=stage, done=done, total=total)

    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        yield show


@contextmanager
def counting_bar(what: str, *, transient: bool = False) -> Iterator[Callable[..., None]]:
    """Give a function that shows what share, or how many of all, are done; `transient` bars are gone in the end."""
    with Bars(console=console, disable=not console.is_terminal, transient=transient) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total=1: bars.update(task, completed=done, total=total)
