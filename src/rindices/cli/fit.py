"""`rindices fit`: learn patterns and give everybody R-indices."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rindices.cli.application import (
    Clinical,
    DropMissing,
    Exclude,
    Figures,
    Join,
    Limits,
    Repetitions,
    Seed,
    ShowIds,
    Steps,
    app,
    argument,
    option,
)
from rindices.cli.bars import TrainingBars
from rindices.cli.console import console, describe_cohort, describe_places, describe_run, log, set_output
from rindices.cli.options import (
    CORRECTION,
    check_options,
    clinical_columns,
    corrected,
    covariates_of,
    limits_of,
    names_of,
    numbers,
    replayed,
)
from rindices.cli.stopping import Ending, guarded, interruptible
from rindices.errors import InputError
from rindices.files import check_folder

if TYPE_CHECKING:
    from rindices.cohort import Cohort

_LIMITS = "0.4,0.7"  # of the subgroups


@app.command()
@guarded
def fit(
    context: typer.Context,
    table: Annotated[
        Path | None, argument("Table of people: CSV, TSV, Excel or Parquet, one row a person; or a BIDS folder.")
    ] = None,
    out: Annotated[Path | None, option("Folder for the results: new, or that of the same run, which goes on.")] = None,
    id: Annotated[str, typer.Option(help="Column with the people's ids.")] = "participant_id",
    diagnosis: Annotated[str, typer.Option(help="Column with the diagnosis labels.")] = "diagnosis",
    control: Annotated[str | None, option("Label(s) of controls; CN, HC, control, 0 ... are recognised.")] = None,
    patients: Annotated[str | None, option("Label(s) of patients, e.g. MCI,AD; others are only scored.")] = None,
    covariates: Annotated[str, option("Columns whose effects are removed, e.g. age,sex.")] = "",
    smooth: Annotated[str, option("Covariates whose effect is a curve rather than a line, e.g. age.")] = "",
    interactions: Annotated[str, option("Covariates that change each other's effect, e.g. age:sex.")] = "",
    proportion: Annotated[str | None, option("Head size that the regions are divided by, e.g. icv.")] = None,
    site: Annotated[str | None, option("Column with the site: its shifts and scales are removed (ComBat).")] = None,
    small_sites: Annotated[
        str, typer.Option(help="Sites with fewer than 5 controls: refuse, or drop their people.")
    ] = "refuse",
    visit: Annotated[str | None, option("Column that tells a person's repeated visits apart.")] = None,
    clinical: Clinical = "",
    join: Join = "",
    dictionary: Annotated[Path | None, option("Data dictionary of the table: CSV, TSV, Excel or BIDS JSON.")] = None,
    drop_missing: DropMissing = False,
    drop_outliers: Annotated[
        bool, typer.Option("--drop-outliers", help="Leave out people far from all others; they are listed.")
    ] = False,
    features: Annotated[str | None, option("Regions: names, prefix*, or a file of names.", "all numbers")] = None,
    exclude: Exclude = "",
    unit: Annotated[str | None, option("Unit of the regions, e.g. mL; kept with the model.")] = None,
    patterns: Annotated[
        str, typer.Option(help="Disease patterns to look for: 3, or several to choose from: 2-5.")
    ] = "3",
    orthogonality: Annotated[
        str | None, option("How strongly patterns are kept apart; several to choose from: 0.2,0.4,0.8.", "by preset")
    ] = None,
    repetitions: Repetitions = 10,
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Train every setting in full.")] = False,
    null: Annotated[
        int, typer.Option(help="Refits with people dealt out anew (19 or more): is there anything to find?")
    ] = 0,
    preset: Annotated[str, typer.Option(help="fast, paper or official.")] = "fast",
    latent: Annotated[
        str | None, option("independent or correlated: whether severities may be correlated.", "by preset")
    ] = None,
    steps: Steps = None,
    seed: Seed = 0,
    config: Annotated[Path | None, option("Run again what the run.toml of a run says.")] = None,
    workers: Annotated[int | None, option("Train in this many processes.", "threads", min=1)] = None,
    dask: Annotated[str | None, option("Train on a Dask cluster: tcp://HOST:PORT, or local.")] = None,
    models_per_chunk: Annotated[int | None, option("Models that train together.", "what fits", min=1)] = None,
    report: Annotated[bool, typer.Option(help="Write report.html.")] = True,
    subgroup_limits: Limits = _LIMITS,
    show_ids: ShowIds = False,
    figures: Figures = None,
    bids: Annotated[bool, typer.Option("--bids", help="Also write r_indices.tsv and .json as BIDS has them.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    log_json: Annotated[bool, typer.Option("--log-json", help="Print one JSON object a line.")] = False,
) -> None:
    """Learn patterns and give everybody R-indices.

    The table is checked first; a mistake in it is told by column and row, and nothing is written. With several numbers
    of patterns, the one whose repeated trainings agree best is chosen. A run that was interrupted goes on when the
    same command is repeated.
    """
    set_output(quiet=quiet, log_json=log_json)
    if out is None:
        raise InputError("A folder for the results is needed.\nGive one with --out FOLDER.")
    if config is not None:
        source, options, models_per_chunk = replayed(context, config, table, models_per_chunk)
    elif table is None:
        raise InputError("A table is needed: rindices fit TABLE --out FOLDER.")
    else:
        roles: dict[str, Any] = {
            "id": id,
            "diagnosis": diagnosis,
            "control": control,
            "patients": patients,
            "covariates": covariates,
        }
        roles |= {"site": site, "small_sites": small_sites, "visit": visit}
        others = {id, diagnosis, site, visit, proportion, *names_of(covariates), *names_of(smooth)} - {None}
        scores, tables = clinical_columns(clinical, names_of(join), id, {str(name) for name in others})
        roles |= {"clinical": scores, "join": tables}
        roles |= {"dictionary": None if dictionary is None else str(dictionary)}
        roles |= {"drop_missing": drop_missing, "drop_outliers": drop_outliers}
        source = {"path": str(table), **roles, "features": features, "exclude": exclude, "unit": unit}
        source |= {"smooth": names_of(smooth), "interactions": names_of(interactions), "proportion": proportion}
        options = {"n_patterns": numbers("--patterns", patterns, int)}
        options |= {
            "orthogonality": None if orthogonality is None else numbers("--orthogonality", orthogonality, float)
        }
        options |= {"n_repetitions": repetitions, "exhaustive": exhaustive, "n_null": null, "preset": preset}
        options |= {"max_steps": steps, "latent": latent, "random_state": seed}
    check_options(options)
    wanted = {"report": report, "limits": limits_of(subgroup_limits), "show_ids": show_ids, "figures": figures}
    options["models_per_chunk"] = models_per_chunk
    _fit(source, options, out, wanted | {"bids": bids}, overwrite=overwrite, cluster=dask, workers=workers)


def _fit(
    source: dict[str, Any], options: dict[str, Any], out: Path, wanted: dict[str, Any], *, overwrite: bool, **where: Any
) -> None:
    from rindices.run.folder import check_free, is_complete

    check_free(out)
    _check_figures(wanted["figures"], out)
    _check_inputs(source, out)
    expected, plan = source.pop("sha256", None), options.pop("models_per_chunk")
    cohort, unit = _read(source)
    if expected is not None and cohort.sha256 != expected:
        raise InputError(
            f"{source['path']} is not the table that the run was made of: its contents differ.\n"
            "Give that table: rindices fit TABLE --config run.toml --out FOLDER. For another table, leave out --config."
        )
    _check_patterns(options["n_patterns"], cohort)
    describe_cohort(cohort)
    settings = settings_of(cohort, source | {"unit": unit}, options)
    if not overwrite and is_complete(out, settings):
        console.print(f"This very run is already complete: nothing to do. {_how_else(out, wanted)}")
        describe_places(out, report=(out / "report.html").is_file())
        log("done", status="done", exit_code=0, out=str(out))
        console.print("Done before.", style="green")
        return
    options = options | {"models_per_chunk": plan, "correction": corrected(source)}
    summary = train_and_write(cohort, options, out, wanted, settings=settings, overwrite=overwrite, **where)
    describe_run(summary, out, cohort, report=wanted["report"])


def _how_else(out: Path, wanted: dict[str, Any]) -> str:
    """Say how to get what a finished run was asked for besides."""
    if wanted["bids"] and not (out / "bids").is_dir():
        return "Its BIDS files are not there: repeat the command with --bids --overwrite to make it again with them."
    asked = " --show-ids" if wanted["show_ids"] else ""
    asked += "" if wanted["figures"] is None else f" --figures {wanted['figures']}"
    asked += "" if wanted["limits"] == limits_of(_LIMITS) else " --subgroup-limits {:g},{:g}".format(*wanted["limits"])
    if asked:
        return f"Write its report again with{asked}: rindices report {out}{asked}"
    return (
        "--overwrite makes it again; "
        f"rindices report {out} writes only its report again (--show-ids, --figures, --subgroup-limits)."
    )


def _check_inputs(source: dict[str, Any], out: Path) -> None:
    """Refuse a table that lies in the folder for the results, which has files of its own by such names."""
    for path in (source["path"], source["dictionary"], *source["join"]):
        if path is not None and out.resolve() in Path(path).resolve().parents:
            raise InputError(
                f"{path} lies in {out}, where the results go and could replace it.\nChoose another folder with --out."
            )


def _check_patterns(n_patterns: list[int], cohort: Cohort) -> None:
    most, n_regions = max(n_patterns), cohort.features.shape[1]
    if most > n_regions:
        raise InputError(
            f"{most} patterns cannot be told apart in {n_regions} regions.\nAsk for fewer with --patterns, such as 2-5."
        )


def _check_figures(figures: Path | None, out: Path) -> None:
    check_folder(figures, "figures")
    inside = figures is not None and out.resolve() in figures.resolve().parents
    if figures is not None and inside and figures.resolve() != (out / "figures").resolve():
        raise InputError(
            f"--figures {figures} lies in the run folder.\nChoose {out / 'figures'}, or a folder elsewhere."
        )


def _read(source: dict[str, Any]) -> tuple[Cohort, str | None]:
    """Read the cohort and tell the unit of its regions; covariates of the correction need no second mention."""
    from rindices.cohort import read_cohort
    from rindices.interop.muse import MUSE72, MUSE72_NAMES, UNIT, with_muse72

    roles = {name: value for name, value in source.items() if name not in CORRECTION and name not in ("path", "unit")}
    roles |= {"covariates": covariates_of(source), "proportion": source["proportion"]}
    if source["features"] != MUSE72:
        cohort = read_cohort(source["path"], **roles)
        return cohort, source["unit"] or cohort.unit
    others = {"features": MUSE72_NAMES, "exclude": ()}
    prepare = lambda table: with_muse72(table, source["exclude"])  # noqa: E731 (one line says it)
    return read_cohort(source["path"], **roles | others, prepare=prepare), source["unit"] or UNIT


def settings_of(cohort: Cohort, source: dict[str, Any], options: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return all that is needed to run the same again."""
    from rindices.interop.muse import MUSE72
    from rindices.run.workflow import place

    table = {name: value for name, value in source.items() if name != "exclude"} | {
        "sha256": cohort.sha256,
        "covariates": [str(name) for name in cohort.covariates.columns],
    }
    if source.get("features") == MUSE72:
        table["exclude"] = source["exclude"]  # which of the table's columns were summed
    else:
        table["features"] = [str(name) for name in cohort.features.columns]
    command = {"line": shlex.join(["rindices", *sys.argv[1:]])}
    return {"command": command, "table": table, "training": options, **place()}


def train_and_write(
    cohort: Cohort,
    options: dict[str, Any],
    out: Path,
    wanted: dict[str, Any] | None = None,
    *,
    settings: dict[str, dict[str, Any]],
    cluster: str | None = None,
    workers: int | None = None,
    **rest: Any,
) -> dict[str, Any]:
    """Load the engine, train behind progress bars, and write the run folder."""
    from rindices.run.workflow import Wanted, fit_to_folder
    from rindices.search import SurrealGANSearch
    from rindices.training.clusters import parallel

    search, ending = SurrealGANSearch(**options), Ending()

    def work() -> dict[str, Any]:
        with parallel(cluster, workers), TrainingBars() as bars:
            told: dict[str, Any] = {"settings": settings, "progress": bars, "ending": ending}
            return fit_to_folder(cohort, search, out, wanted=Wanted(**wanted or {}), **told, **rest)

    how_to_go_on = f"Repeat the same command to go on: what was trained is kept in {out}."
    return interruptible(work, how_to_go_on, ending)
