"""Write docs/reproduction.md, results/reproduction.md and their figures from results/, without new computations.

python experiments/paper/page.py
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import matched_sections as matched
import pandas as pd
import paper_sections as paper
import simulated_sections as simulated
import study_sections as study
from cases import ROOT
from reading import Folder, markdown, paragraph
from tables import RESULTS

from rindices.files import atomic_file

ABOUT = [
    *paragraph(
        "From the tables in `results/`, `make reproduce` generates this page and `results/reproduction.md`. The latter",
        "contains the underlying tables, further experiments (sections B.2, B.7 and B.8, and real people), and the",
        "settings used for every table. `experiments/paper/README.md` names the function and the test for each",
        "equation.",
    ),
    *paragraph(
        "The paper's semi-synthetic cohorts were rebuilt from our reference population (IXI), with 128",
        "regions instead of 139. The seeds of these cohorts were not used to choose settings. Unless stated otherwise,",
        "networks start from random weights, as in the `blind` preset, which was the default at the time; the",
        "[results page](results.md) describes the current default. The experiments on real people, the number of",
        "patterns, and the numbers of models and people needed are older. In these, each repetition used all",
        "participants, severities were assumed to be independent, and the checkpoint with the best agreement was used.",
    ),
]
BESIDE = [
    *paragraph(
        "This file complements `docs/reproduction.md`, which describes the cohorts and lists what was not reproduced.",
        "`make reproduce` generates both.",
    ),
]
SECTIONS = (  # the page opens with Tables 6 and 7, section B.3, longer training and the choice of λ
    paper.at_its_difficulty,
    simulated.table_1,
    lambda folder: sentences(simulated.choice_of_patterns(folder)),
    matched.whole_protocol,
    study.cost,
    lambda folder: sentences(study.models_needed(folder)),
    study.people_needed,
)
FURTHER = (
    simulated.figure_2,
    paper.own_settings,
    lambda folder: ["## Other tables at the paper's own difficulty", "", *paper.other_tables(folder)],
    simulated.choice_of_patterns,
    simulated.table_6,
    simulated.table_7,
    simulated.regularisers,
    study.halves,
    simulated.real_people,
    study.made_up_study,
    study.rate,
    study.models_needed,
)


def sentences(lines: list[str]) -> list[str]:
    """Return a section without its tables and figures, which are in results/reproduction.md."""
    beside = ("|", "![", "Standard errors over cohorts")
    text = "\n".join(line for line in lines if not line.startswith(beside))
    return [*re.sub(r"\n{3,}", "\n\n", text).rstrip().split("\n"), ""]


def settings(folder: Folder) -> list[str]:
    """Return the version, date and device of each table."""
    alike: dict[str, list[str]] = {}
    for path in sorted(folder.path.glob("*.json")):
        about = folder.about(path.stem)
        if "version" in about:
            size = "" if about["comparable"] else ", not of full size"
            made = f"{about['version']}, {about['date']}, {about['device']}{size}"
            alike.setdefault(made, []).append(f"`{path.stem}.csv`")
    lines = ["## Settings", "", "The JSON file next to each table contains all its settings and seeds.", ""]
    table = pd.DataFrame({"tables": {made: ", ".join(names) for made, names in alike.items()}})
    return lines + markdown(table, "version, date, device") if alike else lines


def page(folder: Folder) -> str:
    """Return the page of the documentation."""
    first = ["# Reproduction of the paper's experiments", "", *paper.opening(folder), *paper.summary(folder), *ABOUT]
    return _joined(first, [section(folder) for section in SECTIONS], [])


def further(folder: Folder) -> str:
    """Return results/reproduction.md: further experiments and tables, and all settings."""
    first = ["# Further experiments of the paper", "", *BESIDE]
    return _joined(first, [section(folder) for section in FURTHER], settings(folder))


def _joined(first: list[str], parts: list[list[str]], last: list[str]) -> str:
    return "\n".join([*first, *(line for part in parts for line in part), *last]).rstrip() + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Write both pages."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--results", type=Path, default=RESULTS)
    options.add_argument("--out", type=Path, default=ROOT / "docs" / "reproduction.md")
    chosen = options.parse_args(arguments)
    with atomic_file(chosen.out) as beside:
        beside.write_text(page(Folder(chosen.results)), encoding="utf-8")
    with atomic_file(chosen.results / "reproduction.md") as beside:
        beside.write_text(further(Folder(chosen.results)), encoding="utf-8")


if __name__ == "__main__":
    main()
