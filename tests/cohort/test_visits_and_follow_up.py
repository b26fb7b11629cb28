import re

import numpy as np
import pandas as pd
import pytest

from rindices import make_cohort
from rindices.schema import Roster, VisitField
from tests.cohort.people import table
from tests.refusal import refused_with

GROWING = np.r_[np.full(60, 60.0), np.full(60, 61.25)]
APART = GROWING + np.tile(np.linspace(0, 9, 60), 2)


def visits(*cells, **columns):
    """60 people, controls first, with one visit per cell: everybody's first visit, then everybody's next."""
    everybody = [table(n_controls=30, n_patients=30, wave=cell) for cell in cells]
    return pd.concat(everybody, ignore_index=True).drop(columns="age").assign(**columns)


@pytest.mark.parametrize(
    "cells",
    [
        (1.0, 2.0, 10.0),
        ("2019-03-01", "2019-11-30", "2020-01-02T08:30:00"),
        ("ses-1", "ses-2", "ses-10"),
        ("baseline", "follow-up 1", "follow-up 2"),
        ("screening", "bl", "m06", "m12", "y2", "36 months"),
        ("ses-baseline", "ses-2", "ses-10"),
        ("bl", "week 12", "m06"),
        ("v01", "v02", "v10a", "v10b"),
    ],
)
def test_visits_are_put_in_order(cells):
    roster = Roster(pd.Index([str(i) for i in range(len(cells))]), np.arange(len(cells)) + 2)
    for shuffle in range(5):
        mixed = np.random.default_rng(shuffle).permutation(np.array(cells, object))
        rank = VisitField("wave").observe(pd.DataFrame({"wave": mixed.tolist()}), roster).rank
        assert mixed[np.argsort(rank)].tolist() == list(cells)


def test_everybody_is_learned_from_once_and_scored_always():
    frame = visits("m12", "bl", "m06")
    cohort = make_cohort(frame, visit="wave")
    assert (cohort.n_controls, cohort.n_patients, cohort.n_later, len(cohort.features), len(cohort.people)) == (
        30,
        30,
        120,
        180,
        180,
    )
    assert cohort.first_visit.tolist() == cohort.training.tolist() == (frame["wave"] == "bl").tolist()
    assert (cohort.visit.tolist(), cohort.people.columns[1], cohort.years.tolist()) == (
        frame["wave"].tolist(),
        "visit",
        frame["wave"].map({"bl": 0.0, "m06": 0.5, "m12": 1.0}).tolist(),
    )
    assert repr(cohort).startswith("Cohort(30 controls, 30 patients, 0 others, 120 later visits;")


def test_the_first_visit_is_the_first_in_use():
    frame = visits(20210331.0, 20220331.0, age=APART)
    frame.loc[3, "lHip"] = np.nan
    cohort = make_cohort(frame, visit="wave", drop_missing=True, complete_only=True)
    [own] = np.flatnonzero(cohort.features.index == "003")
    assert (cohort.visit.iloc[own], cohort.first_visit[own], cohort.n_controls) == ("20220331", True, 30)
    assert cohort.people["visit"].unique().tolist() == ["20210331", "20220331"]  # labels are not rounded as numbers


def test_what_changes_between_visits_is_told_and_a_diagnosis_may():
    frame = visits("bl", "m06")
    usual = "\n".join(make_cohort(frame, visit="wave").warnings)
    assert not [words for words in ("changed between", "differs between", "differ only") if words in usual]
    frame["participant_id"] = frame["participant_id"].replace({"007": "sub-A", "003": "SUB-a"})
    frame.loc[60, "diagnosis"] = "AD"  # 000 at the second visit
    frame.loc[[60, 61], "sex"] = 1 - frame.loc[[60, 61], "sex"]
    cohort = make_cohort(frame, visit="wave")
    assert (cohort.n_controls, cohort.n_patients, cohort.group[cohort.features.index == "000"].tolist()) == (
        30,
        30,
        ["control", "patient"],
    )
    cases = "2 ids differ only in capitalisation (participants SUB-a, sub-A)."
    expected = (
        "1 person (participant 000) changed from control to patient, or vice versa",
        "The value in column 'sex' differs between visits for 2 people (participants 000, 001). Correct the cells.",
        cases,
    )
    assert not [words for words in expected if words not in "\n".join(cohort.warnings)]
    assert cases in "\n".join(make_cohort(frame[:60]).warnings)
    fewer = frame[~frame["participant_id"].isin(frame["participant_id"][:15])]
    refused_with("At least 20 controls are needed, but only 15 people", make_cohort, fewer, visit="wave")


@pytest.mark.parametrize(
    ("cells", "name", "expected"),
    [
        (("2019-01-01", "2021-01-01"), "date", 731 / 365.25),
        ((0, 18), "months", 1.5),
        ((0, 2), "time_years", 2.0),
        ((61.5, 63), "age", 1.5),
        ((0, 26), "weeks", 26 * 7 / 365.25),
        (("y1", "y3"), "wave", 2.0),
        ((816, 834), "age_months", 1.5),
        (("week 0", "week 24"), "wave", 24 * 7 / 365.25),
        (("week 1", "week 2"), "wave", 7 / 365.25),
    ],
)
def test_years_from_the_visits_themselves(cells, name, expected):
    np.testing.assert_allclose(
        make_cohort(visits(*cells).rename(columns={"wave": name}), visit=name).years,
        np.repeat([0.0, expected], 60),
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    ("cells", "columns", "covariates", "expected", "source"),
    [
        (("bl", "m12"), {"Age": GROWING}, "", 1.25, "the column 'Age'"),
        ((1, 2), {"age": APART}, "age", 1.25, "the column 'age'"),
        (("2019-01-01", "2021-01-01"), {"age": APART}, "", 731 / 365.25, "the dates of visits"),
        (("bl", "m12"), {"age": 60.0}, "", 1.0, "the labels of visits"),
    ],
)
def test_an_age_that_grows_goes_before_names_and_not_before_dates(cells, columns, covariates, expected, source):
    cohort = make_cohort(visits(*cells, **columns), visit="wave", covariates=covariates)
    assert cohort.years_from == source
    np.testing.assert_allclose(cohort.years[60:], expected)


def test_people_whose_age_stands_still_have_no_years():
    cohort = make_cohort(visits(1, 2, age=np.r_[np.full(60, 60.0), 60.0, np.full(59, 62.0)]), visit="wave")
    assert np.isnan(cohort.years[cohort.features.index == "000"]).all()
    assert (cohort.years[61:] == 2.0).all()
    assert any(warning.startswith("In 1 person, age is missing or does not increase") for warning in cohort.warnings)


@pytest.mark.parametrize("cells", [(1, 2), ("W1", "W2", "W3"), ("w0", "w24"), ("bl", "d1"), ("m1", "m2")])
def test_labels_that_may_count_visits_are_an_order_only(cells):
    cohort = make_cohort(visits(*cells, age=60.0), visit="wave")
    assert (cohort.years, cohort.first_visit.nonzero()[0].tolist()) == (None, [*range(60)])
    assert "Change per year cannot be computed: the visits in 'wave'" in "\n".join(cohort.warnings)
    assert make_cohort(visits(1), visit="wave").years.tolist() == [0.0] * 60


@pytest.mark.parametrize(("name", "cells"), [("wave", (1, 2)), ("age", (816, 828))])
def test_ages_in_months_are_not_years(name, cells):
    cohort = make_cohort(visits(*cells, age=APART * 12).assign(**{name: np.repeat(cells, 60)}), visit=name)
    assert cohort.years is None
    told = ("Change per year cannot be computed", "Column 'age' cannot contain ages in years: 120 values are above 120")
    assert not [words for words in told if words not in "\n".join(cohort.warnings)]


@pytest.mark.parametrize(
    "cells",
    [
        ("27/09/2019", "2/1/2020"),
        ("27-Sep-2019", "02-Jan-2020"),
        ("1.4.20", "2019-03-01"),
        ("baseline 2", "2019-03-01"),
        ("31/03/2021 10:20", "2/1/2022 9:15"),
        ("11/2020", "1/2021"),
        ("Nov 2020", "January 2021"),
        ("March 31, 2021", "Jan 2, 2022"),
    ],
)
def test_other_dates_than_iso_are_refused(cells):
    message = rf"'wave' \(visit\) should (.|\n)*'{cells[0]}' \((.|\n)*YYYY-MM-DD"
    refused_with(message, make_cohort, visits(*cells), visit="wave")


@pytest.mark.parametrize("cells", [("year1", "year2"), ("2021-01-01", "2022-01-01"), (1, 2)])
def test_an_order_of_visits_that_ages_contradict(cells):
    message = r"In 60 of 60 people with several visits, age decreases(.|\n)*number the visits"
    refused_with(message, make_cohort, visits(*cells, age=APART[::-1]), visit="wave")
    warnings = make_cohort(visits(*cells, age=np.r_[[60.0] * 60, 59, [60.0] * 59]), visit="wave").warnings
    (warning,) = [one for one in warnings if "decreases" in one]
    assert not [words for words in ("In 1 of 60 people", "(participants 000)") if words not in warning]


NAMED = {"time": "years", "event": "converted"}


def followed(**columns):
    rng, about = np.random.default_rng(0), {"years": np.linspace(1, 5, 80), "converted": np.tile([0.0, 1.0], 40)}
    frame = pd.DataFrame(rng.normal(5, 1, (80, 6)), columns=["lHip", "rHip", "lAmy", "rAmy", "lPut", "rPut"])
    people = {"participant_id": [f"p{k:02d}" for k in range(80)], "diagnosis": ["CN"] * 40 + ["AD"] * 40}
    return frame.assign(**people, **about | columns)


def test_follow_up_is_kept_with_the_people_who_count_once_and_is_no_region():
    twice = pd.concat([followed(years=[-1.0, *[2.0] * 79]).assign(visit=visit) for visit in (1, 2)])
    refused_with(
        r"for person p00: column 'years' contains -1 \(1 person is affected\)",
        make_cohort,
        twice,
        visit="visit",
        **NAMED,
    )
    cohort = make_cohort(followed(), **NAMED)
    assert ([*cohort.clinical], cohort.settings.clinical) == (["years", "converted"], ())
    assert {"years", "converted"}.isdisjoint(cohort.features)


@pytest.mark.parametrize(
    ("columns", "named", "said"),
    [
        (
            {"years": [-1.0, *[2.0] * 79]},
            {},
            "The time of follow-up is below 0 for person p00: column 'years' contains -1",
        ),
        (
            {"converted": [2.0, *[1.0] * 79]},
            {},
            "The event is neither 0 nor 1 for person p00: column 'converted' contains 2",
        ),
        ({"converted": [0.0] * 80}, {}, "No events were found"),
        ({"converted": ["no", "yes"] * 40}, {}, "Column 'converted' should contain numbers, but it contains 'no'"),
        ({}, {"event": None, "exclude": "converted"}, "but none for the event"),
        ({"came": [9.0] * 80}, {"entry": "came"}, "The time of entry is not before the time"),
        ({"seen": [9.0] * 80}, {"last_without": "seen"}, "The last time without the event is not before the time"),
        ({"died": [1.0] * 80}, {"competing": "died"}, "The competing event is 1 although the event is also 1"),
        ({}, {"time": "lifetime"}, "lifetime"),
        ({}, {"time": "converted"}, "Column 'converted' is the time of follow-up, so it cannot also be the event"),
    ],
)
def test_follow_up_that_cannot_be_used_is_refused_with_the_remedy(columns, named, said):
    told = refused_with(re.escape(said), make_cohort, followed(**columns), **(NAMED | named))
    assert [sign for sign in ("`", "Enter times", "=") if sign in told]


def test_few_events_are_a_warning_that_names_the_remedy():
    frame = followed(converted=[0.0] * 70 + [1.0] * 10, age=np.linspace(50, 80, 80))
    few, enough = make_cohort(frame, covariates="age", **NAMED), make_cohort(followed(), **NAMED)
    [said] = [text for one in (few, enough) for text in one.warnings if "fewer than ten per variable" in text]
    assert not [part for part in ("There are 10 events for 2 variables", "covariates") if part not in said]


EVENT = np.tile([0.0, 1.0], 40)
CAME, DIED, SEEN = (np.where(EVENT == 1, one, other) for one, other in ((0.5, 0.5), (np.nan, 0.0), (0.6, np.nan)))


@pytest.mark.parametrize(
    ("filled", "told"),
    [
        (
            {"came": np.where((np.arange(80) >= 40) & (np.arange(80) < 43), np.nan, CAME), "died": DIED, "seen": SEEN},
            "The time of entry (column 'came') is missing for 3 people, who are left out of the hazard ratios",
        ),
        (
            {"came": 0.5, "seen": 0.6, "died": np.where(np.arange(80) == 40, np.nan, 0.0)},
            "(column 'died') is missing for 1 person, who is left out of the curves",
        ),
    ],
)
def test_who_is_left_out_for_an_empty_cell_is_counted(filled, told):
    named = NAMED | {"entry": "came", "competing": "died", "last_without": "seen"}
    [said] = [text for text in make_cohort(followed(**filled), **named).warnings if "left out of the" in text]
    assert told in said
