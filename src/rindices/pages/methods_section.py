"""What was done: a methods paragraph for a paper with the works that it cites, and the settings of the run."""

from pathlib import Path
from typing import NamedTuple

from rindices.pages.layout import RunView, render
from rindices.problems import Curtain
from rindices.record import SETTINGS, Run


class Work(NamedTuple):
    """A work: how it is cited, its authors (surname and initials), and where it appeared."""

    cited: str
    authors: str
    title: str
    journal: str
    year: int
    volume: str = ""
    pages: str = ""

    def __str__(self) -> str:
        """Return the reference as a line of text."""
        where = f"{self.journal} {self.volume}:{self.pages}" if self.volume else self.journal
        return f"{self.authors}. {self.title}. {where}, {self.year}.".replace("--", "–")

    @property
    def bibtex(self) -> str:
        """The reference as an entry of BibTeX."""
        kind, where = ("article", "journal") if self.volume else ("inproceedings", "booktitle")
        people = [name.rsplit(" ", 1) for name in self.authors.removesuffix(", et al").split(", ")]
        authors = " and ".join(f"{surname}, {' '.join(f'{letter}.' for letter in first)}" for surname, first in people)
        fields = {
            "author": authors + (" and others" if self.authors.endswith("et al") else ""),
            "title": f"{{{self.title}}}",
            where: self.journal,
            "volume": self.volume,
            "pages": self.pages,
            "year": str(self.year),
        }
        known = ",\n".join(f"  {name} = {{{value}}}".replace("&", r"\&") for name, value in fields.items() if value)
        key = f"{people[0][0].lower()}{self.year}"
        return f"@{kind}{{{key},\n{known}\n}}"


WORKS = (
    Work(
        "Yang et al., 2022",
        "Yang Z, Wen J, Davatzikos C",
        "Surreal-GAN: Semi-Supervised Representation Learning via GAN for uncovering heterogeneous disease-related "
        "imaging patterns",
        "International Conference on Learning Representations (ICLR)",
        2022,
    ),
    Work(
        "Johnson et al., 2007",
        "Johnson WE, Li C, Rabinovic A",
        "Adjusting batch effects in microarray expression data using empirical Bayes methods",
        "Biostatistics",
        2007,
        "8",
        "118--127",
    ),
    Work(
        "Fortin et al., 2018",
        "Fortin JP, Cullen N, Sheline YI, et al",
        "Harmonization of cortical thickness measurements across scanners and sites",
        "NeuroImage",
        2018,
        "167",
        "104--120",
    ),
    Work(
        "Pomponio et al., 2020",
        "Pomponio R, Erus G, Habes M, et al",
        "Harmonization of large MRI datasets for the analysis of brain imaging patterns throughout the lifespan",
        "NeuroImage",
        2020,
        "208",
        "116450",
    ),
    Work(
        "Huh & Jhun, 2001",
        "Huh MH, Jhun M",
        "Random permutation testing in multiple linear regression",
        "Communications in Statistics - Theory and Methods",
        2001,
        "30",
        "2023--2032",
    ),
    Work(
        "Benjamini & Hochberg, 1995",
        "Benjamini Y, Hochberg Y",
        "Controlling the false discovery rate: a practical and powerful approach to multiple testing",
        "Journal of the Royal Statistical Society B",
        1995,
        "57",
        "289--300",
    ),
)


def cited_in(text: str) -> list[Work]:
    """Return the works that a text cites.

    Examples
    --------
    >>> [work] = cited_in("learned by Surreal-GAN (Yang et al., 2022)")
    >>> work.bibtex.splitlines()[:2]
    ['@inproceedings{yang2022,', '  author = {Yang, Z. and Wen, J. and Davatzikos, C.},']
    """
    return [work for work in WORKS if work.cited in text]


def methods_of(run: Run) -> str:
    """Return a paragraph for a paper in plain text."""
    return " ".join(render("methods.txt.j2", run=run, summary=run.summary).split())


def methods_section(view: RunView) -> dict[str, object]:
    """Return the paragraph for a paper and the works that it cites."""
    text = methods_of(view.run)
    return {"text": text, "works": cited_in(text)}


def settings_section(view: RunView) -> dict[str, object]:
    """Return the settings of the run as its folder has them."""
    return {"run_toml": settings_text(view.run.folder, view.curtain)}


def settings_text(folder: Path, curtain: Curtain) -> str:
    """Return ``run.toml`` without ids; whatever is left of a run that stopped must not stop its report."""
    path = folder / SETTINGS
    return curtain(path.read_text("utf-8", errors="replace")) if path.is_file() else ""
