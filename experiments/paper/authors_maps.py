"""Fig. 3: maps of the two patterns in the authors' published model of Alzheimer's disease.

    python experiments/paper/authors_maps.py --model official_ad_2rindices.pt

Writes results/authors_maps.csv and a figure of each pattern (results/authors_maps_1.svg, authors_maps_2.svg). The model
(MIT licence) contains no data of people: maps show how f changes the mean control at severity 1 of each pattern alone.
The paper's figure shows voxels of single groups; only the location of the patterns can be compared.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from tables import RESULTS

from rindices.core import inference
from rindices.interop.checkpoint_to_model import import_official
from rindices.plots.brain_drawing import draw_brain
from rindices.preprocessing import SCALED_SD


def maps_of(path: Path) -> pd.DataFrame:
    """Return each pattern's change of each region, in standard deviations of controls."""
    model = import_official(path, "muse72", "sex,age")
    regions = list(model.contract_.features)
    mean = np.ones((1, len(regions)))
    changes = inference.pattern_changes(model.models_, mean)[0] / SCALED_SD
    number = np.repeat(np.arange(1, len(changes) + 1), len(regions))
    return pd.DataFrame({"region": regions * len(changes), "pattern": number, "change_sd": changes.ravel()})


def main() -> None:
    """Write the table and the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", type=Path, required=True)
    options.add_argument("--out", type=Path, default=RESULTS)
    chosen = options.parse_args()
    table = maps_of(chosen.model)
    table.to_csv(chosen.out / "authors_maps.csv", index=False, float_format="%.4f")
    for pattern in sorted(table["pattern"].unique()):
        drawing = draw_brain(table, int(pattern))
        (chosen.out / f"authors_maps_{pattern}.svg").write_text(drawing.svg(), encoding="utf-8")
        own = table[table["pattern"] == pattern].set_index("region")["change_sd"]
        print(pattern, own.sort_values().head(8).round(2).to_dict(), "mean", round(own.mean(), 3))
        print("without an outline:", drawing.missing)
    plt.close("all")


if __name__ == "__main__":
    main()
