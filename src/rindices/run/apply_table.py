"""A model that is there already, applied to a table of new people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rindices import record
from rindices.cohort import People, read_people
from rindices.errors import Value, in_python, worded
from rindices.files import private_folder, write_csv, write_csv_parts
from rindices.interop.muse import MUSE72_NAMES, with_muse72
from rindices.model.file import read_header
from rindices.settings import ApplySettings, Correction, OutputSettings

if TYPE_CHECKING:
    from rindices.estimator import SurrealGAN

__all__ = ["Applied", "apply_table"]


@dataclass
class Applied:
    """What was done.

    Attributes
    ----------
    n_regions
        Of the model.
    n_people, n_rows, n_flagged
        People, their rows, and rows outside what the model was trained on.
    visits
        Whether the rows are visits.
    notes
        Sentences for the user; they name nobody.
    left_out
        Table of people who were left out, if anybody was.
    unreliable
        Why the model's patterns are not reliable; nothing where they are, or where nobody judged.
    """

    n_regions: int = 0
    n_people: int = 0
    n_rows: int = 0
    n_flagged: int = 0
    visits: bool = False
    notes: tuple[str, ...] = ()
    left_out: Path | None = None
    unreliable: str = ""


def apply_table(
    model: Path,
    path: Path,
    out: Path,
    settings: ApplySettings,
    *,
    report: Path | None = None,
    output: OutputSettings,
    progress: Callable[[float], None] | None = None,
    wording: Callable[[str, Value], str] = in_python,
) -> Applied:
    """Score the people of a table, some at a time, and write their R-indices.

    Parameters
    ----------
    model
        A model file.
    path
        A table, or the folder of a BIDS dataset.
    out
        The table to write; it appears whole or not at all.
    settings
        How the table is read.
    report
        A report to write of these people; they are read all at once then.
    output
        How the report is written.
    progress
        Called with the share of the table that is done.
    wording
        How the report mentions settings.
    """
    contract, sums = read_header(model).contract, None
    if contract.features == MUSE72_NAMES:  # of single regions, where the table has those
        sums = partial(with_muse72, exclude=settings.exclude)
        settings = replace(settings, exclude=())
    batches = read_people(path, contract, settings, prepare=sums, progress=progress)
    first = next(batches)  # the table is looked at before the engine is loaded
    from rindices.estimator import load_model
    from rindices.run.findings import r_indices_of, results_of

    fitted, done, left_out = load_model(model), Applied(len(contract.features)), []
    people: Iterator[People] = chain([first], batches)
    if report is not None:
        people = iter([_together([*people])])
    results: list[record.Results] = []

    def scored(batch: People) -> pd.DataFrame:
        done.n_rows += len(batch.features)
        done.n_people += len(batch.features) if batch.first_visit is None else int(batch.first_visit.sum())
        done.visits = done.visits or batch.first_visit is not None
        done.n_flagged += int((batch.flags != "").sum())
        done.notes = tuple(dict.fromkeys([*done.notes, *batch.notes]))
        left_out.extend([batch.left_out] if len(batch.left_out) else [])
        if report is None:
            return r_indices_of(fitted, batch)
        results.append(results_of(fitted, batch))
        return results[0].r_indices

    write_csv_parts(map(scored, people), out)
    reliable, reason = fitted.reliability_
    done.unreliable = reason if reliable is False else ""
    if left_out:
        done.left_out = out.with_name(f"{out.stem}_left_out.csv")
        write_csv(pd.concat(left_out), done.left_out, index=False)
    if report is not None:
        about = record.Summary(
            status=record.UNFINISHED,
            applied=True,
            model={"file": model.name, "sha256": record.sha256_of(model)},
            source=path.name,
            warnings=tuple(worded(note, wording) for note in done.notes),
            clinical=tuple(map(str, first.clinical.columns)),
        )
        _write_report(fitted, results[0], report, output, about)
    return done


def _together(batches: list[People]) -> People:
    """Return the people of all batches as one: a report needs everybody at once."""
    if len(batches) == 1:
        return batches[0]
    whole: dict[str, Any] = {}
    for name in ("features", "covariates", "diagnosis", "group", "flags", "clinical", "visit", "years", "first_visit"):
        parts = [getattr(batch, name) for batch in batches]
        arrays = isinstance(parts[0], np.ndarray)
        whole[name] = None if parts[0] is None else np.concatenate(parts) if arrays else pd.concat(parts)
    notes = tuple(dict.fromkeys(note for batch in batches for note in batch.notes))
    left_out = [batch.left_out for batch in batches if len(batch.left_out)]
    return People(**whole, left_out=pd.concat(left_out) if left_out else pd.DataFrame(), notes=notes)


def _write_report(
    model: SurrealGAN, results: record.Results, out: Path, output: OutputSettings, about: record.Summary
) -> None:
    """Write the report of people whom a model that was there already was applied to."""
    from rindices.report import write_report
    from rindices.run.findings import Roles, analyse
    from rindices.run.plan import versions

    contract = model.contract_
    group = results.r_indices["group"][results.first_visit]
    covariates = tuple(spec.name for spec in contract.covariates)
    known = {
        "status": record.DONE,
        "n_controls": int((group == "control").sum()),
        "n_patients": int((group == "patient").sum()),
        "n_other": int((group == "other").sum()),
        "n_features": len(contract.features),
        "n_patterns": results.scores.shape[1],
        "patterns_chosen_from_data": False,
        "repetitions": len(model.members_),
        "members_used": len(model.members_),
        "reliable": False if model.reliability_[0] is False else None,
        "reliable_reason": model.reliability_[1] or "The model was trained elsewhere.",
        "control_labels": contract.control_labels,
        "patient_labels": contract.patient_labels,
        "covariates": covariates,
        "correction": asdict(model.correction or Correction()),
        "variables": results.kinds,
        "unit": contract.unit,
        "seed": model.seed_,
        "preset": model.preset_.name,
        "subgroup_limits": output.limits,
        "versions": versions(),
    }
    summary = about.updated(**known)
    roles = Roles(covariates, summary.clinical, trained=False)
    with private_folder() as folder:
        record.write_tables(folder, results, analyse(model, results, roles, output.limits))
        record.write_summary(folder, summary)
        write_report(folder, out, show_ids=output.show_ids, figures=output.figures)
