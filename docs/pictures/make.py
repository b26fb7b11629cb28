"""Make the pictures of the pages again, from the run folders that the tutorials leave behind.

python docs/pictures/make.py demo/run study-run
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from PIL import Image

from rindices.report import write_report

HERE = Path(__file__).parent
WIDTH, COLOURS = 1100, 128
# The name of a figure in the report's folder, without its number, and that of the picture.
FROM_THE_DEMO = {"r_indices": "r-indices", "recovery": "recovery", "pattern_1": "pattern", "brain_pattern_1": "brain"}
FROM_THE_STUDY = {"agreement_over_settings": "settings", "associations_patients": "associations"}


def pictures(run: Path, wanted: dict[str, str]) -> None:
    """Take the wanted figures of a run's report, made smaller."""
    with tempfile.TemporaryDirectory() as name:
        write_report(run, Path(name, "report.html"), figures=Path(name, "figures"))
        made = {path.stem.partition("_")[2]: path for path in Path(name, "figures").glob("*.png")}
        for figure, picture in wanted.items():
            image = Image.open(made[figure]).convert("RGB")
            small = image.resize((WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS)
            # With few colours the scale of a brain would have steps.
            kept = small if picture == "brain" else small.quantize(COLOURS)
            kept.save(HERE / f"{picture}.png", optimize=True)


def main() -> None:
    """Make all pictures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("demo", type=Path, help="run folder of the first tutorial")
    options.add_argument("study", type=Path, help="run folder of the second")
    chosen = options.parse_args()
    pictures(chosen.demo, FROM_THE_DEMO)
    pictures(chosen.study, FROM_THE_STUDY)


if __name__ == "__main__":
    main()
