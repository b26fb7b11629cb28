"""Tables that scripts make: the reference population, and that of the tutorial."""

import json
import os
from pathlib import Path

import abide_table
import fit_reference
import numpy as np
import pandas as pd
import pytest

import rindices.simulate

SHIPPED = Path(rindices.simulate.__file__).with_name("reference_population.json")


def test_shipped_file_comes_from_the_script():
    source = Path(os.environ.get("RINDICES_DATA", "none")) / "ixi_gm_volumes.csv"
    if not source.exists():
        pytest.skip("RINDICES_DATA names no folder with ixi_gm_volumes.csv, the table the population was fitted to")
    fitted, shipped = fit_reference.fit(pd.read_csv(source)), json.loads(SHIPPED.read_text())
    assert shipped.keys() == fitted.keys()
    for made in (fitted, shipped):
        made["correlation_upper"] = [*np.concatenate(made["correlation_upper"])]
    for key, value in fitted.items():
        if isinstance(value, np.ndarray | list) and not isinstance(value[0], str):
            np.testing.assert_allclose(shipped[key], value, atol=1e-3, err_msg=key)
        else:
            assert shipped[key] == value


# Files as FreeSurfer 5.1 writes them, made up, become a row of the tutorial's table


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
    expected = {
        "icv": pytest.approx(1463125.235391),
        "lh_G_and_S_frontomargin_volume": 1924,
        "rh_G_and_S_frontomargin_volume": 2142,
        "Left-Thalamus-Proper": 1000.5,
        "Right-Cerebellum-Cortex": 1015.5,
    }
    assert ({name: found[name] for name in expected}, len(found)) == (expected, 1 + 2 * 2 + 16)
    with pytest.raises(ValueError, match="no stats file"):
        abide_table.volumes("<Error>AccessDenied</Error>", "", "")
