"""From a run folder to one HTML file that needs nothing else."""

import html
from dataclasses import dataclass, field
from pathlib import Path

from rindices.pages.elements import Gallery
from rindices.pages.layout import offline_page, write_page
from rindices.pages.privacy import Curtain
from rindices.pages.run_view import view_of
from rindices.pages.sections import layers_of
from rindices.pages.sections.methods_section import settings_text
from rindices.record import DONE, REPORT, Summary, read_run, read_summary


@dataclass(frozen=True)
class Report:
    """A report: a single, self-contained HTML page.

    Attributes
    ----------
    html
        The page.
    status
        Whether the run is ``done``, ``failed`` or ``unfinished``; there are no results in the last two cases.
    gallery
        Its figures.
    height
        Height in a notebook, in pixels.

    Examples
    --------
    >>> Report("<p>R1 & R2</p>")._repr_html_().count("&amp;amp;")
    0
    """

    html: str = field(repr=False)
    status: str = DONE
    gallery: Gallery = field(default_factory=Gallery, repr=False)
    height: int = 700

    def save(self, path: Path | str) -> Path:
        """Write the page to a file, whole or not at all, and return its path."""
        return write_page(Path(path), self.html)

    def save_figures(self, folder: Path | str) -> list[Path]:
        """Write every figure as SVG and PNG and return the paths."""
        return self.gallery.save(Path(folder))

    def _repr_html_(self) -> str:
        # A frame of its own: neither styles nor scripts of the page reach the notebook.
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: {self.height}px; border: 0" title="R-indices report"></iframe>'
        )


def make_report(folder: Path | str, *, summary: Summary | None = None, show_ids: bool = False) -> Report:
    """Return the report of a run as a single, self-contained page.

    The report of a run that failed or is not finished says so, with the reason and what to do, and shows no results.

    Parameters
    ----------
    folder
        A run folder.
    summary
        The contents of ``summary.json``, if it has not been written yet.
    show_ids
        Whether people can be looked up by id. Otherwise, the page contains no ids.

    Raises
    ------
    InputError
        If a file of the run folder is missing or damaged; the message names it and says what to do.

    Examples
    --------
    >>> make_report("no-such-run")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    rindices.problems.InputError: In no-such-run, summary.json is missing. Give the folder of a finished run, ...
    """
    folder = Path(folder)
    summary = summary or read_summary(folder)
    if summary.status != DONE:
        curtain = Curtain((), active=not show_ids)  # nobody was scored, so ids are known by their mention only
        data = {"run_toml": settings_text(folder, curtain)}
        return Report(offline_page("stopped.html.j2", summary=curtain.summary(summary), data=data), summary.status)
    view = view_of(read_run(folder, summary), show_ids=show_ids)
    page = offline_page(
        "results.html.j2",
        script=True,
        name="R-indices",
        summary=view.summary,
        layers=layers_of(view),
        measure=view.results.measure,
        n_people=len(view.results.first_visits),
    )
    return Report(page, DONE, view.gallery)


def write_report(
    folder: Path | str,
    out: Path | str | None = None,
    *,
    summary: Summary | None = None,
    show_ids: bool = False,
    figures: Path | str | None = None,
) -> Path:
    """Write the report of a run as a single HTML file (see `make_report`) and return its path.

    Parameters
    ----------
    folder, summary, show_ids
        As in `make_report`.
    out
        The file to write; ``report.html`` in the run folder if not given.
    figures
        A folder for all figures as SVG and PNG files.
    """
    report = make_report(folder, summary=summary, show_ids=show_ids)
    if figures is not None:
        report.save_figures(figures)
    return report.save(Path(folder) / REPORT if out is None else out)
