import numpy as np
import pytest
from diagnosis import diagnosis_auc

from rindices.problems import InputError


def test_separation_gives_the_auc_of_normal_groups_and_unknown_numbers_are_refused():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [60, 80]))
    scores, regions = rng.standard_normal((140, 2)), 100 * rng.standard_normal((140, 10))
    scores[:, 0] += 1.5 * y
    regions[:, 0] += 75 * y
    table = diagnosis_auc(scores, regions, y, n_splits=4).set_index("features")
    # Two normal groups d sd apart have the area Φ(d / √2): 0.856 for 1.5, 0.702 for 0.75.
    assert table.auc["R-indices"] == pytest.approx(0.856, abs=0.06)
    assert 0.55 < table.auc["regions"] < 0.76
    assert table.auc["difference"] == pytest.approx(table.auc["R-indices"] - table.auc["regions"])
    with pytest.raises(InputError):
        diagnosis_auc(np.where(y[:, None] == 1, np.nan, scores), regions, y)
