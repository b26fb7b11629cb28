"""The table that tests of cohorts modify: 60 controls and 60 patients with the usual columns."""

import numpy as np
import pandas as pd

REGIONS = ["lHip", "rHip", "lAmy", "rAmy", "lEnt"]


def table(*cells, n_controls=60, n_patients=60, **columns):
    """Return the table with other columns, then with other cells: (person, column, value), people counted from 0."""
    rng, n = np.random.default_rng(0), n_controls + n_patients
    frame = pd.DataFrame(rng.normal(5, 0.5, (n, 5)), columns=REGIONS)
    frame.insert(0, "participant_id", [f"{number:03d}" for number in range(n)])
    frame.insert(1, "diagnosis", ["CN"] * n_controls + ["AD"] * n_patients)
    about = {"age": rng.uniform(50, 80, n), "sex": np.resize([0, 1], n), "icv": rng.normal(1.5e6, 1e5, n)}
    frame = frame.assign(**about, place=np.resize(["Oslo", "Bonn", "Rome"], n), note="fine").assign(**columns)
    for row, column, value in cells:
        frame = frame.astype({column: object})
        frame.loc[row, column] = value
    return frame
