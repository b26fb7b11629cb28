import numpy as np
import pandas as pd
import pytest

from rindices import make_cohort
from rindices.problems import InputError

NAMED = {"time": "years", "event": "converted"}


def table(**columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(5, 1, (80, 6)), columns=["lHip", "rHip", "lAmy", "rAmy", "lPut", "rPut"]).assign(
        participant_id=[f"p{k:02d}" for k in range(80)],
        diagnosis=["CN"] * 40 + ["AD"] * 40,
        years=rng.uniform(1, 5, 80),
        converted=np.tile([0.0, 1.0], 40),
    )
    return frame.assign(**columns)


def test_follow_up_is_kept_with_the_people_and_is_no_region():
    cohort = make_cohort(table(), **NAMED)
    assert ([*cohort.clinical], cohort.settings.clinical) == (["years", "converted"], ())
    assert "years" not in cohort.features


@pytest.mark.parametrize(
    ("columns", "named", "said"),
    [
        ({"years": [-1.0, *[2.0] * 79]}, {}, "The time of follow-up is below 0: column 'years', person p00, found -1"),
        (
            {"converted": [2.0, *[1.0] * 79]},
            {},
            "The event is neither 0 nor 1: column 'converted', person p00, found 2",
        ),
        ({"converted": [0.0] * 80}, {}, "No one has the event"),
        ({"converted": ["no", "yes"] * 40}, {}, "Column 'converted' should contain numbers, but it contains 'no'"),
        ({}, {"event": None, "exclude": "converted"}, "but the event is not"),
        ({"came": [9.0] * 80}, {"entry": "came"}, "The time of entry is not before the time"),
        ({"seen": [9.0] * 80}, {"last_without": "seen"}, "The last time without the event is not before the time"),
        ({"died": [1.0] * 80}, {"competing": "died"}, "The competing event is 1, but so is the event"),
        ({}, {"time": "lifetime"}, "lifetime"),
        ({}, {"time": "converted"}, "Column 'converted' is the time of follow-up, so it cannot also be the event"),
    ],
)
def test_follow_up_that_cannot_be_used_is_refused_with_the_remedy(columns, named, said):
    with pytest.raises(InputError) as refused:
        make_cohort(table(**columns), **(NAMED | named))
    assert said in str(refused.value)
    assert "`" in str(refused.value) or "Enter times" in str(refused.value) or "=" in str(refused.value)


def test_people_who_came_twice_count_once():
    twice = pd.concat([table(years=[-1.0, *[2.0] * 79]).assign(visit=visit) for visit in (1, 2)])
    with pytest.raises(InputError, match=r"person p00, found -1 \(1 person in all\)"):
        make_cohort(twice, visit="visit", **NAMED)


def test_few_events_are_a_warning_that_names_the_remedy():
    few = make_cohort(table(converted=[0.0] * 70 + [1.0] * 10, age=np.linspace(50, 80, 80)), covariates="age", **NAMED)
    [said] = [text for text in few.warnings if "fewer than ten per variable" in text]
    assert not [part for part in ("There are 10 events for 2 variables", "covariates") if part not in said]
    assert not [text for text in make_cohort(table(), **NAMED).warnings if "ten per variable" in text]


def test_who_is_left_out_for_an_empty_cell_is_counted():
    patients = np.arange(80) >= 40
    event = np.tile([0.0, 1.0], 40)
    filled = {
        "came": np.where(patients & (np.arange(80) < 43), np.nan, 0.5),
        "died": np.where(event == 1, np.nan, 0.0),
        "seen": np.where(event == 1, 0.6, np.nan),
    }
    named = NAMED | {"entry": "came", "competing": "died", "last_without": "seen"}
    [said] = [text for text in make_cohort(table(**filled), **named).warnings if "left out of the" in text]
    assert "The time of entry (column 'came') is missing for 3 people, who are left out of the hazard ratios" in said
    filled = {"came": 0.5, "seen": 0.6, "died": np.where(np.arange(80) == 40, np.nan, 0.0)}
    [said] = [text for text in make_cohort(table(**filled), **named).warnings if "left out of the" in text]
    assert "(column 'died') is missing for 1 person, who is left out of the curves" in said
