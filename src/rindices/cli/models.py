"""`rindices apply`, `describe` and `import-official`: models that are there, used and told."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rindices.cli.application import (
    MODEL,
    PAGE,
    TABLE,
    DropMissing,
    Exclude,
    Figures,
    Join,
    Model,
    ShowIds,
    Table,
    app,
    argument,
    check_output,
    option,
)
from rindices.cli.bars import counting_bar
from rindices.cli.console import console, warn
from rindices.cli.options import names_of
from rindices.cli.stopping import guarded
from rindices.errors import InputError, counted, shown
from rindices.files import check_folder
from rindices.settings import Correction

if TYPE_CHECKING:
    import pandas as pd

    from rindices.cohort import Contract, People
    from rindices.estimator import SurrealGAN
    from rindices.run.results import Results


@app.command()
@guarded
def apply(
    model: Model,
    table: Table,
    out: Annotated[Path, option("Table of R-indices to write (.csv), replaced if it exists.")],
    exclude: Exclude = "",
    visit: Annotated[str | None, option("Column that tells a person's repeated visits apart.")] = None,
    join: Join = "",
    drop_missing: DropMissing = False,
    new_sites: Annotated[
        str, typer.Option(help="People of sites that the model does not know: refuse, or leave uncorrected.")
    ] = "refuse",
    report: Annotated[
        Path | None, option("Also write a report of these people here (.html), replaced if it exists.")
    ] = None,
    clinical: Annotated[str, option("For the report: columns of the table with clinical scores.")] = "",
    show_ids: ShowIds = False,
    figures: Figures = None,
) -> None:
    """Give R-indices to new people.

    The table is checked against what the model was trained on: regions, covariates, codings and units.
    """
    from rindices.cohort.workbooks import file_and_sheet
    from rindices.model.file import read_header

    if report is None and (show_ids or figures is not None):
        raise InputError("--show-ids and --figures are about the report.\nAsk for one with --report FILE.")
    check_folder(figures, "figures")
    inputs = [file_and_sheet(path)[0] for path in (str(table), *names_of(join))]
    for path, name, endings in ((out, "--out", TABLE), (report, "--report", PAGE)):
        check_output(path, name, endings, *inputs, model)
    contract = read_header(model).contract
    roles: dict[str, Any] = {"exclude": exclude, "visit": visit, "new_sites": new_sites, "clinical": clinical}
    roles |= {"join": names_of(join), "drop_missing": drop_missing}
    with counting_bar("Scoring people", transient=True) as bar:
        blocks = _read_people(table, contract, whole=report is not None, progress=bar, **roles)
        first = next(blocks)  # the table is looked at before the engine is loaded
        from rindices.estimator import load_model

        fitted = load_model(model)
        scored = _Scored(fitted, chain([first], blocks), whole=report is not None)
        scored.write(out)
    console.print(f"Scored {scored.who} in {counted(len(contract.features), 'region')}.")
    if scored.n_flagged:
        lie = counted(scored.n_flagged, "of them lies", "of them lie")
        console.print(f"{lie} outside what the model was trained on: see the column flags.", style="yellow")
    warn(first.notes)
    reliable, reason = fitted.reliability_
    if reliable is False:
        console.print(
            f"The model's patterns were not reliable: {reason} Do not interpret these R-indices.", style="bold red"
        )
    console.print(f"R-indices: {out}")
    if len(first.left_out):
        from rindices.files import write_csv

        beside = out.with_name(f"{out.stem}_left_out.csv")
        write_csv(first.left_out, beside, index=False)
        console.print(f"Left out:  {beside}")
    if report is not None and scored.results is not None:
        from rindices.run.reporting import report_of_people

        about: dict[str, Any] = {"model": {"file": model.name, "sha256": _sha256(model)}, "source": table.name}
        about |= {"warnings": list(first.notes)}
        names = tuple(first.clinical.columns)
        report_of_people(
            fitted, scored.results, report, about=about, clinical=names, show_ids=show_ids, figures=figures
        )
        console.print(f"Report:    {report}")


class _Scored:
    """People as they are scored and written; of a `whole` table, all results."""

    def __init__(self, model: SurrealGAN, blocks: Iterator[People], *, whole: bool) -> None:
        self._model, self._blocks, self._whole = model, blocks, whole
        self.results: Results | None = None
        self.n_flagged = self._n_rows = self._n_people = 0
        self._visits = False

    def write(self, out: Path) -> None:
        from rindices.files import write_csv_parts

        write_csv_parts(map(self._score, self._blocks), out)

    def _score(self, people: People) -> pd.DataFrame:
        from rindices.run.results import of_people, r_indices_of_people

        n_rows, first = len(people.features), people.first_visit
        self._n_rows += n_rows
        self._n_people += n_rows if first is None else int(first.sum())
        self._visits = self._visits or first is not None
        self.n_flagged += int((people.flags != "").sum())
        if not self._whole:
            return r_indices_of_people(self._model, people)
        self.results = of_people(self._model, people)
        return self.results.r_indices

    @property
    def who(self) -> str:
        """How many people, in words."""
        people = counted(self._n_people, "person", "people")
        return f"{people} at {counted(self._n_rows, 'visit')}" if self._visits else people


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_people(
    path: Path,
    contract: Contract,
    *,
    whole: bool,
    progress: Callable[[int, int], None],
    exclude: str,
    visit: str | None,
    clinical: str,
    join: list[str],
    drop_missing: bool,
    **roles: Any,
) -> Iterator[People]:
    """Read new people, some at a time where that is possible.

    Volumes of single MUSE regions are summed where the model wants the sums.
    """
    from rindices.cohort import people_in_blocks, read_people
    from rindices.cohort.bids import read_source
    from rindices.interop.muse import is_muse72, with_muse72

    as_whole: dict[str, Any] = {
        "visit": visit,
        "clinical": clinical,
        "join": join,
        "drop_missing": drop_missing,
    } | roles
    if is_muse72(contract.features):
        visits = visit if join else None
        source = read_source(path, id_column=contract.id_column, visit_column=visits, join=join)
        given = {str(name) for name in source.frame}
        if not {*contract.features} <= given:
            yield read_people(path, contract, prepare=lambda table: with_muse72(table, exclude), **as_whole)
            return
    if whole or visit is not None or clinical or join or drop_missing:
        yield read_people(path, contract, exclude=exclude, **as_whole)
    else:
        yield from people_in_blocks(path, contract, exclude=exclude, progress=progress, **roles)


@app.command(name="import-official")
@guarded
def import_official(
    file: Annotated[Path, argument("A checkpoint of the authors' package (.pt).")],
    out: Annotated[Path, option("Model file to write (.safetensors), replaced if it exists.")],
    features: Annotated[str, option("Its regions in order: names, a file of names, or muse72.")],
    covariates: Annotated[str, option("Its covariates in order; for the published models sex,age.")] = "",
    entry: Annotated[int | None, option("Which entry of the checkpoint.", "the only one")] = None,
) -> None:
    """Turn a model of the authors' package into one of ours.

    Nothing in the checkpoint is run: a reader of our own takes numbers and plain containers, and refuses all else.
    """
    check_output(out, "--out", MODEL, file)
    from rindices.interop import official

    model = official.import_official(file, features, covariates, entry)
    contract = model.contract_
    unit = f" ({contract.unit})" if contract.unit else ""
    spans = [f"{spec.name} ({shown(spec.minimum)} to {shown(spec.maximum)})" for spec in contract.covariates]
    console.print(
        f"{model.preset_.name.removeprefix('official, ').capitalize()}: "
        f"{counted(len(contract.features), 'region')}{unit}, {counted(model.n_patterns, 'pattern')}; "
        f"covariates {', '.join(spans) or 'none'}."
    )
    console.print("The training people are not in the file: their ranges and the agreement of trainings are unknown.")
    console.print(f"Model: {model.save(out)}")


@app.command()
@guarded
def describe(model: Model) -> None:
    """Say what a model is and what it expects."""
    from rindices.model.file import read_header

    header = read_header(model)
    contract, parameters, agreement = header.contract, header.parameters, header.agreement.pattern_agreement
    spans = [
        f"{spec.name} ({', '.join(spec.categories)})"
        if spec.categories
        else f"{spec.name} ({shown(spec.minimum)} to {shown(spec.maximum)})"
        for spec in contract.covariates
    ]
    lines = {
        "Model": model,
        "Made by": f"rindices {header.package_version}",
        "Patterns": parameters.n_patterns,
        "Preset": f"{parameters.preset.name}, seed {_known(header.seed)}, step {header.step:,}",
        "Repetitions": f"{len(header.members)} used, {len(header.left_out)} left out",
        "Agreement": "unknown (one repetition)" if agreement is None else f"{agreement:.3f} (0.5 is chance)",
        "Reliable": {True: "yes", False: "no", None: "not judged"}[header.reliability[0]],
        "Controls": ", ".join(contract.control_labels) or "y = 0",
        "Patients": ", ".join(contract.patient_labels) or "y = 1",
        "Id column": contract.id_column,
        "Visits": contract.visit_column or "one a person",
        "Covariates": "; ".join(spans) or "none",
        "Correction": _correction(parameters.correction) or ("lines" if spans else "none"),
        "Unit": contract.unit or "not stated",
        "Regions": f"{len(contract.features)}, with their range in training"
        f"{' (unknown)' if None in contract.feature_minimum else ''}:",
    }
    for name, value in lines.items():
        console.print(f"{name + ':':<13}{value}")
    ranges = zip(contract.features, contract.feature_minimum, contract.feature_maximum, strict=True)
    for region, low, high in ranges:
        console.print(f"  {region}" if low is None or high is None else f"  {region:<32} {low:>10.4g} to {high:<10.4g}")


def _correction(correction: Correction | None) -> str:
    """Say in words how covariates are corrected, where it is by more than lines."""
    given = correction or Correction()
    words = {
        "curve of": ", ".join(given.smooth),
        "interaction of": ", ".join(" and ".join(pair) for pair in given.interactions),
        "regions divided by": given.proportion,
        "shifts and scales removed by": given.site,
    }
    return "; ".join(f"{what} {names}" for what, names in words.items() if names)


def _known(value: object) -> object:
    return "unknown" if value is None else value
