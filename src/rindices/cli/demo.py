"""`rindices simulate` and `rindices demo`: cohorts with known disease patterns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rindices.cli.application import TABLE, Repetitions, Seed, Steps, app, argument, check_output, option
from rindices.cli.console import console, describe_cohort, describe_run
from rindices.cli.fit import train_and_write
from rindices.cli.stopping import guarded
from rindices.errors import InputError
from rindices.settings import OutputSettings, SearchSettings, TableSettings

_PATTERNS = 3


@app.command()
@guarded
def simulate(
    kind: Annotated[str, argument("basic, overlap, scarce, noise, mild or null.")],
    out: Annotated[Path, option("Table to write (.csv), replaced if it exists.")],
    truth: Annotated[Path | None, option("Also write the true severities here (.csv), replaced if it exists.")] = None,
    controls: Annotated[int | None, option("Number of controls.", "492")] = None,
    patients: Annotated[int | None, option("Number of patients.", "900")] = None,
    patterns: Annotated[int, typer.Option(help="Number of disease patterns.")] = _PATTERNS,
    correlation: Annotated[
        str | None, option("Correlation of the severities' normal scores: a number, or a file with a matrix.", "none")
    ] = None,
    own_controls: Annotated[Path | None, option("Build on your own table of healthy people.")] = None,
    seed: Seed = SearchSettings.random_state,
) -> None:
    """Make a cohort with known disease patterns.

    Built as in the Surreal-GAN paper, from an embedded population or from your own table of healthy people.
    """
    from rindices.simulate import simulate_cohort
    from rindices.tables import read_table

    matrix = None if correlation is None else _correlation(correlation)
    sources = [Path(path) for path in (own_controls, correlation) if path is not None]
    check_output(out, "out", TABLE, *sources)
    check_output(truth, "truth", TABLE, *sources)
    cohort = simulate_cohort(
        kind,
        n_controls=controls,
        n_patients=patients,
        n_patterns=patterns,
        seed=seed,
        controls=None if own_controls is None else read_table(own_controls),
        severity_correlation=matrix,
    )
    cohort.save(out, truth)
    n_patients = len(cohort.truth)
    console.print(
        f"Simulated {kind!r}: {len(cohort.table) - n_patients} controls, {n_patients} patients. {cohort.note}"
    )
    console.print(f"Table: {out}")
    if truth is not None:
        console.print(f"True severities: {truth}")


def _correlation(text: str) -> Any:
    """Read one number, or a file with a matrix: a row a line, numbers separated by spaces or commas."""
    if Path(text).is_file():
        try:
            lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{text} cannot be read as a matrix: {error}.") from error
        return [line.replace(",", " ").replace(";", " ").split() for line in lines if line.strip()]
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"--correlation should be a number or a file with a matrix, found {text!r}.") from error


@app.command()
@guarded
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demonstration.")] = Path("demo"),
    repetitions: Repetitions = 4,
    steps: Steps = SearchSettings.max_steps,
    seed: Seed = SearchSettings.random_state,
) -> None:
    """Find known patterns in a simulated cohort.

    Makes a cohort with three disease patterns, finds them without being told, and compares with the truth.
    """
    from rindices.record import check_free
    from rindices.run.plan import planned
    from rindices.simulate import simulate_cohort

    table, truth, run = out / "cohort.csv", out / "truth.csv", out / "run"
    if out.is_dir() and any(out.iterdir()) and not (run / "summary.json").is_file():
        raise InputError(f"The folder {out} holds other files.\nChoose another folder with --out.")
    check_free(run)
    simulated = simulate_cohort("basic", n_patterns=_PATTERNS, seed=seed)
    simulated.save(table, truth)
    console.print(f"Simulated a cohort of 492 controls and 900 patients with three disease patterns: {table}")
    search = SearchSettings((_PATTERNS,), n_repetitions=repetitions, max_steps=steps, random_state=seed)
    plan = planned(table, run, TableSettings(covariates="age,sex", unit="mL"), search, OutputSettings())
    describe_cohort(plan.cohort, most_names=12)
    summary = train_and_write(plan, truth=simulated.truth, overwrite=True)
    if summary.recovery is not None:
        console.print(
            f"Concordance of the R-indices with the known truth: {summary.recovery.pattern_concordance:.3f} "
            f"({', '.join(f'{value:.3f}' for value in summary.recovery.per_pattern)}; 0.5 is chance, 1 is perfect)",
            style="bold",
        )
    describe_run(summary, run, plan.cohort)
