"""Commands on existing models and runs: apply, adapt, import, share or verify models; show or compare runs."""

from __future__ import annotations

import sys
import threading
import webbrowser
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rindices.cli.console_and_exits import (
    console,
    counting_bar,
    on_command_line,
    show_places,
    show_verdict,
    warn,
)
from rindices.cli.options import (
    MODEL,
    PAGE,
    TABLE,
    Model,
    argument,
    check_output,
    command,
    option,
)
from rindices.files import check_folder
from rindices.presets import Correction
from rindices.problems import InputError, counted, listed, shown, worded
from rindices.settings import ApplySettings, ImageSettings, OutputSettings, ReportSettings, ShareSettings
from rindices.value_kinds import paths_of

if TYPE_CHECKING:
    import pandas as pd


@command()
def apply(
    model: Model,
    table: Annotated[Path, argument("Table of people with one row per person: CSV, TSV, Excel or Parquet.")],
    out: Annotated[Path, option("Table of R-indices to write (.csv); an existing file is replaced.")],
    report: Annotated[
        Path | None, option("Also write a report on these people (.html); an existing file is replaced.")
    ] = None,
    *,
    columns: ApplySettings,
    output: Annotated[OutputSettings, "level", "scan_noise", "show_ids", "figures"],
) -> None:
    """Score new people with a trained model.

    Regions, covariates, codes and units are checked against the training table.
    """
    from rindices.run.apply_table import apply_table

    if report is None and (output.show_ids or output.figures is not None):
        raise InputError("--show-ids and --figures apply only to the report.\nRequest a report with --report FILE.")
    check_folder(output.figures, "figures")
    inputs = [Path(str(path).partition("#")[0]) for path in (table, *paths_of(columns.join))]
    for path, name, endings in ((out, "out", TABLE), (report, "report", PAGE)):
        check_output(path, name, endings, *inputs, model)
    with counting_bar("Scoring people", transient=True) as bar:
        done = apply_table(
            model, table, out, columns, report=report, output=output, progress=bar, wording=on_command_line
        )
    summary = done.summary
    who = counted(summary.n_controls + summary.n_patients + summary.n_other, "person", "people")
    who += f" at {counted(done.n_rows, 'visit')}" if summary.visits else ""
    console.print(f"Scored {who}, using {counted(summary.n_features, 'region')}.")
    if done.n_flagged:
        console.print(
            f"{counted(done.n_flagged, 'person is', 'people are')} outside the training range"
            f"{' or from an unknown site' if columns.new_sites == 'uncorrected' else ''}; see the flags column.",
            style="yellow",
        )
    warn(summary.warnings)
    if done.scan_noise is not None:
        console.print(f"The time between visits is taken from {summary.years_from}.")
        console.print(_noise_in_words(done.scan_noise))
    if summary.verdict is not None:
        show_verdict(summary, "Verdict of the training run: ")
    show_places({"R-indices": out, "Change": done.change, "Left out": done.left_out, "Report": report})


def _noise_in_words(noise: pd.DataFrame) -> str:
    """Return in words what the intervals of changes between visits are based on, or why there are none."""
    about = noise.iloc[0]
    came = counted(int(about["n_controls"]), "control")
    if about["source"] == "unknown":
        return (
            f"Changes between visits have no intervals: {came} had repeated visits, too few to estimate "
            "the scan noise.\n"
            "Add repeated scans of controls, or specify the noise with --scan-noise."
        )
    whose = "that you specified" if about["source"] == "given" else f"of {came} with repeated visits"
    sizes = ", ".join(f"{sd:.3f}" for sd in noise["sd"])
    return f"Changes between visits are judged against the scan noise {whose} (sd of each severity: {sizes})."


@command()
def adapt(
    model: Model,
    table: Annotated[
        Path, argument("Table of controls from new sites, with the site in the same column as in the training table.")
    ],
    out: Annotated[Path, option("Model file to write (.safetensors); an existing file is replaced.")],
    few_controls: Annotated[
        bool, option("Also estimate the effects of sites with only five to nine controls.")
    ] = False,
    *,
    columns: Annotated[ApplySettings, "id", "exclude", "join", "missing"],
) -> None:
    """Extend a model to new sites, using controls measured there.

    Offsets and scales of the sites are estimated as in training; scores at other sites do not change.
    """
    from rindices.run.apply_table import adapt_model

    check_output(out, "out", MODEL, table, *paths_of(columns.join), model)
    done = adapt_model(model, table, out, columns, few_controls=few_controls, wording=on_command_line)
    for site, number in done.controls.items():
        console.print(f"Estimated the effects of site {site} from {counted(number, 'control')}.")
    if done.n_unused:
        console.print(
            "Only controls at their first visit were used; "
            f"{counted(done.n_unused, 'other row was', 'other rows were')} ignored."
        )
    warn(done.warnings)
    console.print(
        "Compare patients with other controls from these sites, because those used here define the reference."
    )
    show_places({"Model": out})


@command("import-official")
def import_official(
    file: Annotated[Path, argument("A checkpoint from the authors' package (.pt).")],
    out: Annotated[Path, option("Model file to write (.safetensors); an existing file is replaced.")],
    features: Annotated[
        str,
        option("Regions used by the checkpoint, in their original order: names, a file of names, or muse72."),
    ],
    covariates: Annotated[
        str,
        option(
            "Covariates used by the checkpoint, in their original order, such as sex,age or sex,MUSE_Volume_702.",
            "inferred from their ranges",
        ),
    ] = "",
    entry: Annotated[int | None, option("Entry of the checkpoint to convert.", "the only one")] = None,
) -> None:
    """Convert a model of the authors' package.

    Nothing in the checkpoint is executed. Only numbers and plain containers are read; anything else is refused.
    """
    check_output(out, "out", MODEL, file)
    from rindices.interop import checkpoint_to_model

    imported = checkpoint_to_model.import_official(file, features, covariates, entry)
    imported.save(out)
    describe(model=out)
    console.print(imported.verdict_[1] or "This is not one of the two models published by the authors.")
    console.print(
        "The file does not contain the training data, so the ranges of these data and the agreement between "
        "repetitions are unknown."
    )


@command()
def describe(model: Model) -> None:
    """Describe a model and the table it expects."""
    from rindices.model import read_header
    from rindices.record.documents import verdict_words

    header = read_header(model)
    contract, parameters, agreement = header.contract, header.parameters, header.agreement["pattern_agreement"]
    spans = [
        f"{spec.name} ({', '.join(spec.categories)})"
        if spec.categories
        else f"{spec.name} ({shown(spec.minimum)} to {shown(spec.maximum)}"
        + (f" in {100 - 200 * spec.quantile:.0f} % of the training sample)" if spec.quantile else ")")
        for spec in contract.covariates
    ]
    ranges = (
        "an unknown range in training"
        if None in contract.feature_minimum
        else f"the range of {100 - 200 * contract.quantile:.0f} % of the training sample"
    )
    lines = {
        "Model": model,
        "Made by": f"rindices {header.package_version}",
        "Patterns": parameters.n_patterns,
        "Preset": f"{parameters.preset.name}, seed {'unknown' if header.seed is None else header.seed}, "
        f"step {header.step:,}",
        "Repetitions": f"{len(header.members)} used, {len(header.left_out)} excluded",
        "Agreement": "unknown (one repetition)" if agreement is None else f"{agreement:.3f} (0.5 is chance)",
        "Verdict": " ".join(verdict_words(header.verdict[0], parameters.n_patterns, header.n_supported)).rstrip(),
        "Controls": ", ".join(contract.control_labels) or "y = 0",
        "Patients": ", ".join(contract.patient_labels) or "y = 1",
        "Id column": contract.id_column,
        "Visits": contract.visit_column or "one per person",
        "Covariates": "; ".join(spans) or "none",
        "Correction": _correction(parameters.correction) or ("straight lines" if spans else "none"),
        "Unit": contract.unit or "not stated",
        "Regions": f"{len(contract.features)}, with {ranges}:",
    }
    for name, value in lines.items():
        console.print(f"{name + ':':<13}{value}")
    for region, low, high in zip(contract.features, contract.feature_minimum, contract.feature_maximum, strict=True):
        console.print(
            f"  {region}" if low is None or high is None else f"  {region:<32} {shown(low):>10} to {shown(high)}"
        )


def _correction(correction: Correction | None) -> str:
    """Return in words how covariates are corrected, if by more than straight lines."""
    given = correction or Correction()
    words = {
        "smooth curve for": ", ".join(given.smooth),
        "interaction between": ", ".join(" and ".join(pair) for pair in given.interactions),
        "regions divided by": given.proportion,
        "shift and scale removed for each": given.site,
    }
    return "; ".join(f"{what} {names}" for what, names in words.items() if names)


@command()
def report(
    folder: Annotated[Path, argument("A run folder.")],
    out: Annotated[
        Path | None, option("File to write (.html); an existing file is replaced.", "report.html in the folder")
    ] = None,
    *,
    asked: ReportSettings,
) -> None:
    """Rewrite the report of a run, for example with later clinical scores.

    A column of the new table replaces the whole column of the same name in the run.
    """
    from rindices.run.report_and_share import report_again

    check_folder(asked.figures, "figures")
    check_output(out, "out", PAGE, own=folder / "report.html")
    page, notes = report_again(folder, out, asked)
    for sentence in notes:
        console.print(worded(sentence, on_command_line))
    show_places({"Report": page, "Figures": asked.figures})


@command()
def voxelwise(
    folder: Annotated[Path, argument("A run folder.")],
    maps: Annotated[Path, option("Table of people and their images, with the columns participant_id and path.")],
    *,
    asked: ImageSettings,
) -> None:
    """Compare brain images, voxel by voxel, between controls and the patients with each pattern."""
    from rindices.run.report_and_share import compare_images

    with counting_bar("Reading images") as bar:
        table, page = compare_images(folder, maps, asked, bar)
    for row in table.to_dict("records"):
        result = row["note"] or f"{row['n_significant']:,} of {row['n_voxels']:,} voxels with q below 0.05"
        console.print(f"Pattern {row['pattern']}, {row['level']} ({counted(row['n_patients'], 'patient')}): {result}.")
    show_places({"Images, tables": folder / "voxelwise", "Report": page})


# Files in the user's folder are not to be imported as modules, and the log is read as UTF-8 everywhere.
_PROGRAM = (sys.executable, "-P", "-X", "utf8", "-c", "from rindices.cli import main; main()")


@command("open")
def open_folder(
    folder: Annotated[Path, typer.Argument(help="Folder of tables and runs.", show_default="this one")] = Path(),
    port: Annotated[int | None, option("Port on this machine.", "a free one", min=1, max=65535)] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Work in the browser, on this machine only.

    Check tables, train, view the results of groups and individuals, and score new people. Runs are saved in the folder.
    The printed address works in one browser only. Ctrl-C stops the page, but training runs continue.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"The page requires {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed.\n"
            f'Install {"it" if len(missing) == 1 else "them"} with: pip install "rindices[app]"'
        )
    if not folder.is_dir():
        raise InputError(f"No folder was found at {folder}.\nProvide the folder that contains your tables and runs.")
    from rindices.pages.server.addresses import serve

    def ready(address: str) -> None:
        console.print(f"Serving {folder.resolve()} on this machine only (127.0.0.1). Press Ctrl-C to stop.")
        console.print(address, style="bold")
        console.print("The address works only once, in one browser; do not share it.")
        if browser:
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()

    try:
        serve(folder, port, ready=ready, wording=on_command_line, program=_PROGRAM)
    except KeyboardInterrupt:
        console.print("Stopped. Runs in progress will continue; use rindices open to see them again.")


@command()
def compare(
    first: Annotated[Path, argument("The folder of a finished run.")],
    second: Annotated[Path, argument("The folder of another finished run.")],
    out: Annotated[Path | None, option("Folder for the tables and the page; existing files are replaced.")] = None,
    *,
    output: Annotated[OutputSettings, "show_ids"],
) -> None:
    """Compare two runs: their patterns, maps and scores.

    Patterns are matched by how they rank the patients who are in both runs or, if there are fewer than 20 of these, by
    their maps.
    """
    from rindices.run.compare_runs import check_comparison_folder, compare_runs, write_comparison

    if out is not None:
        check_comparison_folder(out, first, second)
    compared = compare_runs(first, second)
    for run in (compared.first, compared.second):
        show_verdict(run.summary, f"{run.folder} ({counted(run.summary.n_patterns, 'pattern')}): ")
    for name, before, now in compared.settings:
        console.print(f"{name}: {before} in the first run, {now} in the second.")
    n_both = len(compared.people)
    console.print(
        f"{counted(n_both, 'person is', 'people are')} in both runs, {compared.n_patients:,} of them patients. "
        "Patterns were matched by "
        f"{'how they rank these patients' if compared.matched_by == 'people' else 'their maps'}."
    )
    warn(compared.warnings)
    for pair in compared.pairs:
        parts = [f"Pattern {pair.first} of the first run and pattern {pair.second} of the second"]
        if not isnan(pair.concordance):
            parts.append(f"concordance {pair.concordance:.3f} (0.5 is chance)")
        if not isnan(pair.map_correlation):
            parts.append(f"correlation of the maps {pair.map_correlation:.2f}")
        if n_both:
            parts.append(f"mean difference in severity {pair.difference:+.3f} (sd {pair.sd:.3f})")
        if n_both and pair.moved is not None:
            parts.append(f"{counted(pair.moved, 'person', 'people')} with non-overlapping intervals")
        console.print("; ".join(parts) + ".")
    for side, numbers in zip(("first", "second"), compared.unmatched, strict=True):
        if numbers:
            console.print(
                f"Unmatched in the {side} run: {'pattern' if len(numbers) == 1 else 'patterns'} {listed(numbers)}."
            )
    if out is not None:
        show_places({"Page": write_comparison(compared, out, show_ids=output.show_ids), "Tables": out})


@command()
def share(
    folder: Annotated[Path, argument("The folder of a finished run.")],
    out: Annotated[Path, option("Archive to write (.zip); an existing file is replaced.")],
    *,
    card: ShareSettings,
) -> None:
    """Pack a model for sharing, with a card and simulated people whose scores the recipient can verify."""
    from rindices.record import read_summary
    from rindices.run.report_and_share import share_model

    check_output(out, "out", (".zip",))
    share_model(folder, out, card)
    show_verdict(read_summary(folder), "The card says: ")
    unsaid = [name for name, text in vars(card).items() if not text]
    if unsaid:
        console.print(
            f"Missing from the card: {listed(unsaid)}. To add this information, use --{' ... --'.join(unsaid)} ..."
        )
    show_places({"Archive": out})


@command()
def verify(
    archive: Annotated[Path, argument("An archive written by rindices share.")],
    out: Annotated[
        Path | None, option("Write the verified model to this file (.safetensors); an existing file is replaced.")
    ] = None,
) -> None:
    """Verify that a shared model is unchanged and reproduces the scores supplied with it."""
    from rindices.run.report_and_share import verify_model

    check_output(out, "out", MODEL, archive)
    verified = verify_model(archive, out)
    console.print(
        f"Verified: the model reproduces the scores of the {verified.n_examples} simulated people in the archive "
        f"(largest difference {verified.difference:.1g}). The model was written by rindices "
        f"{verified.package_version}.",
        style="green",
    )
    show_places({"Model": out})
