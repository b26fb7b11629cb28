"""Groups, covariates and sites that cannot be used."""

import numpy as np
import pandas as pd
import pytest

from tests.bad_input.harness import Case, as_text, assigned, both, cases, cell, fit


def labels(**names):
    """Return a function that renames diagnosis labels."""
    return lambda people: people.assign(diagnosis=people["diagnosis"].replace(names))


def patients(people):
    """Return the patients as a separate table."""
    return people[40:].drop(columns="diagnosis")


def apart(name, tables, found, remedy, more=patients):
    """Return a case of groups in separate tables."""
    files = {"people.csv": lambda people: people[:40].drop(columns="diagnosis"), "more.csv": more}
    return Case(name, f"fit {tables} --out run", (found,), remedy, files)


def wide(people):
    """Return a table with more regions than the method is meant for."""
    values = np.random.default_rng(0).normal(5, 1, (80, 1001)).round(3)
    return people.join(pd.DataFrame(values, columns=[f"w{number}" for number in range(1001)]))


def separate(people):
    """Return ages at which all patients are older than every control."""
    return np.where(people["diagnosis"] == "AD", people["age"] + 34, people["age"])


def country(people):
    """Return sites that no control shares with a patient."""
    return np.where(people["diagnosis"] == "AD", people["site"] + " (patients)", people["site"])


APART = "cannot be separated from"


@pytest.mark.parametrize(
    "age", [lambda p: p.index.astype(str) + " years", lambda p: np.where(p.index == 4, "55 y", p["age"].astype(str))]
)
def test_text_that_hardly_repeats_tells_nobody_apart(stage, age):
    assert "age tells" not in stage(fit("age", assigned(age=age), "40 controls", "", code=0)).message


@pytest.mark.parametrize(
    ("option", "warned", "told"),
    [("--covariates", True, "icv."), ("--proportion", False, "none. Regions are divided by")],
)
def test_a_head_size_that_is_divided_by_is_not_extrapolated(stage, option, warned, told):
    large = assigned(icv=lambda p: np.where(p.index > 70, p["icv"] + 600, p["icv"]))
    said = stage(fit(option, large, f"effects are removed: {told}", "12 regions", f"{option} icv", code=0)).message
    assert ("icv lies outside the controls' range" in said) is warned


def below(*lines):
    """Return a function that writes lines of text below the table."""
    return lambda people: as_text(people) + "".join(f"{line}{',' * (people.shape[1] - 1)}\n" for line in lines)


def test_note_below_the_table_is_told_as_one(stage):
    remedy = "exclude these people with --drop-missing"
    said = stage(fit("note", below("checked by AB"), ("12 region columns", "row 82"), remedy)).message
    assert "--exclude" not in said  # no region would remain


@cases(
    # Groups
    fit("one of each", lambda p: p.iloc[[0, 79]], ("At least 20 controls", "1 person has the label CN"), "Add people"),
    fit("19 controls", lambda p: p.iloc[21:], "only 19 people have the label CN", "--control"),
    fit("19 patients", lambda p: p.iloc[:59], "only 19 people have the label AD", "--patients"),
    fit("all controls", lambda p: p.assign(diagnosis="CN"), "no patients", "Add patients"),
    fit("all patients", lambda p: p.assign(diagnosis="AD"), ("everyone", "'AD'"), "CN=controls.csv"),
    fit(
        "no labels",
        lambda p: p.assign(diagnosis=""),
        "No one has a label in column 'diagnosis'",
        "such as CN or AD",
    ),
    fit("label misspelt", None, ("'CNN', listed in --control", "Did you mean 'CN'?"), "CN (40)", "--control CNN"),
    fit("unknown patients", None, "'FTD', listed in --patients", "Labels found: CN (40), AD (40)", "--patients AD,FTD"),
    fit("a label twice", None, "'CN' is listed in both", "only one of them", "--control CN --patients CN,AD"),
    fit("no label asked for", None, "--control should name at least one label", "CN (40)", "--control ,"),
    fit("controls unclear", labels(CN="A", AD="B"), ("A (40), B (40)",), "--control LABEL"),
    fit(
        "two names of controls",
        lambda p: p.assign(diagnosis=["HC"] * 20 + ["CN"] * 20 + ["AD"] * 40),
        ("'HC', 'CN'", "HC (20)"),
        "--control HC,CN",
    ),
    fit(
        "patients unclear",
        lambda p: p.assign(diagnosis=["CN"] * 40 + ["AD"] * 21 + ["MCI"] * 19),
        ("2 labels", "MCI (19)"),
        "--patients AD,MCI",
    ),
    # Covariates and sites
    fit("misspelt", None, ("no column 'agee'", "Did you mean 'age'?"), "--covariates", "--covariates agee,sex"),
    fit(
        "head size by another name",
        lambda p: p.rename(columns={"icv": "EstimatedTotalIntraCranialVol"}),
        ("no column 'icv'", "Did you mean 'EstimatedTotalIntraCranialVol'?"),
        "--covariates",
        "--covariates icv",
    ),
    fit("gap", cell("age", 4, ""), ("Missing", "age (1 person)", "row 6"), "--drop-missing", "--covariates age"),
    fit("gap in a category", cell("sex", 4, ""), ("sex (1 person)", "row 6"), "--drop-missing", "--covariates sex"),
    fit("age in words", cell("age", 4, "61y"), ("'age' (covariate)", "row 6", "'61y'"), "61", "--covariates age"),
    fit("constant", assigned(sex="F"), ("'sex'", "the same value (F)"), "Omit sex", "--covariates sex"),
    fit(
        "category without controls",
        cell("sex", 44, "X"),
        ("'sex' has 1 category without any controls", "X (1 person) (participant p44, for example)", "--missing sex=X"),
        "omit sex",
        "--covariates sex",
    ),
    fit(
        "dates of birth",
        assigned(born=lambda p: [f"{1 + place % 28:02d}.{1 + place % 12:02d}.1950" for place in range(len(p))]),
        ("'born' has", "different values among", "use age in years instead of date of birth"),
        "omit born",
        "--covariates born",
    ),
    fit(
        "the diagnosis itself",
        assigned(dx=lambda p: (p["diagnosis"] == "AD") * 1),
        ("'dx'", APART),
        "If dx merely repeats the diagnosis, omit it",
        "--covariates dx",
    ),
    fit(
        "the diagnosis in words",
        assigned(dx=lambda p: p["diagnosis"].str.lower()),
        ("'dx'", APART),
        "If dx merely repeats the diagnosis, omit it",
        "--covariates age,dx",
    ),
    fit(
        "duration of illness",
        assigned(years=lambda p: np.where(p["diagnosis"] == "AD", 1 + p.index % 7, 0)),
        ("'years'", APART),
        "If years merely repeats the diagnosis, omit it",
        "--covariates years",
    ),
    fit(
        "other categories",
        assigned(country=country),
        ("'country'", APART),
        "If country merely repeats the diagnosis, omit it",
        "--covariates country",
    ),
    fit("site of the patients", assigned(site=country), ("'site'", APART), "so that the groups overlap", "--site site"),
    fit(
        "sites of the patients dropped",
        assigned(site=country),
        ("'site'", APART),
        "so that the groups overlap",
        "--site site --small-sites drop",
    ),
    fit(
        "site of one person",
        cell("site", 44, "Graz"),
        ("at least 5 controls", "Graz (0 controls among 1 person)"),
        "--small-sites drop",
        "--site site",
    ),
    fit("unknown site", None, ("'scanner'", "the site"), "--site", "--site scanner"),
    fit("one site", assigned(site="Ulm"), ("'site'", "Ulm"), "Omit --site", "--site site"),
    fit("small sites", None, ("--small-sites", "'merge'"), "'refuse' or 'drop'", "--site site --small-sites merge"),
    fit(
        "a category each",
        assigned(code=lambda p: "c" + (p.index % 40).astype(str)),
        ("39 coefficients", "controls"),
        "Use fewer covariates",
        "--covariates code",
    ),
    fit(
        "sex in two spellings",
        cell("sex", 4, "f"),
        ("'sex' has 'F' (39 people) and 'f' (1 person, the first in row 6 (participant p04))",),
        "Write both the same way",
        "--covariates sex",
    ),
    fit(
        "sex in letters and words",
        cell("sex", 4, "female"),
        ("'sex' has 'F' (39 people) and 'female' (1 person, the first in row 6 (participant p04))",),
        "Write both the same way",
        "--covariates sex",
    ),
    fit(
        "site in two spellings",
        both(assigned(site=lambda p: p["site"] + " East"), cell("site", 7, "BERN  East")),
        ("'site' has 'Bern East' (39 people) and 'BERN East'", "row 9"),
        "Write both the same way",
        "--site site",
    ),
    fit(
        "sex unknown",
        assigned(Sex=lambda p: np.where(p.index == 3, 9, p.index % 2)),
        ("Sex = 9 in row 5 (participant p03)", "sex must have two codes"),
        "--drop-missing",
        "--covariates Sex",
    ),
    fit(
        "age as site",
        None,
        ("'age' cannot be the site", "different values (such as", "for 80 people", "fewer than 3 people per site"),
        "--site",
        "--site age",
    ),
    fit("head size as site", None, ("'icv' cannot be the site",), "--site", "--site icv"),
    fit(
        "proportion of codes",
        assigned(sex=lambda p: p.index % 2),
        ("Impossible values", "(40 cells)", "sex = 0 in row 2", "sizes must be positive"),
        "--drop-missing",
        "--proportion sex",
    ),
    fit(
        "proportion of a patient",
        cell("icv", 44, -3),
        ("icv = -3 in row 46 (participant p44)", "sizes must be positive"),
        "--drop-missing",
        "--proportion icv",
    ),
    fit("curve of a category", None, ("--smooth", "'sex'", "text"), "numbers", "--smooth sex"),
    fit(
        "curve of two values",
        assigned(hand=lambda p: p.index % 2),
        ("'hand'", "2 different"),
        "--smooth",
        "--smooth hand",
    ),
    fit("unknown curve", None, ("'agee'", "Did you mean 'age'?"), "--smooth", "--smooth agee"),
    fit("pair of one", None, "'age'", "such as age:sex", "--interactions age"),
    fit("pair of the same", None, "'age:age'", "such as age:sex", "--interactions age:age"),
    fit("proportion of text", None, ("--proportion", "'sex'", "text"), "must be a number", "--proportion sex"),
    fit("proportion and curve", None, ("'icv'", "--proportion"), "choose one", "--proportion icv --smooth icv"),
    # Accepted, mostly with a warning
    fit("no overlap", assigned(age=separate), ("age", APART), "Warning", "--covariates age", code=0),
    fit("confounded site", assigned(site=country), ("site", APART), "Warning", code=0),
    fit("confounded age", assigned(age=separate), ("age", APART), "Warning", code=0),
    fit(
        "collinear",
        assigned(months=lambda p: p["age"] * 12),
        ("Covariates whose effects are removed: age, months", "months adds no information to age"),
        "Warning",
        "--covariates age,months",
        code=0,
    ),
    fit(
        "age in words",
        both(assigned(age=lambda p: p.index % 40 + 0.5), cell("age", 4, "55 years")),
        "'age' contains text among its numbers (1 cell, the first in row 6)",
        "Warning",
        code=0,
    ),
    fit("site named twice", None, "effects are removed: site", "", "--covariates site --site site", code=0),
    fit(
        "wide",
        wide,
        ("1,013 regions", "--features"),
        "Warning: Training on 1,013 regions takes a lot of time and memory",
        code=0,
    ),
    # Names and ids can be typed as the messages give them
    fit(
        "blanks in a name",
        both(lambda p: p.rename(columns={"region3": "Left Hippocampus"}), cell("Left Hippocampus", 3, "")),
        "Left Hippocampus (1 person)",
        "with --exclude 'Left Hippocampus'.",
        "--complete-only",
    ),
    fit(
        "comma in a name",
        both(lambda p: p.rename(columns={"region3": "Hip, left"}), cell("Hip, left", 3, "")),
        "Hip, left (1 person)",
        "--exclude (first rename 'Hip, left', because commas separate names",
        "--complete-only",
    ),
    fit(
        "emoji in an id",
        both(cell("participant_id", 4, "a:x:b"), cell("age", 4, "")),
        "(participant a:x:b)",
        "--drop-missing",
        "--covariates age",
    ),
    # Groups in separate tables
    apart("no label", "people.csv AD=more.csv", "needs a label, but people.csv has none", "Write CN=people.csv"),
    apart("no second group", "CN=people.csv", "no groups to compare", "different labels"),
    apart(
        "labels of two kinds",
        "CN=people.csv AD=more.csv",
        "more.csv already has a column 'diagnosis'",
        "Remove the column",
        lambda p: p[40:],
    ),
    apart(
        "another unit",
        "CN=people.csv AD=more.csv",
        "all patients (40 of 80 people) are 1,000 times larger",
        "the same unit",
        lambda p: patients(p).assign(**p[40:].filter(like="region") * 1000),
    ),
    apart(
        "other names",
        "CN=people.csv AD=more.csv",
        "have too few columns in common",
        "same region names",
        lambda p: patients(p).rename(columns=str.upper),
    ),
    # Too many people
    Case(
        "controls",
        "simulate basic --out c.csv --controls 1000001",
        ("--controls", "1,000,001"),
        "between 1 and 1,000,000",
    ),
    Case(
        "patients",
        "simulate basic --out c.csv --patients 9999999",
        ("--patients", "9,999,999"),
        "between 1 and 1,000,000",
    ),
)
def test_each_table_is_answered_as_its_case_says(stage, case):
    stage(case)
