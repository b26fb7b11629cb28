"""Commands between runs and between people: two runs compared, a model shared and verified."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rindices.cli.console import console, show_places, show_verdict
from rindices.cli.options import MODEL, Only, argument, check_output, command, option
from rindices.problems import counted, listed
from rindices.settings import OutputSettings, ShareSettings

_ARCHIVE = (".zip",)


@command()
def compare(
    first: Annotated[Path, argument("The folder of a finished run.")],
    second: Annotated[Path, argument("The folder of another one.")],
    out: Annotated[Path | None, option("Folder for tables and a page, whose files are replaced.")] = None,
    *,
    output: Annotated[OutputSettings, Only("show_ids")],
) -> None:
    """Compare two runs: patterns matched, people in both, maps side by side, who moved.

    Patterns are matched by the order in which they put the patients who are in both; with fewer than 20, by their maps.
    """
    from rindices.run.compare_runs import check_comparison_folder, compare_runs, write_comparison

    check_comparison_folder(out, first, second)
    compared = compare_runs(first, second)
    for run in (compared.first, compared.second):
        show_verdict(run.summary, f"{run.folder} ({counted(run.summary.n_patterns, 'pattern')}): ")
    for name, before, now in compared.settings:
        console.print(f"{name}: {before} in the first, {now} in the second.")
    n_people = counted(len(compared.people), "person is", "people are")
    console.print(
        f"{n_people} in both, {compared.n_patients} of them patients. Patterns are matched by {compared.matched_by}."
    )
    for pair in compared.pairs:
        parts = [f"Pattern {pair.first} of the first and {pair.second} of the second"]
        if compared.n_patients > 1:
            parts.append(f"concordance {pair.concordance:.3f} (0.5 is chance)")
        if pair.map_correlation == pair.map_correlation:  # a number
            parts.append(f"correlation of the maps {pair.map_correlation:.2f}")
        if len(compared.people):
            parts.append(f"mean difference {pair.difference:+.3f}, sd {pair.sd:.3f}")
        if pair.moved is not None and len(compared.people):
            parts.append(f"{counted(pair.moved, 'person', 'people')} moved beyond both intervals")
        console.print("; ".join(parts) + ".")
    for side, numbers in zip(("first", "second"), compared.unmatched, strict=True):
        if numbers:
            console.print(f"Without a partner in the {side}: pattern {listed(numbers)}.")
    if out is not None:
        page = write_comparison(compared, out, show_ids=output.show_ids)
        show_places({"Page": page, "Tables": out})


@command()
def share(
    folder: Annotated[Path, argument("The folder of a finished run.")],
    out: Annotated[Path, option("Archive to write (.zip), replaced if it exists.")],
    *,
    card: ShareSettings,
) -> None:
    """Pack a model to pass it on: with a card, and made-up people whose scores the receiver can verify."""
    from rindices.record import read_summary
    from rindices.run.share_model import share_model

    check_output(out, "out", _ARCHIVE)
    share_model(folder, out, card)
    show_verdict(read_summary(folder), "The card says: ")
    unsaid = [name for name, text in vars(card).items() if not text]
    if unsaid:
        console.print(f"The card does not state: {listed(unsaid)}. Say it with --{' ... --'.join(unsaid)} ...")
    show_places({"Archive": out})


@command()
def verify(
    archive: Annotated[Path, argument("An archive of rindices share.")],
    out: Annotated[Path | None, option("Then write its model here (.safetensors), replaced if it exists.")] = None,
) -> None:
    """Check a shared model: nothing was changed, and it gives its made-up people the scores that were sent along."""
    from rindices.run.share_model import verify_model

    check_output(out, "out", MODEL, archive)
    verified = verify_model(archive, out)
    console.print(
        f"Verified: {verified.n_examples} made-up people get the scores that were sent along (largest difference "
        f"{verified.difference:.1g}). Written by rindices {verified.package_version}.",
        style="green",
    )
    show_places({"Model": out})
