"""Column names of segmentation programs and of studies."""

import os
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from rindices.regions import known_columns, known_regions, pair_sides, source_columns, sources

DICTIONARIES = Path(str(files("rindices"))) / "region_dictionaries"


def kinds(names):
    known = known_columns(names)
    return Counter(known[name].kind if name in known else "unknown" for name in names)


@pytest.mark.parametrize("path", sorted(DICTIONARIES.glob("*.csv")), ids=lambda path: path.stem)
def test_a_dictionary_says_where_it_is_from_and_what_its_columns_are(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line[0] for line in lines[:3]].count("#") == 2
    assert "http" in lines[0] + lines[1] or any(f"({year})" in lines[0] + lines[1] for year in range(1990, 2030))
    table = pd.read_csv(path, comment="#", keep_default_na=False, dtype=str)
    if path.stem.startswith("atlas_"):
        assert not table["name"].duplicated().any()
        return
    assert not table["column"].str.casefold().duplicated().any()
    kinds = {"region", "total", "head size", "spread", "quality", "id", "visit", "date", "scan", "age", "sex", "site"}
    assert ({*table["kind"]} - kinds, {*table["side"]} - {"", "left", "right"}) == (set(), set())
    assert {part for region in table["region"] for part in region.split(";")} <= {
        part
        for atlas in DICTIONARIES.glob("atlas_*.csv")
        for region in pd.read_csv(atlas, comment="#", keep_default_na=False)["region"]
        for part in region.split(";")
    } | {""}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("abide_asegstats2table_first120.tsv", {"region": 49, "total": 5, "head size": 1, "id": 1}),
        ("aomic_aparcstats2table_lh_thickness.tsv", {"region": 34, "total": 2, "head size": 1, "id": 1}),
        ("made_up_values/nichart_DLMUSE_Volumes.csv", {"region": 145, "total": 114, "head size": 1, "id": 1}),
        ("made_up_values/synthseg_volumes.csv", {"region": 98, "total": 2, "head size": 1, "id": 1}),
        ("made_up_values/ants_DKT_volume.csv", {"region": 62, "unknown": 5}),
        ("made_up_values/enigma_LandRvolumes.csv", {"region": 16, "total": 5, "head size": 1, "unknown": 2}),
        (
            "made_up_values/enigma_CorticalMeasuresENIGMA_ThickAvg.csv",
            {"region": 68, "total": 4, "head size": 1, "unknown": 2},
        ),
        (
            "made_up_values/adni_UCSFFSX51.csv",
            {"region": 99, "spread": 47, "date": 3, "scan": 2, "id": 1, "visit": 1, "quality": 1, "head size": 1},
        ),
        (
            "made_up_values/ukb_fields.csv",
            {"region": 139, "id": 1, "sex": 1, "age": 1, "site": 1, "head size": 1},
        ),
        (
            "made_up_values/abcd_smrip10201.txt",
            {"region": 12, "id": 2, "date": 1, "age": 1, "sex": 1, "visit": 1, "scan": 1},
        ),
        ("mlni_feature.tsv", {"unknown": 21}),
        ("bids_ds000030_participants.tsv", {"unknown": 16}),
    ],
    ids=lambda value: Path(value).stem if isinstance(value, str) else "",
)
def test_columns_of_programs_and_studies_have_these_kinds(file, expected):
    path = Path(os.environ.get("RINDICES_DATA", "nowhere"), "..", "formats", file)
    if not path.parent.is_dir():
        pytest.skip("tables of other programs are not beside RINDICES_DATA")
    header = pd.read_csv(path, sep="," if path.suffix == ".csv" else "\t", nrows=1).columns
    assert kinds([*map(str, header)]) == expected


def test_a_column_says_region_side_measure_and_unit():
    studies = {
        "ST29SV": "left hippocampus",
        "ST88SV_UCSFFSX_11_02_15_UCSFFSX51_08_01_16": "right hippocampus",
        "25886-2.0": "left hippocampus",
        "f.25887.2.0": "right hippocampus",
        "p25019_i2": "left hippocampus",
        "smri_vol_scs_hpusrh": "right hippocampus",
        "Lhippo": "left hippocampus",
        "DL_MUSE_Volume_47": "right hippocampus",
    }
    areas = known_columns(["Left-Accumbens-area", "lh_insula_area"])  # in the first, "area" belongs to the name
    assert (areas["Left-Accumbens-area"].measure, areas["lh_insula_area"].unit) == ("", "mm2")
    known = known_columns(studies)
    assert {name: one.title for name, one in known.items()} == studies
    assert {(one.kind, one.measure, one.unit) for one in known.values()} == {("region", "volume", "mm3")}
    thick = known_columns(["ST24TA", "smri_thick_cdk_ehinallh", "lh_entorhinal_thickness", "L_entorhinal_thickavg"])
    assert {(one.title, one.measure, one.unit) for one in thick.values()} == {
        ("left entorhinal cortex", "thickness", "mm")
    }


def test_names_that_anybody_could_use_need_company():
    alone = ["STATUS", "sex", "subject", "names", "31", "54", "702", "VERSION"]
    numbers = [str(number) for number in (*range(100, 110), *range(112, 126), 128, 129, *range(132, 158))]
    assert known_columns(alone) == known_columns([*numbers[:10], "702"]) == {}  # a few bare numbers do not suggest MUSE
    assert kinds([*numbers, "702"]) == {"region": len(numbers), "head size": 1}
    assert known_columns([*alone, *(f"ST{number}CV" for number in (13, 14, 15, 23, 24))])["STATUS"].kind == "quality"


def test_a_sum_is_told_by_its_parts():
    parts = [f"ctx-lh-{name}" for name in pd.read_csv(DICTIONARIES / "atlas_dk.csv", comment="#")["region"]]
    for side, others, kind in (("left", [], "region"), ("left", parts, "total"), ("right", parts, "region")):
        name = f"{side} cerebral cortex"
        assert known_columns([name, "Left-Hippocampus", *others])[name].kind == kind


def test_sides_that_only_a_dictionary_knows_are_paired():
    assert pair_sides(["ST29SV", "ST88SV"]) == {"ST29SV": ("left", "hippocampus"), "ST88SV": ("right", "hippocampus")}
    both = pair_sides(["ST24CV", "ST83CV", "ST24TA", "ST83TA", "MUSE_Volume_47"])
    assert (both["ST83TA"], "MUSE_Volume_47" in both) == (("right", "entorhinal cortex, thickness"), False)


def test_each_known_region_of_a_study_has_a_title():
    for source in sources():
        for column in pd.read_csv(DICTIONARIES / f"{source}.csv", comment="#", dtype=str)["column"]:
            written = f"{column}-2.0" if source == "uk_biobank" else column
            if column.isdecimal() or "*" not in column:
                assert all(one.title for one in source_columns(written)), column
    assert known_regions(["25838-2.0"])["25838-2.0"].title == "left anterior cingulate gyrus"
