"""Files as FreeSurfer 5.1 writes them, made up, become a row of the tutorial's table."""

import abide_table
import pandas as pd
import pytest

ASEG = """# Title Segmentation Statistics
# Measure IntraCranialVol, ICV, Intracranial Volume, 1463125.235391, mm^3
# ColHeaders  Index SegId NVoxels Volume_mm3 StructName normMean
  1   4     6855     6855.7  Left-Lateral-Ventricle   34.1
"""
CORTEX = """# Table of FreeSurfer cortical parcellation anatomical statistics
# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg
G_and_S_frontomargin  1213  823  {}  2.311
S_central             3001 2001  4321  1.900
"""


def test_stats_files_become_volumes():
    rows = [
        f"  {k}  {k}  1000  {1000 + k}.5  {side}-{name}  90.0"
        for k, (side, name) in enumerate((side, name) for side in ("Left", "Right") for name in abide_table.DEEP)
    ]
    found = abide_table.volumes(ASEG + "\n".join(rows) + "\n", CORTEX.format(1924), CORTEX.format(2142))
    assert found["icv"] == pytest.approx(1463125.235391)
    assert (found["lh_G_and_S_frontomargin_volume"], found["rh_G_and_S_frontomargin_volume"]) == (1924, 2142)
    assert (found["Left-Thalamus-Proper"], found["Right-Cerebellum-Cortex"]) == (1000.5, 1015.5)
    assert len(found) == 1 + 2 * 2 + 16
    with pytest.raises(ValueError, match="no stats file"):
        abide_table.volumes("<Error>AccessDenied</Error>", "", "")


def test_codes_of_the_spreadsheet_become_words():
    row = {"FILE_ID": "Pitt_0050003", "SITE_ID": "PITT", "DX_GROUP": 1, "AGE_AT_SCAN": 24.45, "SEX": 2}
    people = abide_table.about(pd.DataFrame([row | {"FIQ": 103.0, "ADOS_TOTAL": -9999.0, "SRS_RAW_TOTAL": None}]))
    assert people.iloc[0, :5].tolist() == ["Pitt_0050003", "PITT", "ASD", 24.45, "F"]
    assert people[["fiq", "ados_total", "srs_total"]].isna().to_numpy().tolist() == [[False, True, True]]
