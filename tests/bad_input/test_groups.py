"""Groups, covariates and sites that cannot be learned from."""

import numpy as np
import pytest

from tests.bad_input.harness import cases, cell, fit


def labels(**names):
    """Return a change of diagnosis labels."""
    return lambda people: people.assign(diagnosis=people["diagnosis"].replace(names))


def half(people):
    """Divide the controls into two labels."""
    return people.assign(diagnosis=np.where(people.index < 20, "HC", people["diagnosis"]))


def three(people):
    """Divide the patients into two labels."""
    return people.assign(diagnosis=np.where(people.index > 60, "MCI", people["diagnosis"]))


@cases(
    fit("one of each", lambda p: p.iloc[[0, 79]], ("At least 20 controls", "1 person has the label CN"), "Add people"),
    fit("19 controls", lambda p: p.iloc[21:], "only 19 people have the label CN", "--control"),
    fit("19 patients", lambda p: p.iloc[:59], "only 19 people have the label AD", "--patients"),
    fit("all controls", lambda p: p.assign(diagnosis="CN"), "no patients", "Add patients"),
    fit("all patients", lambda p: p.assign(diagnosis="AD"), ("controls", "AD (80)"), "--control"),
    fit(
        "no labels",
        lambda p: p.assign(diagnosis=""),
        "Nobody has a label in column 'diagnosis'",
        "for example CN and AD",
    ),
    fit("label misspelt", None, ("'CNN' (from --control)", "Did you mean 'CN'?"), "CN (40)", "--control CNN"),
    fit("unknown patients", None, "'FTD' (from --patients)", "Labels found: CN (40), AD (40)", "--patients AD,FTD"),
    fit("a label twice", None, "'CN' is in both", "one of the two", "--control CN --patients CN,AD"),
    fit("no label asked for", None, "--control names no label", "CN (40)", "--control ,"),
    fit("controls unclear", labels(CN="A", AD="B"), ("A (40), B (40)",), "--control LABEL"),
    fit("two names of controls", half, ("'HC', 'CN'", "HC (20)"), "--control HC,CN"),
    fit("patients unclear", three, ("2 labels", "MCI (19)"), "--patients AD,MCI"),
)
def test_groups(stage, case):
    stage(case)


def covariate(**columns):
    """Return a change of columns, each made of the table."""
    return lambda people: people.assign(**columns)


def duration(people):
    """Nobody among the controls is ill for any time."""
    return np.where(people["diagnosis"] == "AD", 1 + people.index % 7, 0)


def separate(people):
    """Patients are older than every control."""
    return np.where(people["diagnosis"] == "AD", people["age"] + 34, people["age"])


def country(people):
    """Controls and patients come from other countries."""
    return np.where(people["diagnosis"] == "AD", people["site"] + " (patients)", people["site"])


APART = "cannot be told from"


@cases(
    fit("misspelt", None, ("no column 'agee'", "Did you mean 'age'?"), "--covariates", "--covariates agee,sex"),
    fit("gap", cell("age", 4, ""), ("Missing", "age (1 person)", "row 6"), "--drop-missing", "--covariates age"),
    fit("gap in a category", cell("sex", 4, ""), ("sex (1 person)", "row 6"), "--drop-missing", "--covariates sex"),
    fit("age in words", cell("age", 4, "61y"), ("'age' (covariate)", "row 6", "'61y'"), "61", "--covariates age"),
    fit("constant", covariate(sex="F"), ("'sex'", "the same value (F)"), "Do without sex", "--covariates sex"),
    fit(
        "category without controls",
        cell("sex", 44, "X"),
        ("'sex' has 1 category without a single control", "X (1 person)", "participant p44"),
        "do without sex",
        "--covariates sex",
    ),
    fit(
        "the diagnosis itself",
        covariate(dx=lambda p: (p["diagnosis"] == "AD") * 1),
        ("'dx'", APART),
        "do without dx",
        "--covariates dx",
    ),
    fit(
        "the diagnosis in words",
        covariate(dx=lambda p: p["diagnosis"].str.lower()),
        ("'dx'", APART),
        "do without dx",
        "--covariates age,dx",
    ),
    fit("duration of illness", covariate(years=duration), ("'years'", APART), "do without years", "--covariates years"),
    fit(
        "other categories",
        covariate(country=country),
        ("'country'", APART),
        "do without country",
        "--covariates country",
    ),
    fit("site of the patients", covariate(site=country), ("'site'", APART), "until the groups overlap", "--site site"),
    fit(
        "sites of the patients dropped",
        covariate(site=country),
        ("'site'", APART),
        "until the groups overlap",
        "--site site --small-sites drop",
    ),
    fit(
        "site of one person",
        cell("site", 44, "Graz"),
        ("at least 5 controls", "Graz (0 controls of 1 person)"),
        "--small-sites drop",
        "--site site",
    ),
    fit("unknown site", None, ("'scanner'", "the site"), "--site", "--site scanner"),
    fit("one site", covariate(site="Ulm"), ("'site'", "Ulm"), "Do without --site", "--site site"),
    fit("small sites", None, ("--small-sites", "'merge'"), "refuse or drop", "--site site --small-sites merge"),
    fit(
        "a category each",
        covariate(code=lambda p: "c" + (p.index % 40).astype(str)),
        ("39 columns", "controls"),
        "Leave out",
        "--covariates code",
    ),
    fit("curve of a category", None, ("--smooth", "'sex'", "text"), "numbers", "--smooth sex"),
    fit(
        "curve of two values",
        covariate(hand=lambda p: p.index % 2),
        ("'hand'", "2 different"),
        "--smooth",
        "--smooth hand",
    ),
    fit("unknown curve", None, ("'agee'", "Did you mean 'age'?"), "--smooth", "--smooth agee"),
    fit("pair of one", None, "'age'", "such as age:sex", "--interactions age"),
    fit("pair of the same", None, "'age:age'", "such as age:sex", "--interactions age:age"),
    fit("proportion of text", None, ("--proportion", "'sex'", "text"), "numbers", "--proportion sex"),
    fit("proportion and curve", None, ("'icv'", "--proportion"), "choose one", "--proportion icv --smooth icv"),
)
def test_covariates_and_sites(stage, case):
    stage(case)


@cases(
    fit("no overlap", covariate(age=separate), ("age", APART), "Warning", "--covariates age", code=0),
    fit("confounded site", covariate(site=country), ("site", APART), "Warning", code=0),
    fit("confounded age", covariate(age=separate), ("age", APART), "Warning", code=0),
    fit(
        "collinear",
        covariate(months=lambda p: p["age"] * 12),
        ("Covariates removed: age, months", "months adds nothing to age"),
        "Warning",
        "--covariates age,months",
        code=0,
    ),
    fit("site named twice", None, "Covariates removed: site", "", "--covariates site --site site", code=0),
)
def test_what_is_warned_of(stage, case):
    stage(case)


@pytest.mark.parametrize(("option", "warned"), [("--covariates", True), ("--proportion", False)])
def test_a_head_size_that_is_divided_by_is_not_extrapolated(stage, option, warned):
    large = covariate(icv=lambda p: np.where(p.index > 70, p["icv"] + 600, p["icv"]))
    said = stage(fit(option, large, "Covariates removed: icv", "12 regions", f"{option} icv", code=0)).message
    assert ("icv outside the controls' range" in said) is warned
