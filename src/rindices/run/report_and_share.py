"""New reports on existing runs (with later scores, on an atlas, voxel by voxel), and models to share.

A shared model is one zip with the model, its card, and made-up people whose scores the recipient can verify. It holds
nobody's data: the people are random numbers within the ranges of regions and covariates that the model file contains
anyway. Archives are not trusted: only files with fixed names and limited sizes are read.
"""

import shutil
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pydantic import ValidationError

from rindices import record
from rindices.cohort import check_follow_up, follow_up_of
from rindices.files import atomic_file, private_folder, write_csv, write_text
from rindices.model import read_header
from rindices.pages.layout import render
from rindices.pages.report import write_report
from rindices.problems import Blank, InputError, Message, Remedy, Text, counted, listed, refusal
from rindices.run.apply_table import apply_table
from rindices.schema import Contract, Roster, ScoreField
from rindices.scoring.intervals import few
from rindices.settings import FOLLOW_UP, ApplySettings, ImageSettings, OutputSettings, ReportSettings, ShareSettings
from rindices.tables import Dictionary, apply_dictionary, join_by_id, read_table, require_column, with_missing_codes
from rindices.value_kinds import check_scan_noise, expand_names, wanted_names


def report_again(folder: Path, out: Path | None, settings: ReportSettings) -> tuple[Path, tuple[Text, ...]]:
    """Write the report of a run again.

    Parameters
    ----------
    folder
        A run folder.
    out
        The file to write; ``report.html`` in the folder if not given.
    settings
        Later scores, and what is shown. A column of scores replaces the whole earlier column of that name.

    Returns
    -------
    tuple of (Path, tuple of str)
        The report, and notes on what was done.

    Raises
    ------
    InputError
        If something cannot be used, or the run is not finished; a report that says so is written in the latter case.
    """
    if (settings.atlas is None) != (settings.atlas_table is None):
        raise InputError(Remedy("atlas"), " needs ", Remedy("atlas_table"), ", and vice versa.\nProvide both.")
    if record.read_summary(folder).status != record.DONE:
        path = write_report(folder, out, show_ids=settings.show_ids, figures=settings.figures)
        raise InputError(
            f"The run in {folder} is not finished (see {path}).\nTo finish it, run the original command again."
        )
    run, notes = record.read_run(folder), list[Text]()
    if settings.atlas is not None and settings.atlas_table is not None:
        notes.append(_paint(run, settings.atlas, settings.atlas_table))
    check_scan_noise(settings.scan_noise, (run.summary.n_patterns,), visits=run.summary.visits)
    follow_up = follow_up_of(settings)
    if settings.clinical is not None or settings.remove_scores or settings.limits or settings.scan_noise or follow_up:
        removed = expand_names(settings.remove_scores, run.summary.clinical, source="remove_scores")
        results = replace(run.results, variables=run.results.variables.drop(columns=list(removed)))
        scores = tuple(name for name in run.summary.clinical if name not in removed)
        before = run.summary.follow_up
        if settings.clinical is not None:
            results, scores, changed = _with_scores(results, (*scores, *before.values()), settings.clinical, settings)
            notes += changed
        notes += _check_followed(results, run.summary, settings)
        gone = [name for name in before.values() if follow_up and name not in follow_up.values()]
        results = replace(results, variables=results.variables.drop(columns=gone))
        summary = run.summary.updated(
            clinical=tuple(name for name in scores if name not in {*before.values(), *follow_up.values()}),
            follow_up=follow_up or before,
            subgroup_limits=settings.limits or run.summary.subgroup_limits,
            scan_noise=settings.scan_noise or run.summary.scan_noise,
            variables=results.kinds,
        )
        _analyse_again(run, results, summary)
    return write_report(folder, out, show_ids=settings.show_ids, figures=settings.figures), tuple(notes)


def _check_followed(results: record.Results, summary: record.Summary, settings: ReportSettings) -> list[Text]:
    """Refuse follow-up columns that are missing from a run or cannot be used; return warnings about the others."""
    for name, column in follow_up_of(settings).items():
        ways = Message(
            "Correct the name or, with ", Remedy("clinical", Blank("FILE")), ", add a table that contains the column."
        )
        require_column(results.variables.columns, column, FOLLOW_UP[name], ways)
    n_covariates = sum(name != summary.correction.site for name in summary.covariates)
    ids, group = results.r_indices["participant_id"].tolist(), results.r_indices["group"]
    return check_follow_up(settings, results.variables, ids, group, results.first_visit, n_covariates)


def _analyse_again(run: record.Run, results: record.Results, summary: record.Summary) -> None:
    from rindices.estimator import load_model
    from rindices.run.scores_and_analyses import analyse

    tables = analyse(load_model(run.folder / record.MODEL), results, summary)
    # Which regions were imputed was only known when the people were scored.
    kept = {name: table for name, table in run.analyses.items() if name == "drivers"}
    record.write_tables(run.folder, results, tables | kept)
    record.write_summary(run.folder, summary)


def _with_scores(
    results: record.Results, clinical: tuple[str, ...], path: Path, settings: ReportSettings
) -> tuple[record.Results, tuple[str, ...], tuple[Text, ...]]:
    """Return the results and clinical scores with the columns of a table added, and notes."""
    id, visit = settings.id, settings.visit
    scores = read_table(path, text_columns=(id, visit))
    codes = with_missing_codes(Dictionary(), list(map(str, scores)), wanted_names(settings.missing), {id, visit})
    scores, *_ = apply_dictionary(scores, codes)
    has_visits = "visit" in results.r_indices and visit in scores
    keys = {"participant_id": id} | ({"visit": visit} if has_visits else {})
    require_column(
        scores.columns, id, f"the participant ids in {path.name}", Message("Name the column with ", Remedy("id"), ".")
    )
    scores = scores.rename(columns={theirs: ours for ours, theirs in keys.items()})
    # Covariates and groups are those of the run and do not change.
    taken = {*results.variables, "diagnosis", "group", "visit"} - {*clinical}
    names = tuple(str(name) for name in scores if name not in keys and name not in taken)
    left = [str(name) for name in scores if name in taken and name not in keys]
    if not names:
        raise InputError(
            f"{path.name} contains no clinical scores, only columns that the run already has.\nAdd columns with scores."
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
    notes += [f"Columns left unchanged because the run already has them: {', '.join(left)}."] if left else []
    for name in [name for name in names if name in before]:
        lost = joined["participant_id"][before[name].notna() & joined[name].isna()].nunique()
        emptied = counted(lost, "person who had a value now has", "people who had a value now have")
        notes.append(f"Replaced the column {name!r}: {emptied} none.")
    results = replace(results, variables=before.assign(**{name: joined[name] for name in names}))
    return results, tuple(dict.fromkeys([*clinical, *names])), tuple(notes)


def _paint(run: record.Run, atlas: Path, table: Path) -> str:
    from rindices.imaging.image_output import paint_patterns

    names, brain = read_table(table, text_columns=("region", "name")), run.folder / record.BRAIN
    paths, note = paint_patterns(run.analyses.get("severities", run.results.patterns), atlas, names, brain)
    return f"Wrote {counted(len(paths), 'image')} to {brain}{f'; {note}' if note else ''}."


def compare_images(
    folder: Path, maps: Path, settings: ImageSettings, progress: Callable[[int, int], None] | None = None
) -> tuple[pd.DataFrame, Path]:
    """Compare brain images of the people of a run voxel by voxel, and write the images and a new report.

    Parameters
    ----------
    folder
        A run folder.
    maps
        Table of people and their images.
    settings
        Mask, limits of the subgroups, and what else is compared.
    progress
        Called with the number of images read so far and the total.

    Returns
    -------
    tuple of (DataFrame, Path)
        One row per comparison, and the report.

    Raises
    ------
    InputError
        If the run, the table or an image cannot be used, or nobody can be compared; in that case, nothing is written.
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
    if all(comparison.result is None for comparison in comparisons):  # keep earlier images if nothing replaces them
        why = "; ".join(dict.fromkeys(f"{one.level}: {one.note}" for one in comparisons))
        raise InputError(
            f"No comparison is possible with the images in {Path(maps).name} ({why}).\n"
            f"Provide images of more people with ",
            Remedy("maps"),
            ", change ",
            Remedy("limits"),
            ", or request ",
            Remedy("regressions", True),
            ".",
        )
    write_comparisons(folder / record.VOXELWISE, comparisons)
    return comparison_table(comparisons), write_report(folder, show_ids=settings.show_ids)


CARD, EXAMPLES, SCORES, MANIFEST = "CARD.md", "examples.csv", "examples_scores.csv", "manifest.json"
FILES = (record.MODEL, CARD, EXAMPLES, SCORES)
TOLERANCE = 1e-3  # of scores: processors differ a thousand times less, other models more
_COMPARED = r"^(r|severity)\d+$|^severity\d+_(low|high)$"
_N_EXAMPLES, _SEED = 20, 0
_COMMON = 0.7  # share of the variance that all regions of a made-up person have in common: brains differ in size
_LARGEST = {record.MODEL: 2**30}  # bytes, unpacked
_LARGEST_OTHER, _LARGEST_RATIO = 2**24, 200
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_GIVE = "Provide a file written by rindices share."
_CENTILES = (0.05, 0.5, 0.95)  # of ages; not the extremes, which belong to single people


class Manifest(record.Document):
    """What is in the archive: its format, who wrote it, the level of the intervals, and the checksum of each file."""

    format: int
    rindices: str
    level: float
    sha256: dict[str, str]


class Verified(NamedTuple):
    """Result of rescoring an archive's examples: how many, the largest difference, and the version that wrote it."""

    n_examples: int
    difference: float
    package_version: str


def share_model(folder: Path, out: Path, settings: ShareSettings) -> None:
    """Write the model of a finished run, with its card and examples, as one zip archive.

    Parameters
    ----------
    folder
        A run folder.
    out
        The archive to write.
    settings
        Information for the card that the run does not contain.

    Raises
    ------
    InputError
        If the run is not finished, or damaged.
    """
    run = record.read_run(folder)
    model = folder / record.MODEL
    contract, level = read_header(model).contract, run.summary.level
    with private_folder() as beside:
        shutil.copyfile(model, beside / record.MODEL)
        write_csv(example_people(contract), beside / EXAMPLES)
        _score(beside, beside / SCORES, level)
        card = render(
            "card.md.j2",
            summary=run.summary,
            said=asdict(settings),
            contract=contract,
            ages=_ages(run),
            few=few(run.summary.n_controls, run.summary.n_patients),
            intervals="severity1_low" in run.results.r_indices,
        )
        write_text(beside / CARD, card)
        manifest = Manifest(
            format=1,
            rindices=run.summary.versions.get("rindices", ""),
            level=level,
            sha256={name: record.sha256_of(beside / name) for name in FILES},
        )
        write_text(beside / MANIFEST, manifest.model_dump_json(indent=2) + "\n")
        with atomic_file(out) as half, zipfile.ZipFile(half, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in (*FILES, MANIFEST):
                # No timestamps, so that the same model gives the same archive.
                archive.writestr(zipfile.ZipInfo(name), (beside / name).read_bytes(), zipfile.ZIP_DEFLATED)


def example_people(contract: Contract) -> pd.DataFrame:
    """Make up people whom a model can score, only from random numbers and the content of its file.

    Regions are normal around the training median, with a spread given by the two quantiles and a component shared by
    all regions of a person. Numeric covariates are uniform within their range; categories and codes take turns.

    Examples
    --------
    >>> made = example_people(Contract(("a", "b"), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0)))
    >>> made.shape, made["a"].between(0.5, 3.5).all()
    ((20, 3), np.True_)
    """
    rng = np.random.default_rng(_SEED)
    low, median, high = np.nan_to_num(contract.ranges, nan=0.0)
    drawn = rng.normal(size=(_N_EXAMPLES, len(median)))
    together = np.sqrt(_COMMON) * rng.normal(size=(_N_EXAMPLES, 1)) + np.sqrt(1 - _COMMON) * drawn
    # Each quantile is two or more sd from the median, so nobody is beyond what the model has seen.
    regions = median + np.clip(together / 2, -1, 1) * np.where(together > 0, high - median, median - low)
    table: dict[str, object] = {contract.id_column: [f"example-{number:02d}" for number in range(1, _N_EXAMPLES + 1)]}
    for spec in contract.covariates:
        if values := spec.categories or spec.codes:
            table[spec.name] = np.resize(np.array(values, dtype=object), _N_EXAMPLES)
        else:
            table[spec.name] = rng.uniform(spec.minimum or 0.0, spec.maximum or 0.0, _N_EXAMPLES)
    if contract.visit_column is not None:
        table[contract.visit_column] = "1"
    return pd.DataFrame(table).join(pd.DataFrame(regions, columns=list(contract.features)))


def _score(folder: Path, out: Path, level: float) -> pd.DataFrame:
    """Score the examples in a folder with the model beside them; return the table."""
    apply_table(folder / record.MODEL, folder / EXAMPLES, out, ApplySettings(), output=OutputSettings(level=level))
    return pd.read_csv(out)


def _ages(run: record.Run) -> list[float]:
    """Return three centiles of age in the training, or none if ages are unknown."""
    names = [str(name) for name in run.results.variables if str(name).casefold() == "age"]
    if not names or run.summary.variables[names[0]] != "number":
        return []
    trained = run.results.first_visit & (run.results.r_indices["group"] != "other").to_numpy()
    return run.results.variables[names[0]][trained].quantile(list(_CENTILES)).tolist()


def verify_model(path: Path, out: Path | None = None) -> Verified:
    """Check an archive, compare the scores of its examples, and write its model to `out`, if given.

    Raises
    ------
    InputError
        If the file is not such an archive or was changed, or if its model gives different scores here.
    """
    with private_folder() as folder:
        manifest = _unpack(path, folder)
        scores = _score(folder, folder / "again.csv", manifest.level).filter(regex=_COMPARED)
        try:
            apart = (pd.read_csv(folder / SCORES)[[*scores]].astype(float) - scores).abs().to_numpy()
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"In {path}, {SCORES} has no scores from this model.\n{_GIVE}") from error
        difference = float(apart.max()) if apart.shape == scores.shape else np.nan
        if not difference <= TOLERANCE:
            raise InputError(
                f"The model in {path} does not reproduce the scores supplied with it (largest difference "
                f"{difference:.3g}).\nThe archive was written by rindices {manifest.rindices}. Use that version, or "
                "contact the sender."
            )
        if out is not None:
            with atomic_file(out) as beside:
                shutil.copyfile(folder / record.MODEL, beside)
    return Verified(len(scores), difference, manifest.rindices)


def _unpack(path: Path, folder: Path) -> Manifest:
    """Unpack the files that an archive must have, under their fixed names; refuse anything else."""
    wanted = (*FILES, MANIFEST)
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sorted(entry.filename for entry in entries) != sorted(wanted):
                names = listed(sorted({entry.filename for entry in entries}), 4)
                raise InputError(f"{path} should contain only {listed(wanted)}, but it contains {names}.\n{_GIVE}")
            for entry in entries:
                most = _LARGEST.get(entry.filename, _LARGEST_OTHER)
                most = min(most, max(_LARGEST_RATIO * entry.compress_size, 4096))
                if entry.file_size > most or entry.flag_bits & 1 or entry.compress_type not in _METHODS:
                    raise InputError(f"In {path}, {entry.filename} was not packed by rindices.\n{_GIVE}")
                with archive.open(entry) as packed, (folder / entry.filename).open("wb") as file:
                    shutil.copyfileobj(packed, file)
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes(), strict=True)
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.\n{_GIVE}") from error
    except ValidationError as error:
        raise InputError(f"In {path}, {MANIFEST} cannot be used: {record.in_words(error)}.\n{_GIVE}") from error
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{path} cannot be read as a zip file ({type(error).__name__}).\n{_GIVE}") from error
    changed = [name for name in FILES if manifest.sha256.get(name) != record.sha256_of(folder / name)]
    if changed or manifest.format != 1:
        what = f"was changed after it was written ({listed(changed)})" if changed else "was written by a later version"
        raise InputError(f"{path} {what}.\n{_GIVE}")
    return manifest
