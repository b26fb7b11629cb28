"""Apply an existing model to a table of new people, or adapt it to new sites."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from rindices import record
from rindices.cohort import People, check_follow_up, follow_up_of, read_people
from rindices.files import private_folder, write_csv, write_csv_parts
from rindices.interop.muse import MUSE72_NAMES, with_muse72
from rindices.model import fills_gaps, read_header
from rindices.presets import Correction
from rindices.problems import Blank, InputError, Remedy, Text, Wording, counted, in_python, joined, listed, worded
from rindices.run.plan import versions
from rindices.settings import ApplySettings, OutputSettings
from rindices.value_kinds import check_level, check_scan_noise

if TYPE_CHECKING:
    from rindices.estimator import SurrealGAN
    from rindices.schema import Contract


class Applied(NamedTuple):
    """Result of applying a model.

    Attributes
    ----------
    summary
        Who was scored, and by which model. Its warnings name nobody.
    n_rows, n_flagged
        Number of rows, and of people outside the training range or from an unknown site.
    left_out
        Table of the people who were left out, if any.
    change, scan_noise
        Table of changes in people with repeat visits, and the scan noise behind their intervals; see
        `rindices.run.scores_and_analyses.change_of`.
    """

    summary: record.Summary
    n_rows: int
    n_flagged: int
    left_out: Path | None
    change: Path | None = None
    scan_noise: pd.DataFrame | None = None


def apply_table(
    model: Path,
    path: Path,
    out: Path,
    settings: ApplySettings,
    *,
    report: Path | None = None,
    output: OutputSettings,
    progress: Callable[[float], None] | None = None,
    wording: Wording = in_python,
) -> Applied:
    """Score the people of a table in batches, and write their R-indices and severities.

    Parameters
    ----------
    model
        A model file.
    path
        A table, or the folder of a BIDS dataset.
    out
        The table to write; it is written completely or not at all.
    settings
        How the table is read.
    report
        A report to write on these people; the table is then read at once.
    output
        How the report is written, and the level of the intervals.
    progress
        Called with the proportion of the table that has been read.
    wording
        How settings are named in warnings.
    """
    check_level(output.level)
    whole = report is not None
    batches = people_for(model, path, settings, progress=progress, whole=whole)
    first = next(batches)  # check the table before loading the engine
    follow_up, few_events = _follow_up(first, read_header(model).contract, settings, whole=whole)
    whole = whole or first.visit is not None  # tables with visits are read at once
    check_scan_noise(output.scan_noise, (read_header(model).parameters.n_patterns,), visits=first.visit is not None)
    from rindices.estimator import load_model
    from rindices.run.scores_and_analyses import change_of, results_of, scores_of
    from rindices.scoring.consensus_and_person import reference_of, training_of, unknown_of

    fitted, counts = load_model(model), Counter[str]()
    notes, left_out, results = dict[str, None](), list[pd.DataFrame](), list[record.Results]()

    def scored(people: People) -> pd.DataFrame:
        counts.update(people.group[people.first_visit])
        notes.update(dict.fromkeys(worded(note, wording) for note in people.notes))
        left_out.extend([people.left_out] if len(people.left_out) else [])
        results.extend([results_of(fitted, people, output.level)] if whole else [])
        scores = results[0].r_indices if whole else scores_of(fitted, people, output.level)
        strangers = scores[scores["strangeness"] > 1]["participant_id"].nunique() if "strangeness" in scores else 0
        counts.update(rows=len(scores), flagged=people.flags[people.flags != ""].index.nunique(), strangers=strangers)
        return scores

    write_csv_parts(map(scored, chain([first], batches)), out)
    beside = write_csv(pd.concat(left_out), out.with_name(f"{out.stem}_left_out.csv")) if left_out else None
    summary = _summary(fitted, counts).updated(
        model={"file": model.name, "sha256": record.sha256_of(model)},
        source=path.name,
        warnings=(
            *notes,
            *(worded(one, wording) for one in few_events),
            *_warning_on_strangers(counts),
            *unknown_of(fitted),
        ),
        level=output.level,
        scan_noise=output.scan_noise,
        reference=reference_of(fitted),
        training=training_of(fitted),
        finished=date.today().isoformat(),
        clinical=tuple(name for name in map(str, first.clinical.columns) if name not in follow_up.values()),
        follow_up=follow_up,
        visits=first.visit is not None,
        years_from=first.years_from,
        subgroup_limits=output.limits,
        correction=asdict(fitted.correction or Correction()),
    )
    changed = change_of(fitted, results[0], summary) if first.visit is not None else {}
    change = write_csv(changed["change"], out.with_name(f"{out.stem}_change.csv")) if changed else None
    if report is not None:
        _write_report(fitted, results[0], report, output, summary)
    return Applied(summary, counts["rows"], counts["flagged"], beside, change, changed.get("scan_noise"))


def _follow_up(
    people: People, contract: Contract, settings: ApplySettings, *, whole: bool
) -> tuple[dict[str, str], list[Text]]:
    """Return the follow-up columns and warnings about them; raise if they are given without a report."""
    named = follow_up_of(settings)
    if named and not whole:
        raise InputError(
            joined(map(Remedy, named), ", "),
            " can only be used with a report.\nRequest one with ",
            Remedy("report", Blank("FILE")),
            ".",
        )
    n_covariates = sum(spec.name != contract.site_column for spec in contract.covariates)
    ids, group, first_visit = people.features.index, people.group, people.first_visit
    return named, check_follow_up(settings, people.clinical, ids, group, first_visit, n_covariates)


def people_for(
    model: Path,
    path: Path,
    settings: ApplySettings,
    *,
    progress: Callable[[float], None] | None = None,
    whole: bool = False,
) -> Iterator[People]:
    """Read the people of a table as a model needs them, checked; the arguments are those of `apply_table`."""
    contract, sums = read_header(model).contract, None
    settings = replace(settings, complete_only=settings.complete_only or not fills_gaps(model))
    if contract.features == MUSE72_NAMES:  # sums of single regions, if the table has these
        sums = partial(with_muse72, exclude=settings.exclude, covariates=[spec.name for spec in contract.covariates])
        settings = replace(settings, exclude=())
    return read_people(path, contract, settings, prepare=sums, progress=progress, whole=whole)


class Adapted(NamedTuple):
    """The sites a model has learned, with their controls; the number of people not used; and warnings."""

    controls: dict[str, int]
    n_unused: int
    warnings: tuple[str, ...]


def adapt_model(
    model: Path,
    path: Path,
    out: Path,
    settings: ApplySettings,
    *,
    few_controls: bool = False,
    wording: Wording = in_python,
) -> Adapted:
    """Let a model learn sites from the controls of a table, and write it to a new file.

    Parameters
    ----------
    model
        A model file.
    path
        A table of people from new sites, with controls labelled as in training. Other people are not used, nor are
        controls with missing regions.
    out
        The model file to write.
    settings
        How the table is read.
    few_controls
        Whether to estimate the effects of sites with only five to nine controls, too.
    wording
        How settings are named in warnings.
    """
    contract = read_header(model).contract
    settings = replace(settings, new_sites="uncorrected", complete_only=True, drop_missing=True)
    (people,) = read_people(path, contract, settings, whole=True)
    local = (people.group == "control").to_numpy() & people.first_visit
    if not local.any():
        raise InputError(
            f"{path} has no controls. During training, controls were labelled {listed(contract.control_labels)} in "
            f"the column {contract.diagnosis_column!r}.\nSite effects are estimated from controls at each site, so "
            "add controls labelled in the same way."
        )
    from rindices.estimator import load_model

    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        load_model(model).adapt(people.features[local], people.covariates[local], few_controls=few_controls).save(out)
    notes = (*(worded(note, wording) for note in people.notes), *(str(one.message) for one in caught))
    sizes = people.covariates[local][contract.site_column].value_counts()
    return Adapted({str(site): int(number) for site, number in sizes.items()}, int((~local).sum()), notes)


def _warning_on_strangers(counts: Counter[str]) -> list[str]:
    """Return a warning about people unlike anyone the model can produce, with likely causes."""
    if not counts["strangers"]:
        return []
    people = counts["control"] + counts["patient"] + counts["other"]
    return [
        f"{counts['strangers']:,} of {counted(people, 'person', 'people')} "
        f"{'is' if counts['strangers'] == 1 else 'are'} unlike anyone the model can produce (see the "
        "strangeness column). Among healthy people, the same is true of one or two scans in every hundred. If the "
        "proportion is much higher here, check that regions, units and segmentation are the same as in training."
    ]


def _summary(model: SurrealGAN, counts: Counter[str]) -> record.Summary:
    """Return how many people of each group were scored, and by which model."""
    contract, (verdict, reason) = model.contract_, model.verdict_
    return record.Summary(
        status=record.DONE,
        applied=True,
        n_controls=counts["control"],
        n_patients=counts["patient"],
        n_other=counts["other"],
        n_features=len(contract.features),
        n_patterns=model.n_patterns,
        patterns_chosen_from_data=False,
        repetitions=len(model.members_),
        members_used=len(model.members_),
        verdict=verdict,
        supported=model.n_supported_,
        reliable_reason=reason,
        control_labels=contract.control_labels,
        patient_labels=contract.patient_labels,
        covariates=tuple(spec.name for spec in contract.covariates),
        unit=contract.unit,
        seed=model.seed_,
        preset=model.preset_.name,
        warnings=(),
        versions=versions(),
    )


def _write_report(
    model: SurrealGAN, results: record.Results, out: Path, output: OutputSettings, summary: record.Summary
) -> None:
    """Write the report on people to whom an existing model was applied."""
    from rindices.pages.report import write_report
    from rindices.run.scores_and_analyses import analyse

    with private_folder() as folder:
        record.write_tables(folder, results, analyse(model, results, summary))
        record.write_summary(folder, summary.updated(variables=results.kinds))
        write_report(folder, out, show_ids=output.show_ids, figures=output.figures)
