"""`rindices power`: what a study of some size can find, before anybody is scanned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rindices.cli.console import console, show_places
from rindices.cli.options import check_output, command
from rindices.files import atomic_file
from rindices.problems import InputError, Remedy, counted
from rindices.settings import PowerSettings

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

_FIGURE = (".png", ".svg")
_COVARIATES = ("age", "sex")


@command()
def power(*, asked: PowerSettings) -> None:
    """Say how likely a study of some size finds its patterns.

    From a table of simulated studies: one to three patterns, each of which changes a quarter of the regions by 0.5, 1
    or 2 standard deviations at severity 1. Patterns count as found if patients and controls differ and as many
    directions are found again in people who were left out. Severities are those of the linear model.
    """
    from rindices.run import planning

    check_output(asked.figure, "figure", _FIGURE, *([] if asked.like is None else [asked.like]))
    if asked.like is not None and asked.figure is not None:
        raise InputError(
            "The figure is of the studies that come with rindices, not of your own people.\nLeave out ",
            Remedy("like"),
            " or ",
            Remedy("figure"),
            ".",
        )
    if asked.like is None:
        table, n_regions = planning.chances(asked.n_controls, asked.n_patients, asked.n_regions), asked.n_regions
    else:
        table, n_regions = _own(asked.like, asked.n_controls, asked.n_patients)
    sizes = f"{counted(asked.n_controls, 'control')}, {counted(asked.n_patients, 'patient')}"
    console.print(f"{sizes}, {counted(n_regions, 'region')}: chance to find all patterns, and error of severities.")
    for row in table.to_dict("records"):
        console.print(
            f"{counted(int(row['patterns']), 'pattern')} of {row['strength']:g} sd: {100 * row['chance']:.0f} % "
            f"({100 * row['low']:.0f} to {100 * row['high']:.0f}; {row['studies']:.0f} studies), "
            f"error {row['error']:.2f}, concordance {row['concordance']:.2f}"
        )
    console.print(
        "A pattern changes a quarter of the regions, at severity 1 by so many sd of controls; severities are uniform. "
        "Patterns of a real disease may be narrower, and its people more alike."
    )
    if asked.figure is not None:
        _draw(asked.figure, asked, n_regions)
        show_places({"Figure": asked.figure})


def _own(path: Path, n_controls: int, n_patients: int) -> tuple[pd.DataFrame, int]:
    """Simulate studies of the user's own healthy people; return what they find, and the number of regions."""
    import numpy as np
    import pandas as pd

    from rindices.run import planning
    from rindices.simulate.healthy_people import own_people
    from rindices.tables import read_table

    people = own_people(read_table(path), None, None, None, np.random.default_rng(0))
    known = [name for name in _COVARIATES if name in people.table]
    columns = [people.table[name] for name in known]
    numbers = [one.to_numpy(float) if one.dtype.kind in "fi" else pd.factorize(one)[0] for one in columns]
    design = np.column_stack(numbers) if numbers else None
    healthy = people.table[people.regions].to_numpy(float)
    return planning.like(healthy, design, n_controls, n_patients), len(people.regions)


def _draw(path: Path, asked: PowerSettings, n_regions: int) -> None:
    from rindices import plots
    from rindices.run import planning

    figure = plots.power_curves(planning.by_size(n_regions), asked.n_controls, asked.n_patients)
    with atomic_file(path) as beside:
        if path.suffix.casefold() == ".png":
            plots.figure_png(figure, beside)
        else:
            beside.write_text(plots.figure_svg(figure), encoding="utf-8")
