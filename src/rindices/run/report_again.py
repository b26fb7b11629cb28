"""Runs that are there, shown once more: with scores that came later, on an atlas, and voxel by voxel."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from rindices import record
from rindices.cohort import expand_names, wanted_names
from rindices.cohort.column_roles import require_column
from rindices.cohort.follow_up import check_follow_up
from rindices.pages.report import write_report
from rindices.problems import Blank, InputError, Message, Remedy, Text, counted, refusal
from rindices.schema import Roster, ScoreField
from rindices.settings import FOLLOW_UP, ImageSettings, ReportSettings, follow_up_of
from rindices.tables import Dictionary, apply_dictionary, join_by_id, read_table, with_missing_codes
from rindices.value_kinds import check_scan_noise


def report_again(folder: Path, out: Path | None, settings: ReportSettings) -> tuple[Path, tuple[Text, ...]]:
    """Write the report of a run once more.

    Parameters
    ----------
    folder
        A run folder.
    out
        The file to write; ``report.html`` in the folder if not given.
    settings
        Scores that came later, and what is shown. A column of scores replaces an earlier one of that name as a whole.

    Returns
    -------
    tuple of (Path, tuple of str)
        The report, and sentences on what was done.

    Raises
    ------
    InputError
        If something cannot be used; or the run is not finished, which the report that is written says, too.
    """
    show_ids, figures = settings.show_ids, settings.figures
    if (settings.atlas is None) != (settings.atlas_table is None):
        raise InputError(Remedy("atlas"), " needs ", Remedy("atlas_table"), ", and vice versa.\nGive both.")
    if record.read_summary(folder).status != record.DONE:
        path = write_report(folder, out, show_ids=show_ids, figures=figures)
        raise InputError(f"The run in {folder} is not finished, and {path} says so.\nRepeat its command first.")
    run, notes = record.read_run(folder), list[Text]()
    if settings.atlas is not None and settings.atlas_table is not None:
        notes.append(_paint(run, settings.atlas, settings.atlas_table))
    check_scan_noise(settings.scan_noise, (run.summary.n_patterns,), visits=run.summary.visits)
    follow_up = follow_up_of(settings)
    if settings.clinical is not None or settings.remove_scores or settings.limits or settings.scan_noise or follow_up:
        removed = expand_names(wanted_names(settings.remove_scores), run.summary.clinical, source="remove_scores")
        results = replace(run.results, variables=run.results.variables.drop(columns=list(removed)))
        scores = tuple(name for name in run.summary.clinical if name not in removed)
        before = run.summary.follow_up
        if settings.clinical is not None:
            results, scores, changed = _with_scores(results, (*scores, *before.values()), settings.clinical, settings)
            notes += changed
        notes += _check_followed(results, run.summary, settings)
        gone = [name for name in before.values() if follow_up and name not in follow_up.values()]
        results = replace(results, variables=results.variables.drop(columns=gone))
        changes = {
            "clinical": tuple(name for name in scores if name not in {*before.values(), *follow_up.values()}),
            "follow_up": follow_up or before,
            "subgroup_limits": settings.limits or run.summary.subgroup_limits,
        }
        changes |= {"scan_noise": settings.scan_noise} if settings.scan_noise else {}
        _analyse_again(folder, results, run.summary.updated(**changes, variables=results.kinds))
    return write_report(folder, out, show_ids=show_ids, figures=figures), tuple(notes)


def _check_followed(results: record.Results, summary: record.Summary, settings: ReportSettings) -> list[Text]:
    """Refuse columns of follow-up that a run does not have, or that cannot be used."""
    for name, column in follow_up_of(settings).items():
        ways = Message(
            "Correct the name, or give the table that contains it with ", Remedy("clinical", Blank("FILE")), "."
        )
        require_column(results.variables.columns, column, FOLLOW_UP[name], ways)
    asked = results.first_visit & (results.r_indices["group"] != "control").to_numpy()
    adjusted = [name for name in summary.covariates if name != summary.correction.site]
    ids = results.r_indices["participant_id"].tolist()
    return check_follow_up(settings, results.variables, ids, np.asarray(asked, bool), len(adjusted))


def _analyse_again(folder: Path, results: record.Results, summary: record.Summary) -> None:
    from rindices.estimator import load_model
    from rindices.run.scores_and_analyses import analyse

    record.write_tables(folder, results, analyse(load_model(folder / record.MODEL), results, summary))
    record.write_summary(folder, summary)


def _with_scores(
    results: record.Results, clinical: tuple[str, ...], path: Path, settings: ReportSettings
) -> tuple[record.Results, tuple[str, ...], tuple[Text, ...]]:
    """Return the results and clinical scores with the columns of a table, and what became of them."""
    id, visit = settings.id, settings.visit
    scores = read_table(path, text_columns=(id, visit))
    missing = wanted_names(settings.missing)
    codes = with_missing_codes(Dictionary(), [str(name) for name in scores], missing, {id, visit})
    scores, *_ = apply_dictionary(scores, codes)
    has_visits = "visit" in results.r_indices and visit in scores
    keys = {"participant_id": id} | ({"visit": visit} if has_visits else {})
    require_column(
        scores.columns, id, f"the people's ids in {path.name}", Message("Name the column with ", Remedy("id"), ".")
    )
    scores = scores.rename(columns={theirs: ours for ours, theirs in keys.items()})
    # What was corrected for, and who belongs to which group, is the run's and stays as it is.
    taken = {*results.variables, "diagnosis", "group", "visit"} - {*clinical}
    names = tuple(str(name) for name in scores if name not in keys and name not in taken)
    left = [str(name) for name in scores if name in taken and name not in keys]
    if not names:
        raise InputError(
            f"{path.name} contains no clinical scores in addition to those of the run.\nAdd their columns."
        )
    joined, join_notes = join_by_id(
        results.r_indices[list(keys)].reset_index(drop=True),
        scores,
        "participant_id",
        visit_column="visit" if has_visits else None,
        source=path.name,
    )
    before, fields = results.variables.reset_index(drop=True), [ScoreField(name) for name in names]
    people = Roster.of(joined, "participant_id")
    joined = joined.assign(**{field.name: field.observe(joined, people).values[:, 0] for field in fields})
    if problems := [problem for field in fields for problem in field.check()]:
        raise refusal(problems)
    notes: list[Text] = [*join_notes, *(note for field in fields for note in field.notes)]
    notes += [f"Not changed, because the run already has them: {', '.join(left)}."] if left else []
    for name in [name for name in names if name in before]:
        lost = int((before[name].notna() & joined[name].isna()).sum())
        emptied = counted(lost, "row that had a value now has", "rows that had a value now have")
        notes.append(f"Replaced the column {name!r}: {emptied} none.")
    variables = before.assign(**{name: joined[name] for name in names})
    return replace(results, variables=variables), tuple(dict.fromkeys([*clinical, *names])), tuple(notes)


def _paint(run: record.Run, atlas: Path, table: Path) -> str:
    from rindices.imaging.image_output import paint_patterns

    names, brain = read_table(table, text_columns=("region", "name")), run.folder / record.BRAIN
    paths, note = paint_patterns(run.analyses.get("severities", run.results.patterns), atlas, names, brain)
    return f"Painted {counted(len(paths), 'image')} in {brain}{f': {note}' if note else ''}."


def compare_images(
    folder: Path, maps: Path, settings: ImageSettings, progress: Callable[[int, int], None] | None = None
) -> tuple[pd.DataFrame, Path]:
    """Compare brain images of the people of a run voxel by voxel, write the images and the report once more.

    Parameters
    ----------
    folder
        A run folder.
    maps
        Table of people and their images.
    settings
        Mask, limits of the subgroups, and what else is compared.
    progress
        Called with how many images of all are read.

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

    run = record.read_run(folder)
    covariates = [name for name in run.summary.covariates if name in run.results.variables]
    who = run.results.r_indices.filter(["participant_id", "visit", "first_visit"])
    comparisons = compare_maps(
        maps,
        pd.concat([who, run.results.scores], axis=1),
        run.results.r_indices["group"].to_numpy(),
        run.results.variables[covariates] if covariates else None,
        replace(settings, limits=settings.limits or run.summary.subgroup_limits),
        progress,
    )
    if all(comparison.result is None for comparison in comparisons):  # earlier images must not give way to nothing
        why = "; ".join(dict.fromkeys(f"{one.level}: {one.note}" for one in comparisons))
        raise InputError(
            f"No comparison is possible with the images of {Path(maps).name} ({why}).\n"
            f"Give images of more people with ",
            Remedy("maps"),
            ", other ",
            Remedy("limits"),
            ", or request ",
            Remedy("regressions", True),
            ".",
        )
    write_comparisons(folder / record.VOXELWISE, comparisons)
    return comparison_table(comparisons), write_report(folder, show_ids=settings.show_ids)
