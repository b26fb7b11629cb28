import re

import pandas as pd

from rindices.analysis import resemblance
from rindices.analysis.associations_and_resemblance import _FOLDER
from rindices.pages.report import make_report
from tests.pages.made_run import make_run
from tests.pages.page import missing

ENIGMA = pd.read_csv(_FOLDER / "enigma.csv")


def test_report_says_what_a_pattern_resembles(tmp_path):
    own = ENIGMA[(ENIGMA["disorder"] == "autism") & (ENIGMA["measure"] == "thickness")]
    names = [f"{side[0]}h_{region}_thickness" for side, region in zip(own["side"], own["region"], strict=True)]
    folder = tmp_path / "run"
    make_run(folder, n_patterns=1, n_regions=68, names=names)
    patterns = pd.read_csv(folder / "patterns.csv").assign(change_sd=own["d"].to_numpy())
    (folder / "analysis").mkdir(exist_ok=True)
    resemblance(patterns, n_spins=200).to_csv(folder / "analysis" / "resemblance.csv", index=False)
    report = make_report(folder)
    assert re.search(
        "Pattern 1, thickness: resembles autism.* more than rotated maps do .largest correlation 1.00", report.html
    )
    assert "resemblance" in [name for name, *_ in report.gallery.figures]


def test_report_says_that_no_map_is_at_hand(tmp_path):
    folder = tmp_path / "run"
    make_run(folder, n_regions=4, names=["lh_cuneus_volume", "rh_cuneus_volume"])
    page = make_report(folder).html
    assert (
        missing(page, "No cortical disorder map is available for these regions", "this table has volume of regions")
        == []
    )
