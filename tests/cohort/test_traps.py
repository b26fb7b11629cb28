"""Traps that look like regions: planted in real tables, none of them is trained on in silence."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rindices import make_cohort
from rindices.cohort import read_cohort
from rindices.problems import InputError
from rindices.schema.role_guesses import kinds_of

DATA = Path(os.environ.get("RINDICES_DATA", "nowhere"))
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="RINDICES_DATA does not name the folder of real tables")


def ixi():
    table = pd.read_csv(DATA / "ixi_gm_volumes.csv", nrows=200).copy()
    return table.assign(diagnosis=np.where(np.arange(len(table)) % 2, "CN", "PT")).copy()


def abide():
    table = pd.read_csv(DATA / "abide1_volumes.csv", nrows=240)
    regions = table.iloc[:, 9:].astype(float)
    return pd.concat([table[["participant_id", "site", "diagnosis", "age", "sex", "icv"]], regions], axis=1).copy()


def aomic():
    sides = [
        pd.read_csv(DATA.parent / f"formats/aomic_aparcstats2table_{side}_thickness.tsv", sep="\t").iloc[:, :35]
        for side in ("lh", "rh")
    ]
    people = pd.read_csv(DATA.parent / "formats/aomic_participants.tsv", sep="\t")[["participant_id", "age", "sex"]]
    table = pd.concat([people, *(side.iloc[:, 1:] for side in sides)], axis=1)
    return table.assign(diagnosis=np.where(np.arange(len(table)) % 2, "CN", "PT")).copy()


TABLES = {"ixi": ixi, "abide": abide, "aomic": aomic}


@pytest.fixture(scope="module", params=TABLES)
def real(request):
    return TABLES[request.param]()


def regions_of(table):
    return [
        name for name in table if name not in ("participant_id", "diagnosis", "age", "sex", "site", "icv", "session")
    ]


def refused(table, **choices):
    with pytest.raises(InputError) as error:
        make_cohort(table, **choices)
    return str(error.value)


def planted(n, seed=0):
    """Columns of numbers that are no regions, with names that do not say so."""
    rng = np.random.default_rng(seed)
    return {
        "UID": rng.integers(100_000, 900_000, n),
        "bart": rng.integers(0, 2, n),
        "NEO_N": rng.integers(5, 45, n),
        "crp": rng.lognormal(1, 1, n),
        "iq2": rng.normal(100, 15, n),
    }


def test_real_tables_pass_as_they_are(real):
    cohort = make_cohort(real, drop_missing=True)
    assert list(cohort.features.columns) == regions_of(real)
    assert not any("look like" in warning or "several kinds" in warning for warning in cohort.warnings)


def test_strangers_are_named_with_both_ways_out(real):
    table = real.assign(alter=real["age"].fillna(real["age"].median()), **planted(len(real)))
    said = refused(table, drop_missing=True)
    assert "alter, UID, bart, NEO_N, crp, iq2: neither their names nor their values show" in said
    strangers = ["alter", "UID", "bart", "NEO_N", "crp", "iq2"]
    ways_out = {"exclude": strangers, "features": [*regions_of(real), *strangers], "clinical": strangers}
    assert not [name for name, names in ways_out.items() if f"{name}={names}" not in said]
    assert list(make_cohort(table, drop_missing=True, exclude=strangers).features.columns) == regions_of(real)
    assert make_cohort(table, drop_missing=True, features=[*regions_of(real), "crp"]).features.shape[1]


def test_totals_and_copies_are_told_by_their_values(real):
    names = regions_of(real)
    complete = real[names].fillna(real[names].median())
    left, right = names[0], names[1] if names[1].startswith("r") else "rh" + names[0][2:]
    new = {
        "V1": complete[names[:30]].sum(axis=1),
        "V2": complete[left] + complete[right],
        "V3": complete[names[5]] / 1000,
        "V4": complete[names].mean(axis=1),  # smaller than its largest parts
    }
    more = pd.concat([complete, pd.DataFrame(new)], axis=1)
    kinds = zip(more, kinds_of(list(more), more.to_numpy(float)), strict=True)
    found = {name: kind for name, kind in kinds if kind.suspicion}
    assert {name: kind.suspicion for name, kind in found.items()} == {
        "V1": "total",
        "V2": "total",
        "V3": "copy",
        "V4": "total",
    }
    assert f"{left} + {right}" in found["V2"].why


def test_sums_of_both_sides_are_told_among_few_people():
    table = ixi().iloc[:40]
    table["both"] = table["lHip"] + table["rHip"]
    cohort = make_cohort(table)
    assert "both" not in cohort.features
    assert any("both (the sum or mean of lHip + rHip)" in warning for warning in cohort.warnings)


def test_totals_and_copies_are_left_out_with_a_sentence_unless_named(real):
    names = regions_of(real)
    total = real[names].sum(axis=1)
    table = real.assign(TotalGrayVol=total, lh_MeanThickness_thickness=total / 9, V3=real[names[5]] / 1000)
    cohort = make_cohort(table, drop_missing=True)
    assert list(cohort.features.columns) == names
    said = "".join(cohort.warnings)
    assert "TotalGrayVol, lh_MeanThickness_thickness (a total, judging by its name); V3 (a copy of" in said
    assert "name all regions with `features`" in said
    chosen = make_cohort(table, drop_missing=True, features=[*names, "TotalGrayVol"])
    assert any("look like totals: TotalGrayVol" in warning for warning in chosen.warnings)


def test_units_that_differ_by_person_are_refused(real):
    table, names = real.copy(), regions_of(real)
    some = np.random.default_rng(1).random(len(table)) < 0.4
    table.loc[some, names] /= 1000
    said = refused(table, drop_missing=True)
    rows = ", ".join(str(row + 2) for row in np.flatnonzero(some)[:10])
    assert f"The values of {some.sum()} of {len(table)} people (rows {rows}" in said
    assert "1,000 times smaller" in said


def test_a_region_in_another_unit_in_all_patients_is_refused_and_controls_are_not_blamed(real):
    table, name = real.copy(), regions_of(real)[4]
    patients = table["diagnosis"] != "CN"
    table[name] = table[name].astype(float).where(~patients, table[name] / 1000)
    assert (
        f"Column {name!r}: the values of all patients ({patients.sum()} of {len(table)} people) are 1,000 times"
        in refused(table, drop_missing=True)
    )


def test_sides_in_different_units_are_refused(real):
    left = [name for name in regions_of(real) if name.startswith("l")]
    with pytest.raises(
        InputError, match=r"Left and right are in different units in[\s\S]*1,000 times smaller than that of"
    ):
        make_cohort(real.assign(**real[left] * 1000), drop_missing=True)


def test_head_size_in_another_unit_at_one_site_is_refused():
    table = abide()[lambda table: table["icv"] > 0].reset_index(drop=True)
    some = table["site"] == table["site"].iloc[0]
    assert f"Column 'icv': the values of {some.sum()} of {len(table)} people" in refused(
        table.assign(icv=table["icv"].where(~some, table["icv"] / 1000)), covariates="age,sex,icv", drop_missing=True
    )


def test_one_odd_person_is_an_outlier_and_no_unit(real):
    table, names = real.copy(), regions_of(real)
    table[names] = table[names].astype(float)
    table.loc[7, names] *= 1000
    assert any(outlier.row == 9 for outlier in make_cohort(table, drop_missing=True).outliers)


def test_thickness_beside_volume_is_allowed_and_said():
    table = aomic()
    volumes = ixi().iloc[: len(table)][["lHip", "rHip", "lAmy", "rAmy"]] * 1000
    warnings = make_cohort(table.assign(**{f"{name}_volume": volumes[name] for name in volumes})).warnings
    assert any("mix several kinds of measure: 68 thicknesses, 4 volumes" in warning for warning in warnings)


def test_measures_that_only_a_dictionary_knows_are_told_apart():
    mixed = pd.read_csv(DATA.parent / "formats/made_up_values/adni_UCSFFSX51.csv").copy()
    warnings = make_cohort(mixed.assign(diagnosis=["CN", "PT"] * 25).copy(), id="RID").warnings
    assert any("mix several kinds of measure: 52 volumes, 47 thicknesses" in warning for warning in warnings)
    one_kind = pd.read_csv(DATA.parent / "formats/abide_asegstats2table_first120.tsv", sep="\t").copy()
    warnings = make_cohort(one_kind.assign(diagnosis=["CN", "PT"] * 60).copy(), id="Measure:volume").warnings
    assert not any("several kinds" in warning for warning in warnings)


def test_what_everybody_has_is_left_out_with_a_sentence(real):
    cohort = make_cohort(real.assign(hypointensities=0.0, centre_number=7), drop_missing=True)
    assert {"hypointensities", "centre_number"} & {*cohort.features.columns} == set()
    assert any("hypointensities (always 0); centre_number (always 7)" in warning for warning in cohort.warnings)


def test_a_second_row_of_headings_is_no_person(tmp_path, real):
    described = pd.concat([pd.DataFrame([{name: f"what {name} is" for name in real}]), real.astype(object)])
    for rows in (described, pd.concat([pd.DataFrame([dict.fromkeys(real, "mm3")]), real.astype(object)])):
        rows.to_csv(tmp_path / "people.csv", index=False)
        cohort = read_cohort(tmp_path / "people.csv", drop_missing=True)
        assert len(cohort.people) == len(real)
        assert any("The row below the column names in people.csv" in warning for warning in cohort.warnings)


def test_somebody_whose_scan_failed_is_no_heading(tmp_path):
    table = ixi().astype(object)
    table.loc[0, regions_of(table)] = "failed"
    table.to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(InputError, match="has the text 'failed'") as error:
        read_cohort(tmp_path / "people.csv")
    assert "missing=['failed']" in str(error.value)


def test_commas_are_decimals_or_refused(tmp_path, real):
    names = regions_of(real)
    text = real.astype(dict.fromkeys(names, str))
    with_commas = text.assign(**{name: text[name].str.replace(".", ",") for name in names})
    with_commas.to_csv(tmp_path / "people.csv", sep=";", index=False, decimal=",")
    cohort = read_cohort(tmp_path / "people.csv", drop_missing=True)
    first = cohort.features.index[0]
    expected = real[real["participant_id"].astype(str) == first][names].iloc[0]
    assert cohort.features.loc[first].tolist() == pytest.approx(expected.tolist())
    with_commas.to_csv(tmp_path / "people.csv", index=False)  # cells in quotation marks
    if not (tmp_path / "people.csv").read_text().count('"'):
        return  # whole numbers
    with pytest.raises(InputError, match="decimal point only"):
        read_cohort(tmp_path / "people.csv", drop_missing=True)


def test_commas_for_thousands_are_refused(tmp_path):
    table = abide()
    text = table.assign(**{name: table[name].map(lambda value: f"{value:,.0f}") for name in regions_of(table)})
    text.to_csv(tmp_path / "people.tsv", sep="\t", index=False)
    with pytest.raises(InputError, match="comma seems to be a thousands separator"):
        read_cohort(tmp_path / "people.tsv", drop_missing=True)


def test_z_scores_are_recognised_and_not_corrected_twice(real):
    names, controls = regions_of(real), real["diagnosis"] == "CN"
    table = real.assign(**(real[names] - real.loc[controls, names].mean()) / real.loc[controls, names].std())
    cohort = make_cohort(table, drop_missing=True)
    assert cohort.unit == "z-scores"
    assert any("look like z-scores" in warning for warning in cohort.warnings)
    said = refused(table, drop_missing=True, covariates="age")
    assert "look like z-scores" in said
    assert "must not be corrected for age twice.\nOmit `covariates`; if they have not been adjusted for it" in said
    unit = "uncorrected z-scores"
    assert f"unit={unit!r}" in said
    assert make_cohort(table, drop_missing=True, covariates="age", unit=unit).unit == unit
    assert "must not be corrected for age again" in refused(table, drop_missing=True, covariates="age", unit="z")
    assert make_cohort(table, drop_missing=True, unit="z").unit == "z"
    assert make_cohort(real, drop_missing=True).unit is None
