"""Reports after the fit: of a run once more, with scores that came later, and of people a model was applied to."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from rindices.cohort import join_by_id, read_table
from rindices.errors import InputError
from rindices.estimator import SurrealGAN, load_model
from rindices.files import private_folder
from rindices.report import write_report
from rindices.report.consistency import check_together
from rindices.report.summary import read_summary
from rindices.run.findings import FOLDER, LIMITS, Roles, analyse, write_findings
from rindices.run.folder import DONE, SUMMARY, write_json
from rindices.run.results import Results, read_results
from rindices.run.workflow import place
from rindices.settings import Correction

__all__ = ["compare_images", "report_again", "report_of_people"]


def report_again(
    folder: Path,
    out: Path | None = None,
    *,
    clinical: Path | None = None,
    id_column: str = "participant_id",
    visit_column: str = "visit",
    limits: tuple[float, float] | None = None,
    show_ids: bool = False,
    figures: Path | None = None,
) -> tuple[Path, tuple[str, ...]]:
    """Write the report of a run once more, and return its path and what there is to tell.

    Parameters
    ----------
    folder
        A run folder.
    out
        The file to write; ``report.html`` in the folder if not given.
    clinical
        A table of clinical scores, joined by id (and visit, where the run has visits). They become part of the run.
    id_column, visit_column
        Names of these columns in that table.
    limits
        New limits of the subgroups.
    show_ids, figures
        As in `rindices.report.write_report`.
    """
    told: tuple[str, ...] = ()
    summary = read_summary(folder)
    if summary["status"] == DONE and (clinical is not None or limits is not None):
        results = _read_sound(folder, summary)
        if clinical is not None:
            before = tuple(summary.get("clinical") or ())
            results, names, told = _with_scores(results, before, clinical, id_column, visit_column)
            summary["clinical"] = list(dict.fromkeys([*(summary.get("clinical") or []), *names]))
            summary["variables"] = results.kinds
        limits = limits or tuple(summary.get("subgroup_limits") or LIMITS)
        summary["subgroup_limits"] = list(limits)
        roles = Roles(summary.get("covariates") or (), summary.get("clinical") or ())
        tables = analyse(load_model(folder / "model.safetensors"), results, roles, limits)
        results.write(folder)
        write_findings(folder / FOLDER, tables)
        write_json(folder / SUMMARY, summary)
    return write_report(folder, out, show_ids=show_ids, figures=figures), told


def _read_sound(folder: Path, summary: dict[str, Any]) -> Results:
    """Read the tables of a run, and refuse them where they do not belong together."""
    results = read_results(folder, summary.get("variables") or {})
    try:
        check_together(folder, summary, results.r_indices, results.r_indices[results.first_visit])
    except ValueError as error:
        raise InputError(str(error)) from error
    return results


def _with_scores(
    results: Results, clinical: tuple[str, ...], path: Path, id_column: str, visit_column: str
) -> tuple[Results, list[str], tuple[str, ...]]:
    scores = read_table(path, text_columns=(id_column, visit_column))
    has_visits = "visit" in results.r_indices and visit_column in scores
    keys = {"participant_id": id_column} | ({"visit": visit_column} if has_visits else {})
    if id_column not in scores:
        raise InputError(f"{path.name} has no column {id_column!r}.\nName the column with the ids with --id.")
    scores = scores.rename(columns={theirs: ours for ours, theirs in keys.items()})
    # What was corrected for, and who belongs to which group, is the run's and stays as it is.
    taken = {*results.variables, "diagnosis", "group", "visit"} - {*clinical}
    names = [str(name) for name in scores if name not in keys and name not in taken]
    left = [str(name) for name in scores if name in taken and name not in keys]
    if not names:
        raise InputError(
            f"{path.name} has no clinical scores that the run does not have otherwise.\nAdd their columns."
        )
    who = results.r_indices[list(keys)].reset_index(drop=True)
    joined, told = join_by_id(
        who, scores, "participant_id", visit_column="visit" if has_visits else None, source=path.name
    )
    variables = results.variables.reset_index(drop=True)
    for name in names:
        # The newest word counts; where there is none, what was known before stays.
        variables[name] = (
            joined[name].where(joined[name].notna(), variables[name]) if name in variables else joined[name]
        )
    notes = [f"Left as they are, because the run has them already: {', '.join(left)}."] if left else []
    return replace(results, variables=variables), names, (*told, *notes)


def compare_images(
    folder: Path,
    maps: Path,
    *,
    limits: tuple[float, float] | None = None,
    show_ids: bool = False,
    **options: Any,
) -> tuple[pd.DataFrame, Path]:
    """Compare brain images of the people of a run voxel by voxel, write the images and the report once more.

    Parameters
    ----------
    folder
        A run folder.
    maps
        Table of people and their images.
    limits
        Of the subgroups; those of the run if not given.
    show_ids
        As in `rindices.report.write_report`.
    options
        As in `rindices.imaging.compare_maps`.

    Returns
    -------
    tuple of (DataFrame, Path)
        One row a comparison, and the report.

    Raises
    ------
    InputError
        If the run, the table or an image cannot be used, or nobody can be compared; nothing is written then.
    """
    from rindices.imaging import compare_maps, comparison_table, write_comparisons

    try:
        summary = read_summary(folder)
    except ValueError as error:
        raise InputError(str(error)) from error
    if summary["status"] != DONE:
        raise InputError(f"The run in {folder} is not finished.\nRepeat its command first.")
    results = _read_sound(folder, summary)
    low, high = limits or tuple(summary.get("subgroup_limits") or LIMITS)
    covariates = [name for name in summary.get("covariates") or () if name in results.variables]
    comparisons = compare_maps(
        maps,
        results.r_indices,
        results.r_indices["group"].to_numpy(),
        results.variables[covariates] if covariates else None,
        low=low,
        high=high,
        **options,
    )
    if all(comparison.result is None for comparison in comparisons):  # earlier images must not give way to nothing
        why = "; ".join(dict.fromkeys(f"{one.level}: {one.note}" for one in comparisons))
        raise InputError(
            f"No comparison can be made with the images of {Path(maps).name} ({why}).\n"
            "Give images of more people with --maps, other --subgroup-limits, or ask for --regressions."
        )
    write_comparisons(folder / "voxelwise", comparisons)
    return comparison_table(comparisons), write_report(folder, show_ids=show_ids)


def report_of_people(
    model: SurrealGAN,
    results: Results,
    out: Path,
    *,
    about: dict[str, Any],
    clinical: tuple[str, ...] = (),
    show_ids: bool = False,
    figures: Path | None = None,
) -> Path:
    """Write the report of people whom a model that is there already was applied to.

    Parameters
    ----------
    model
        The model.
    results
        What it says about the people.
    out
        The report to write.
    about
        What the report tells of the model and the table.
    clinical
        Which variables are clinical scores.
    show_ids, figures
        As in `rindices.report.write_report`.
    """
    contract = model.contract_
    group = results.r_indices["group"][results.first_visit]
    covariates = [spec.name for spec in contract.covariates]
    summary = {
        "status": DONE,
        "applied": True,
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
        "warnings": [],
        "control_labels": list(contract.control_labels),
        "patient_labels": list(contract.patient_labels),
        "covariates": covariates,
        "correction": asdict(model.correction or Correction()),
        "clinical": list(clinical),
        "variables": results.kinds,
        "unit": contract.unit,
        "seed": model.seed_,
        "preset": model.preset_.name,
        "subgroup_limits": list(LIMITS),
        "versions": place()["versions"],
    } | about
    with private_folder() as folder:
        results.write(folder)
        write_findings(folder / FOLDER, analyse(model, results, Roles(covariates, clinical, trained=False)))
        write_json(folder / SUMMARY, summary)
        return write_report(folder, out, show_ids=show_ids, figures=figures)
