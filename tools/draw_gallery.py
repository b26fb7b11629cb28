"""Draw the pictures of docs/gallery.md by running the page's own code on a small simulated cohort.

python tools/draw_gallery.py --work /tmp/gallery

Two runs are trained in that folder (a few minutes on two cores) unless they already exist.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rindices import OutputSettings, SearchSettings, TableSettings, fit_table, simulate_cohort
from rindices.plots import figure_svg
from rindices.run.compare_runs import compare_runs, write_comparison

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, PICTURES = DOCS / "gallery.md", DOCS / "pictures" / "gallery"
# A block of Python, and the picture below it.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n!\[[^\]]*\]\(pictures/gallery/([\w.]+)\))?", re.MULTILINE | re.DOTALL)
TABLE = TableSettings(covariates="age,sex", site="site", visit="session", clinical="memory,carrier", unit="mL")


def write_cohort() -> None:
    """Write a cohort from two sites; half return after two years, when patients have progressed."""
    cohort = simulate_cohort("basic", n_controls=150, n_patients=300, n_patterns=3, seed=2)
    rng, people = np.random.default_rng(2), cohort.table
    severity = cohort.truth.set_index("participant_id").reindex(people["participant_id"]).fillna(0).to_numpy()
    people = people.assign(
        memory=(28 - 9 * severity[:, 0] + 2 * rng.standard_normal(len(people))).round(1),
        carrier=np.where(rng.random(len(people)) < 0.2 + 0.4 * severity[:, 1], "yes", "no"),
        site=rng.choice(["Aachen", "Bristol"], len(people)),
        session="m00",
    )
    later = people[::2].assign(session="m24", age=lambda table: table["age"] + 2)
    for place, regions in enumerate(cohort.patterns.values()):
        more = 0.2 * rng.uniform(size=len(later)) * (severity[::2, place] > 0)  # increase in severity over two years
        later[list(regions)] *= 1 - 0.3 * more[:, None] + 0.01 * rng.standard_normal((len(later), len(regions)))
    pd.concat([people, later]).to_csv("cohort.csv", index=False)
    cohort.truth.to_csv("truth.csv", index=False)


def train() -> None:
    """Train two runs with different seeds, and compare them."""
    if not Path("truth.csv").exists():
        write_cohort()
    without = OutputSettings(report=False)
    several = SearchSettings(n_patterns=(2, 3, 4), n_repetitions=4, exhaustive=True)
    fit_table("cohort.csv", "run", TABLE, several, without)
    fit_table("cohort.csv", "other", TABLE, SearchSettings(n_patterns=(3,), n_repetitions=4, random_state=1), without)
    write_comparison(compare_runs(Path("run"), Path("other")), Path("compared"))


def draw() -> None:
    """Run the page's code from the top, and save the figure of each block that has a picture."""
    names: dict[str, Any] = {}
    PICTURES.mkdir(exist_ok=True)
    for code, picture in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        exec(code, names)
        if picture:  # a brain has its own SVG, smaller than one made from the figure
            text = names["drawing"].svg() if picture.startswith("draw_brain") else figure_svg(names["figure"])
            (PICTURES / picture).write_text(text, encoding="utf-8")


def main() -> None:
    """Train if needed, then draw."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--work", type=Path, required=True, help="folder for the cohort and its runs")
    work = options.parse_args().work
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)
    train()
    draw()


if __name__ == "__main__":
    main()
