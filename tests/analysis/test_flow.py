import numpy as np
import pandas as pd
import pytest

from rindices.analysis.balance import flow_table

REASONS = ["missing region", "outlier", "impossible value", "left the study", "site without enough controls"]


def people(seed, *, sites=True, others=True):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    reason = rng.choice(["", *rng.permutation(REASONS)[: rng.integers(1, 6)]], n)
    group = rng.choice(["control", "patient", *(["other"] if others else [])], n)
    frame = pd.DataFrame({"group": group, "used": reason == "", "reason": reason})
    return frame.assign(site=rng.choice(["Oslo", "all", "7"], n)) if sites else frame


@pytest.mark.parametrize("seed", range(30))
def test_every_row_adds_up_and_agrees_with_a_plain_count(seed):
    record = people(seed, sites=seed % 3 != 0, others=seed % 2 == 0)
    flow = flow_table(record)
    reasons = [name for name in flow.columns if name not in ("site", "group", "read", "used")]
    assert set(reasons) == set(record["reason"]) - {""}
    assert (flow[reasons].sum(axis=1) + flow["used"] == flow["read"]).all()
    first = flow.iloc[0]
    assert (first["site"], first["group"], first["read"]) == ("all", "all", len(record))
    of_all = flow.head(1 + record["group"].nunique() if {"control", "patient"} <= set(record["group"]) else 3)
    assert of_all["read"].iloc[1:].sum() == len(record)
    if "site" in record:
        sites = flow.iloc[len(of_all) :]
        assert sites.loc[sites["group"] == "all", "read"].sum() == len(record)
        for _, row in sites.iterrows():
            who = (record["site"] == row["site"]) & ((record["group"] == row["group"]) | (row["group"] == "all"))
            assert row["used"] == (who & record["used"]).sum()
            assert [row[name] for name in reasons] == [(who & (record["reason"] == name)).sum() for name in reasons]


def test_reasons_come_in_the_order_of_exclusion_then_others():
    assert flow_table(pd.DataFrame({"group": "control", "used": False, "reason": REASONS})).columns.tolist()[3:-1] == [
        *("missing region", "impossible value", "outlier", "site without enough controls", "left the study")
    ]


def test_a_record_from_a_file_has_gaps_for_no_reason():
    record = pd.DataFrame({"group": ["control", "patient"], "used": [True, False], "reason": [np.nan, "outlier"]})
    assert flow_table(record).iloc[0].tolist() == ["all", "all", 2, 1, 1]
