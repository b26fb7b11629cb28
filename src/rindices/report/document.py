"""The finished page as an object: to be saved, or shown in a notebook."""

import html
from dataclasses import dataclass, field
from pathlib import Path

from rindices.files import atomic_file
from rindices.report.pieces import Gallery


@dataclass(frozen=True)
class Report:
    """A report: one HTML page that needs nothing else.

    Attributes
    ----------
    html
        The page.
    gallery
        Its figures.
    height
        Height in a notebook, in pixels.

    Examples
    --------
    >>> Report("<p>R1 & R2</p>")._repr_html_().count("&amp;amp;")
    0
    """

    html: str
    gallery: Gallery = field(default_factory=Gallery, repr=False)
    height: int = 700

    def save(self, path: Path | str) -> Path:
        """Write the page to a file, whole or not at all, and return its path."""
        path = Path(path)
        with atomic_file(path) as beside:
            # A name may hold half a character (a lone surrogate), which no file can.
            beside.write_bytes(self.html.encode("utf-8", errors="replace"))
        return path

    def save_figures(self, folder: Path | str) -> list[Path]:
        """Write every figure as SVG and PNG and return the paths."""
        return self.gallery.save(Path(folder))

    def __repr__(self) -> str:
        return f"Report of {len(self.html):,} characters with {len(self.gallery.figures)} figures"

    def _repr_html_(self) -> str:
        # A frame of its own: neither styles nor scripts of the page reach the notebook.
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: {self.height}px; border: 0" title="R-indices report"></iframe>'
        )
