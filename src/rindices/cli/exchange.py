"""Commands between runs and between people: two runs compared, a model shared and verified."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rindices.cli.console import console, show_places, show_verdict
from rindices.cli.exits import guarded
from rindices.cli.options import ShowIds, app, argument, option
from rindices.errors import counted, listed
from rindices.settings import OutputSettings


@app.command()
@guarded
def compare(
    first: Annotated[Path, argument("The folder of a finished run.")],
    second: Annotated[Path, argument("The folder of another one.")],
    out: Annotated[Path | None, option("Folder for tables and a page, whose files are replaced.")] = None,
    show_ids: ShowIds = OutputSettings.show_ids,
) -> None:
    """Compare two runs: patterns matched, people in both, maps side by side, who moved.

    Patterns are matched by the order in which they put the patients who are in both; with fewer than 20, by their maps.
    """
    from rindices.run.compare_runs import check_comparison_folder, compare_runs, write_comparison

    check_comparison_folder(out, first, second)
    found = compare_runs(first, second)
    for run in (found.first, found.second):
        show_verdict(run.summary, f"{run.folder} ({counted(run.summary.n_patterns, 'pattern')}): ")
    for name, before, now in found.settings:
        console.print(f"{name}: {before} in the first, {now} in the second.")
    n_people = counted(len(found.people), "person is", "people are")
    console.print(
        f"{n_people} in both, {found.n_patients} of them patients. Patterns are matched by {found.matched_by}."
    )
    for pair in found.pairs:
        told = [f"Pattern {pair.first} of the first and {pair.second} of the second"]
        if found.n_patients > 1:
            told.append(f"concordance {pair.concordance:.3f} (0.5 is chance)")
        if pair.map_correlation == pair.map_correlation:  # a number
            told.append(f"correlation of the maps {pair.map_correlation:.2f}")
        if len(found.people):
            told.append(f"mean difference {pair.difference:+.3f}, sd {pair.sd:.3f}")
        if pair.moved is not None and len(found.people):
            told.append(f"{counted(pair.moved, 'person', 'people')} moved beyond both intervals")
        console.print("; ".join(told) + ".")
    for side, numbers in zip(("first", "second"), found.unmatched, strict=True):
        if numbers:
            console.print(f"Without a partner in the {side}: pattern {listed(numbers)}.")
    if out is not None:
        page = write_comparison(found, out, show_ids=show_ids)
        show_places({"Page": page, "Tables": out})
