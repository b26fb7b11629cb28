"""Columns that only look like regions: planted in real tables, none is silently trained on."""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rindices import make_cohort, read_cohort
from tests.pages.page import missing
from tests.refusal import refused_with

DATA = Path(os.environ.get("RINDICES_DATA", "nowhere"))
FORMATS = DATA.parent / "formats"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="RINDICES_DATA does not name the folder of real tables")


def ixi():
    table = pd.read_csv(DATA / "ixi_gm_volumes.csv", nrows=200).copy()
    return table.assign(diagnosis=np.where(np.arange(len(table)) % 2, "CN", "PT")).copy()


def abide():
    table = pd.read_csv(DATA / "abide1_volumes.csv", nrows=240)
    return (
        table[["participant_id", "site", "diagnosis", "age", "sex", "icv"]].join(table.iloc[:, 9:].astype(float)).copy()
    )


def aomic():
    files = ("aparcstats2table_lh_thickness", "aparcstats2table_rh_thickness", "participants")
    left, right, people = (pd.read_csv(FORMATS / f"aomic_{name}.tsv", sep="\t") for name in files)
    table = pd.concat([people[["participant_id", "age", "sex"]], left.iloc[:, 1:35], right.iloc[:, 1:35]], axis=1)
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
    return refused_with(None, make_cohort, table, drop_missing=True, **choices)


def warned(table, **choices):
    cohort = make_cohort(table, drop_missing=True, **choices)
    return list(cohort.features.columns), "".join(cohort.warnings)


def planted(real):
    """Columns of numbers that are not regions, under names that do not show this."""
    rng, n = np.random.default_rng(0), len(real)
    return {
        "alter": real["age"].fillna(real["age"].median()),
        "UID": rng.integers(100_000, 900_000, n),
        "bart": rng.integers(0, 2, n),
        "NEO_N": rng.integers(5, 45, n),
        "crp": rng.lognormal(1, 1, n),
        "iq2": rng.normal(100, 15, n),
    }


def test_real_tables_pass_as_they_are_and_strangers_are_named_with_both_ways_out(real):
    names, said = warned(real)
    assert (names, missing(said, "look like", "several kinds")) == (regions_of(real), ["look like", "several kinds"])
    strangers = planted(real)
    table = real.assign(**strangers)
    said = refused(table)
    assert "Neither the names nor the values of alter, UID, bart, NEO_N, crp, iq2 show" in said
    ways_out = {"exclude": [*strangers], "features": [*names, *strangers], "clinical": [*strangers]}
    assert not [name for name, names in ways_out.items() if f"{name}={names}" not in said]
    assert warned(table, exclude=[*strangers])[0] == names
    assert warned(table, features=[*names, "crp"])[0] == [*names, "crp"]


def test_sums_and_copies_are_told_by_their_values(real):
    names = regions_of(real)
    complete = real[names].fillna(real[names].median()).copy()
    right = names[1] if names[1].startswith("r") else "rh" + names[0][2:]
    more = {
        "V1": complete[names[:30]].sum(axis=1),
        "V2": complete[names[0]] + complete[right],
        "V3": complete[names[5]] / 1000,
        "V4": complete.mean(axis=1),  # smaller than its largest parts
    }
    table = real.drop(columns=names).join(complete.assign(**more))
    by_sides = f"V2 (the sum or mean of {names[0]}, {right}"
    kept, said = warned(table)
    assert (kept, missing(said, "V1 (the sum", by_sides, "V3 (a copy of", "V4 (the sum")) == (names, [])
    assert "look like totals: V2" in warned(table, features=[*names, "V2"])[1]
    few, said = warned(ixi().iloc[:40].eval("both = lHip + rHip"))
    assert "both" not in few
    assert "both (the sum or mean of lHip, rHip)" in said


def test_totals_and_constants_are_left_out_with_a_sentence_unless_named(real):
    names = regions_of(real)
    total = real[names].sum(axis=1)
    table = real.assign(TotalGrayVol=total, lh_MeanThickness_thickness=total / 9)
    kept, said = warned(table.assign(hypointensities=0.0, centre_number=7))
    expected = (
        "TotalGrayVol, lh_MeanThickness_thickness (a total, judging by its name)",
        "name all regions with `features`",
        "hypointensities (always 0); centre_number (always 7)",
    )
    assert (kept, missing(said, *expected)) == (names, [])
    assert "look like totals: TotalGrayVol" in warned(table, features=[*names, "TotalGrayVol"])[1]


def test_units_that_differ_between_people_regions_or_sides_are_refused(real):
    """Errors in patients are not attributed to controls; a single odd person is an outlier."""
    names, some = regions_of(real), np.random.default_rng(1).random(len(real)) < 0.4
    values, patients = real[names].astype(float), real["diagnosis"] != "CN"
    said = refused(real.assign(**values.div(np.where(some, 1000, 1), axis=0)))
    rows = ", ".join(str(row + 2) for row in np.flatnonzero(some)[:10])
    assert not missing(said, f"the values of {some.sum()} of {len(real)} people (rows {rows}", "1,000 times smaller")
    said = refused(real.assign(**{names[4]: values[names[4]] / np.where(patients, 1000, 1)}))
    who = f"the values of all patients ({patients.sum()} of {len(real)} people) are 1,000 times"
    assert f"In column {names[4]!r}, {who}" in said
    said = refused(real.assign(**real[[name for name in names if name.startswith("l")]] * 1000))
    assert re.search(r"left and right values are in different units:[\s\S]*1,000 times smaller than that of", said)
    odd = real.assign(**values.mul(np.where(real.index == 7, 1000, 1), axis=0))
    assert 9 in [outlier.row for outlier in make_cohort(odd, drop_missing=True).outliers]


def test_head_size_in_another_unit_at_one_site_is_refused():
    table = abide()[lambda table: table["icv"] > 0].reset_index(drop=True)
    some = table["site"] == table["site"].iloc[0]
    assert f"In column 'icv', the values of {some.sum()} of {len(table)} people" in refused(
        table.assign(icv=table["icv"].where(~some, table["icv"] / 1000)), covariates="age,sex,icv"
    )


def test_several_kinds_of_measure_are_allowed_and_said():
    """This includes kinds known only from a dictionary."""
    table, mixed = aomic(), pd.read_csv(FORMATS / "made_up_values/adni_UCSFFSX51.csv")
    volumes = ixi().iloc[: len(table)][["lHip", "rHip", "lAmy", "rAmy"]].add_suffix("_volume") * 1000
    assert "include several kinds of measure: 68 thicknesses, 4 volumes" in warned(table.join(volumes))[1]
    mixed = pd.concat([mixed, pd.DataFrame({"diagnosis": ["CN", "PT"] * 25})], axis=1)
    assert "include several kinds of measure: 52 volumes, 47 thicknesses" in warned(mixed, id="RID")[1]


def test_a_second_row_of_headings_is_no_person(tmp_path, real):
    for headings in ({name: f"what {name} is" for name in real}, dict.fromkeys(real, "mm3")):
        pd.concat([pd.DataFrame([headings]), real.astype(object)]).to_csv(tmp_path / "people.csv", index=False)
        cohort = read_cohort(tmp_path / "people.csv", drop_missing=True)
        assert (len(cohort.people), ("The row below the column names in people.csv" in "".join(cohort.warnings))) == (
            len(real),
            True,
        )


def test_somebody_whose_scan_failed_is_no_heading(tmp_path):
    table = ixi().astype(object)
    table.loc[0, regions_of(table)] = "failed"
    table.to_csv(tmp_path / "people.csv", index=False)
    assert "missing=['failed']" in refused_with("contains the text 'failed'", read_cohort, tmp_path / "people.csv")


def test_commas_for_thousands_are_refused(tmp_path):
    table = abide()
    text = table.assign(**{name: table[name].map("{:,.0f}".format) for name in regions_of(table)})
    text.to_csv(tmp_path / "people.tsv", sep="\t", index=False)
    refused_with("comma seems to be a thousands separator", read_cohort, tmp_path / "people.tsv", drop_missing=True)


def test_z_scores_are_recognised_and_not_corrected_twice(real):
    names, controls = regions_of(real), real["diagnosis"] == "CN"
    table = real.assign(**(real[names] - real.loc[controls, names].mean()) / real.loc[controls, names].std())
    cohort = make_cohort(table, drop_missing=True)
    plain, told = make_cohort(real, drop_missing=True), make_cohort(table, drop_missing=True, unit="z")
    assert (cohort.unit, plain.unit, told.unit) == ("z-scores", None, "z")
    assert any("look like z-scores" in warning for warning in cohort.warnings)
    unit, said = "uncorrected z-scores", refused(table, covariates="age")
    once = "must not be corrected for age twice.\nOmit `covariates`; if they have not been corrected yet"
    assert not missing(said, "look like z-scores", once, f"unit={unit!r}")
    assert make_cohort(table, drop_missing=True, covariates="age", unit=unit).unit == unit
    assert "must not be corrected for age again" in refused(table, covariates="age", unit="z")
