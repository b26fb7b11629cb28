"""From a run folder to one HTML file: pictures, tables and sentences for the template."""

import base64
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from rindices import plots
from rindices.files import atomic_file
from rindices.report.read import AGREEMENT, RunResults, read_run

TOP_REGIONS = 12
GROUP_NAMES = {"control": "Controls", "patient": "Patients", "other": "Others"}


class Picture(NamedTuple):
    """An image inside the page, and the same in words."""

    source: str
    alt: str


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Write the report of a run as one HTML file that needs nothing else, and return its path.

    Parameters
    ----------
    folder
        A run folder with ``r_indices.csv``, ``patterns.csv``, ``selection.csv``, ``summary.json`` and ``run.toml``.
    out
        The file to write; ``report.html`` in the run folder if not given.

    Raises
    ------
    ValueError
        If a file of the run folder is missing or damaged; the message names it and says what to do.

    Examples
    --------
    >>> from pathlib import Path
    >>> write_report(Path("no-such-run"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: The run folder no-such-run does not exist. Give the folder of a finished run, ...
    """
    folder = Path(folder)
    page = _render(read_run(folder))
    path = folder / "report.html" if out is None else Path(out)
    with atomic_file(path) as beside:
        # A name may hold half a character (a lone surrogate), which no file can.
        beside.write_bytes(page.encode("utf-8", errors="replace"))
    return path


def _render(results: RunResults) -> str:
    files = resources.files("rindices.report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["thousands"] = lambda number: f"{number:,}"
    template = environment.from_string(files.joinpath("template.html.j2").read_text(encoding="utf-8"))
    style = Markup(files.joinpath("style.css").read_text(encoding="utf-8"))  # our own file, not the user's text
    return template.render(style=style, **_contents(results))


def _contents(results: RunResults) -> dict[str, Any]:
    summary = results.summary
    used = summary.get("members_used")
    return {
        "summary": summary,
        "n_other": summary.get("n_other") or 0,
        "control_labels": _joined(summary.get("control_labels")),
        "patient_labels": _joined(summary.get("patient_labels")),
        "reliable_reason": summary.get("reliable_reason") or "",
        "recovery": _recovery(results),
        "agreement": _agreement(results),
        "distributions": _distributions(results),
        "groups": _group_table(results),
        "pairs": _pairs(results),
        "patterns": [_pattern(results, number) for number in range(1, results.n_patterns + 1)],
        "members_used": len(used) if isinstance(used, list) else used,
        "members_left_out": summary.get("members_left_out") or [],
        "spreads": _spreads(results),
        "settings": _settings(summary),
        "versions": sorted((summary.get("versions") or {}).items()),
        "run_toml": results.settings,
    }


def _picture(figure: Figure, alt: str) -> Picture:
    code = base64.b64encode(plots.figure_svg(figure).encode("utf-8")).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{code}", alt)


def _number(value: Any, digits: int = 2, sign: str = "") -> str:
    if pd.isna(value):
        return "–"
    # Adding zero turns a rounded "-0.00" into "0.00"; the true minus is read aloud, a hyphen may not be.
    return f"{round(value, digits) + 0.0:{sign}.{digits}f}".replace("-", "−")


def _joined(values: Any) -> str:
    return ", ".join(str(value) for value in values) if isinstance(values, list) else str(values or "")


def _recovery(results: RunResults) -> dict[str, Any] | None:
    if results.truth is None:
        return None
    found = results.summary["recovery"]
    known = results.truth.notna().all(axis=1) & (results.r_indices["group"] == "patient")
    scores = results.r_indices.loc[known, [f"r{place + 1}" for place in range(results.n_patterns)]]
    per_pattern = [float(value) for value in found["per_pattern"]]
    figure = plots.recovery(results.truth[known], scores, per_pattern)
    values = ", ".join(f"pattern {place + 1}: {value:.3f}" for place, value in enumerate(per_pattern))
    return {
        "picture": _picture(figure, f"Known severity against R-index in patients. Concordance, {values}."),
        "concordance": _number(float(found["pattern_concordance"]), 3),
    }


def _agreement(results: RunResults) -> dict[str, Any] | None:
    chosen = results.selection[results.selection["chosen"]].iloc[0]
    if chosen[list(AGREEMENT)].isna().all():
        return None
    rows = [(name.replace("_", " ").capitalize(), _number(chosen[name], 3)) for name in AGREEMENT]
    values = ", ".join(f"{name} {value}" for name, value in rows)
    step = f"{int(chosen['step']):,}"
    alt = f"Agreement between trainings over the steps of training. At the chosen step {step}: {values}."
    picture = _picture(plots.agreement_over_training(results.selection), alt)
    return {"rows": rows, "step": step, "n_models": int(chosen["n_models"]), "picture": picture}


def _distributions(results: RunResults) -> Picture:
    figure = plots.r_index_distributions(results.r_indices)
    return _picture(figure, "R-indices of each group, one panel per pattern; the table below gives the quartiles.")


def _group_table(results: RunResults) -> list[tuple[str, str, str, list[str]]]:
    rows = []
    for number in range(1, results.n_patterns + 1):
        for group, name in GROUP_NAMES.items():
            values = results.r_indices.loc[results.r_indices["group"] == group, f"r{number}"].dropna()
            if len(values):
                quartiles = [_number(value) for value in values.quantile([0.25, 0.5, 0.75])]
                rows.append((f"R{number}", name, f"{len(values):,}", quartiles))
    return rows


def _pairs(results: RunResults) -> Picture | None:
    if results.n_patterns < 2:
        return None
    figure = plots.r_index_pairs(results.r_indices)
    return _picture(figure, "Each pair of R-indices against each other: patients as dots, controls as faint crosses.")


def _pattern(results: RunResults, number: int) -> dict[str, Any]:
    rows = results.patterns[results.patterns["pattern"] == number]
    rows = rows.loc[rows["change_sd"].abs().sort_values(ascending=False, kind="stable").index].head(TOP_REGIONS)
    first = rows.iloc[0]
    alt = (
        f"Bars of the regions that change most in pattern {number}; the strongest is {first['region']} "
        f"with {_number(first['change_sd'], 2, '+')} sd of controls. The table has all values."
    )
    table = [
        (row.region, _number(row.change_sd, 2, "+"), _number(row.spread_sd), _number(row.change_percent, 1, "+"))
        for row in rows.itertuples()
    ]
    picture = _picture(plots.strongest_regions(results.patterns, TOP_REGIONS, only=number), alt)
    return {"number": number, "rows": table, "picture": picture}


def _spreads(results: RunResults) -> list[tuple[str, str]]:
    known = {f"R{n}": results.r_indices[f"r{n}_sd"].dropna() for n in range(1, results.n_patterns + 1)}
    return [(name, _number(values.median(), 3)) for name, values in known.items() if len(values)]


def _settings(summary: dict[str, Any]) -> list[tuple[str, str]]:
    weights = summary.get("weights") or {}
    rows = [
        ("Table", summary.get("source")),
        ("Table's SHA-256", summary.get("input_sha256")),
        ("Labels of controls", _joined(summary.get("control_labels"))),
        ("Labels of patients", _joined(summary.get("patient_labels"))),
        ("Covariates removed", _joined(summary.get("covariates")) or "none"),
        ("Unit of the measures", summary.get("unit")),
        ("Preset", summary.get("preset")),
        *((f"Weight of {name.replace('_', ' ')}", value) for name, value in weights.items()),
        ("Repetitions", summary["repetitions"]),
        ("Training steps", summary.get("step")),
        ("Seed", summary.get("seed")),
        ("Device", summary.get("device")),
        ("Computing time", _duration(summary.get("seconds"))),
    ]
    return [(name, str(value)) for name, value in rows if value not in (None, "")]


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{value} {unit}" for value, unit in parts if value) or "under 1 s"
