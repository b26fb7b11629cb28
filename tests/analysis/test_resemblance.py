import numpy as np
import pandas as pd
import pytest

from rindices.analysis import resemblance
from rindices.analysis.associations_and_resemblance import _FOLDER, desikan_map, spins

ENIGMA = pd.read_csv(_FOLDER / "enigma.csv")
POSITIONS = pd.read_csv(_FOLDER / "desikan_positions.csv").set_index("region")
SHARES = pd.read_csv(_FOLDER / "destrieux_to_desikan.csv")


def as_patterns(maps, measure):
    """Return maps by side and region as a table of patterns with FreeSurfer's names."""
    return pd.DataFrame(
        {"pattern": number, "region": f"{side[0]}h_{region}_{measure}", "change_sd": value}
        for number, own in enumerate(maps, start=1)
        for (side, region), value in own.items()
    )


def enigma(disorder, measure):
    return ENIGMA[(ENIGMA["disorder"] == disorder) & (ENIGMA["measure"] == measure)].set_index(["side", "region"])["d"]


def test_a_disorder_s_own_map_is_recognised_by_its_measure():
    table = resemblance(as_patterns([enigma("schizophrenia", "thickness")], "thickness"), n_spins=300)
    assert {*table["measure"]} == {"thickness"}
    best = table.sort_values("r").iloc[-1]
    assert (best["disorder"], best["r"], best["beyond"]) == ("schizophrenia", pytest.approx(1), pytest.approx(1))
    assert best["p_corrected"] < 0.025
    assert (table["p_corrected"] >= table["p"]).all()
    area = resemblance(as_patterns([enigma("schizophrenia", "thickness")], "area"), n_spins=300)
    assert area.loc[area["disorder"] == "schizophrenia", "r"].item() < 0.9


def test_correlations_are_those_of_numpy_and_beyond_is_a_partial_correlation():
    rng = np.random.default_rng(1)
    own = enigma("autism", "thickness") + rng.normal(0, 0.1, 68)
    table = resemblance(as_patterns([own], "thickness"), n_spins=20).set_index("disorder")
    wide = ENIGMA[ENIGMA["measure"] == "thickness"].pivot(index=["side", "region"], columns="disorder", values="d")
    wide, own = wide.sort_index(), own.sort_index()
    one, mean = wide["depression, adults"], ((wide - wide.mean()) / wide.std(ddof=0)).mean(axis=1)
    xy, xz, yz = (np.corrcoef(a, b)[0, 1] for a, b in ((own, one), (own, mean), (one, mean)))
    assert table.loc["depression, adults", "r"] == pytest.approx(xy)
    partial = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    assert table.loc["depression, adults", "beyond"] == pytest.approx(partial)


def test_spins_keep_neighbours_together_as_rotations_of_a_sphere_do():
    # Of two linear functions on a sphere one of which is turned at random, the correlation is uniform from -1 to 1:
    # its variance is 1/3. Regions that are permuted singly would have 1/33.
    orders = spins(tuple(POSITIONS.index), 1500, seed=3)
    assert (np.sort(orders, axis=1) == np.arange(34)).all()
    places = POSITIONS.to_numpy()
    found = [np.corrcoef(places[:, axis], places[order, axis])[0, 1] for order in orders for axis in range(3)]
    assert np.var(found) == pytest.approx(1 / 3, abs=0.08)
    assert abs(np.mean(found)) < 0.1


def test_smooth_maps_without_relation_are_rarely_recognised():
    # Linear and quadratic functions of the position are as smooth as maps of the cortex.
    rng, places = np.random.default_rng(0), POSITIONS.to_numpy()
    maps = []
    for _ in range(60):
        turned = places @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        own = turned @ rng.normal(size=3) + (turned**2) @ rng.normal(size=3) + rng.normal(0, 0.3, 34)
        maps.append({(side, region): own[k] for side in ("left", "right") for k, region in enumerate(POSITIONS.index)})
    table = resemblance(as_patterns(maps, "thickness"), n_spins=500)
    assert (table.groupby("pattern")["p_corrected"].min() < 0.025).sum() <= 6  # 2 or 3 expected


def test_destrieux_is_converted_by_shares_of_area():
    assert SHARES.groupby("region")["share"].sum().between(0.9, 1.01).all()
    assert {*SHARES["region"]} == {*POSITIONS.index}
    rng = np.random.default_rng(2)
    parts = {part: rng.normal() for part in SHARES["part"].unique()}
    names = {f"lh_{part}_thickness": value for part, value in parts.items()}
    found, own = desikan_map(pd.Series(names), "thickness"), SHARES[SHARES["region"] == "insula"]
    assert found["left", "insula"] == pytest.approx(np.average(own["part"].map(parts), weights=own["share"]))
    table = resemblance(pd.DataFrame({"pattern": 1, "region": [*names], "change_sd": 1.0}))
    assert table.empty  # one side only, and the same everywhere


def test_desikan_from_destrieux_follows_the_map_it_was_made_from():
    true = enigma("schizophrenia", "thickness")
    changes = {
        f"{side[0]}h_{part}_thickness": np.average(true[side][own["region"]], weights=own["share"])
        for part, own in SHARES.groupby("part")
        for side in ("left", "right")
    }
    table = resemblance(
        pd.DataFrame({"pattern": 1, "region": [*changes], "change_sd": changes.values()}), n_spins=200
    ).sort_values("r")
    assert table.iloc[-1]["disorder"] == "schizophrenia"
    assert table.iloc[-1]["r"] > 0.85
    assert table.iloc[-1]["p_corrected"] < 0.05


def test_dkt_and_averages_of_both_sides_have_a_map():
    true = enigma("schizophrenia", "thickness")
    dkt = true.drop(["bankssts", "frontalpole", "temporalpole"], level="region")
    assert set(resemblance(as_patterns([dkt], "thickness"), n_spins=50)["n_regions"]) == {62}
    both = {f"{region}_thickness": value for region, value in true.groupby("region").mean().items()}
    table = resemblance(pd.DataFrame({"pattern": 1, "region": [*both], "change_sd": both.values()}), n_spins=50)
    assert table.sort_values("r")["disorder"].iloc[-1] == "schizophrenia"


def test_subcortex_is_description_without_a_test():
    own = enigma("schizophrenia", "subcortex")
    names = [f"{side.capitalize()}-{region}" for side, region in own.index]
    table = resemblance(pd.DataFrame({"pattern": 1, "region": names, "change_sd": own.to_numpy()}))
    assert {*table["measure"]} == {"subcortex"}
    assert table.loc[table["disorder"] == "schizophrenia", "r"].item() == pytest.approx(1)
    assert table["p"].isna().all()


@pytest.mark.parametrize("names", [["rHip", "lHip"], ["region_1"], [f"lh_{name}_volume" for name in POSITIONS.index]])
def test_other_regions_and_volumes_have_no_map(names):
    assert resemblance(pd.DataFrame({"pattern": 1, "region": names, "change_sd": 1.0})).empty


def test_maps_are_complete_and_not_of_another_measure():
    assert set(ENIGMA[ENIGMA["measure"] != "subcortex"].groupby(["measure", "disorder"]).size()) == {68}
    wide = ENIGMA.pivot(index=["disorder", "side", "region"], columns="measure", values="d")
    both = wide.dropna(subset=["thickness", "area"]).groupby("disorder")
    assert all((own["thickness"] - own["area"]).abs().max() > 0.05 for _, own in both)
