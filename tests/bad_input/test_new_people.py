"""New people who do not match a model with age, sex, two sites and twelve regions in mm³."""

import pandas as pd

from tests.bad_input.harness import Case, as_text, assigned, both, cases, cell

LINE = "apply model.safetensors people.csv --out s.csv"


STRANGERS = "participant_id,age\nx1,61\n"


def new(name, change, found, remedy, options="", more=None, **rest):
    """Return a case of new people, with a table to join if given."""
    files = {name: content for name, content in (("people.csv", change), ("more.csv", more)) if content is not None}
    return Case(name, f"{LINE} {options}", found, remedy, files, **rest)


def accepted(name, change, found, flag, options=""):
    """Return a case of people who are scored and flagged."""
    return new(name, change, (found, "s.csv"), flag, options, code=0, writes=("s.csv",))


@cases(
    accepted("too old", cell("age", 4, 101), "1 person is outside", "flags"),
    accepted("large region", cell("region3", 4, 9000), "1 person is outside", "flags"),
    accepted("unknown site", cell("site", 4, "Graz"), "or from an unknown site", "flags", "--new-sites uncorrected"),
)
def test_people_outside_the_range_are_flagged(stage, case):
    flags = pd.read_csv(stage(case).folder / "s.csv")["flags"]
    # A barely trained model finds many people strange, which does not count here.
    flags = flags.str.replace(r"(; )?unlike anyone.*", "", regex=True).replace("", None)
    assert flags.notna().sum() == 1
    assert isinstance(flags[4], str)


def test_two_tables_are_scored_as_one_and_who_is_left_out_is_told(stage):
    case = new(
        "two tables",
        lambda people: cell("region3", 4, "")(people.drop(columns=["age", "sex"])),
        (
            "Scored 79 people",
            "1 of 80 rows is excluded: missing region (1).",
            "for 1 row of more.csv, whose values are not used",
        ),
        "",
        "--join more.csv --drop-missing --complete-only --report r.html",
        more=lambda p: as_text(p[["participant_id", "age", "sex"]]) + "p99,61,F\n",
        code=0,
        writes=("s.csv", "s_left_out.csv", "r.html"),
    )
    folder = stage(case).folder
    left_out = pd.read_csv(folder / "s_left_out.csv")
    assert left_out[["participant_id", "used", "reason"]].values.tolist() == [["p04", False, "missing region"]]
    page = (folder / "r.html").read_text()
    assert not [part for part in ("80 people, of whom 79 were used", "missing region") if part not in page]
    assert "p04" not in page
    together = new("one table", lambda p: p.drop(4), "Scored 79 people", "", code=0, writes=("s.csv",))
    two = pd.read_csv(folder / "s.csv")
    folder.rename(folder.with_name("before"))
    folder.with_name("folder-scratch").rmdir()
    pd.testing.assert_frame_equal(two, pd.read_csv(stage(together).folder / "s.csv"))


@cases(
    accepted("a region missing", lambda p: p.drop(columns="region3"), "lacks 1 of the model's 12 regions: region3", ""),
    accepted("some regions missing", cell("region3", 4, ""), "Not everyone has values for all regions", ""),
)
def test_missing_regions_are_drawn_and_flagged(stage, case):
    scores = pd.read_csv(stage(case).folder / "s.csv")
    lacking = scores["flags"].str.contains("values missing in 1 region (region3)", regex=False, na=False)
    assert lacking.sum() == (80 if "a region" in case.name else 1)
    assert lacking[4]
    assert scores.filter(regex=r"^r\d$").notna().all(axis=None)


def test_mixed_up_regions_are_strangers(stage):
    def mixed(people):
        names = list(people.filter(like="region"))
        people.loc[4, names] = people.loc[4, names].astype(float) * ([1.25, 0.8] * 6)
        return people

    scores = pd.read_csv(stage(accepted("mixed up", mixed, "unlike anyone the model can produce", "")).folder / "s.csv")
    assert scores.loc[4, "strangeness"] > 1
    assert "unlike anyone the model can produce (strangeness" in scores.loc[4, "flags"]


def local(name, change, found, remedy, options="", **rest):
    """Return a case of adapting a model to new sites."""
    files = {} if change is None else {"people.csv": change}
    return Case(name, f"adapt model.safetensors people.csv --out m.safetensors{options}", found, remedy, files, **rest)


def again(label):
    """Return a function that adds a second visit of everybody, with this label and at the same age."""
    return lambda people: pd.concat([people.assign(wave="first"), people.assign(wave=label)])


@cases(
    # New people who break the contract
    new(
        "regions missing",
        lambda p: p.drop(columns=["region3", "region4", "region5"]),
        ("12 regions", "lacks 3: region3, region4, region5", "more than a fifth"),
        "Add the missing column",
    ),
    new(
        "complete tables only",
        lambda p: p.drop(columns="region3"),
        ("12 regions", "lacks 1: region3"),
        "Add the missing column",
        "--complete-only",
    ),
    new(
        "region renamed",
        lambda p: p.rename(columns={"region3": "Region_3"}),
        ("region3", "Did you mean 'Region_3'?"),
        "named as in the training table",
    ),
    new(
        "regions of another atlas", lambda p: p.rename(columns=lambda n: n.replace("region", "roi_")), "lacks 12", "Add"
    ),
    new("noise of one visit", None, ("--scan-noise", "there are none"), "--visit", "--scan-noise 0.04"),
    new(
        "noise of another model",
        assigned(wave=1),
        "each of 3 patterns, but got 2",
        "one number",
        "--visit wave --scan-noise 0.1,0.2",
    ),
    new(
        "other unit",
        lambda p: p.assign(**p.filter(like="region") / 1000),
        ("1000 times smaller", "mm3", "'region0'"),
        "Convert",
    ),
    new(
        "other unit in one region",
        lambda p: p.assign(region3=p["region3"] / 1000),
        "'region3' are 1000 times",
        "Correct",
    ),
    new("covariate missing", lambda p: p.drop(columns="age"), ("no column 'age'", "covariate of the model"), "Add"),
    new(
        "sex in other codes",
        lambda p: p.assign(sex=p["sex"].map({"F": 0, "M": 1})),
        ("'sex' was coded F, M in training, but contains 0, 1 in this table. The first", "row 2 (participant p00)"),
        "Code the covariate as in the training table",
    ),
    new("new category", cell("sex", 4, "X"), ("'sex'", "'X', in row 6 (participant p04)"), "Code the covariate as"),
    new(
        "new site",
        cell("site", 4, "Graz"),
        ("'site'", "'Graz', in row 6 (participant p04)", "rindices adapt"),
        "--new-sites uncorrected",
    ),
    new("site missing", lambda p: p.drop(columns="site"), "no column 'site'", "Add the column"),
    new(
        "age in words",
        lambda p: p.assign(age="old"),
        ("'age' was numeric during training (mostly 58 to 83)", "old"),
        "Code the covariate",
    ),
    new("age of one in words", cell("age", 4, "61 y"), ("'age'", "row 6", "'61 y'"), "61"),
    new("repeated ids", cell("participant_id", 4, "p03"), "'p03' occurs in rows 5 and 6", "--visit COLUMN"),
    new("ids renamed", lambda p: p.rename(columns={"participant_id": "who"}), "'participant_id'", "Rename"),
    new("ids missing", cell("participant_id", 4, ""), ("'participant_id' is empty", "row 6"), "Fill in"),
    new("text in a region", cell("region3", 4, "low"), ("'region3'", "row 6 (participant p04)", "'low'"), "Correct"),
    new(
        "gap in a region",
        cell("region3", 4, ""),
        ("Missing", "region3", "row 6", "Fill in"),
        "--drop-missing",
        "--complete-only",
    ),
    new(
        "too many gaps of a person",
        both(*(cell(f"region{place}", 4, "") for place in (3, 4, 5))),
        ("Missing", "region3", "row 6", "Fill in"),
        "--drop-missing",
    ),
    new("gap in a covariate", cell("age", 4, ""), ("Missing", "age", "row 6", "Fill in"), "--drop-missing"),
    new("gap in a category", cell("sex", 4, ""), ("Missing", "sex", "row 6", "Fill in"), "--drop-missing"),
    new(
        "impossible age",
        cell("age", 4, 250),
        ("age = 250 in row 6", "Ages must lie between 0 and 120"),
        "--drop-missing",
    ),
    new(
        "gaps everywhere",
        assigned(region3=""),
        "No one is left",
        "Fill in or correct the cells",
        "--drop-missing --complete-only",
    ),
    new(
        "ages with units",
        lambda p: p.assign(age=p["age"].map("{} y".format)),
        ("'age'", "row 2 (participant p00)", "'54 y'"),
        "with digits and a decimal point only",
    ),
    new(
        "nobody in the joined table",
        None,
        ("No id in more.csv",),
        "Use the same ids in both tables",
        "--join more.csv",
        more=STRANGERS,
    ),
    new(
        "somebody not in the joined table",
        lambda p: p.drop(columns="age"),
        ("age (2 people)", "row 2 (participant p00)", "in more.csv for 2 rows of the main table"),
        "exclude these people with --drop-missing",
        "--join more.csv",
        more=lambda p: p.loc[2:, ["participant_id", "age"]],
    ),
    new("no joined table", None, "There is no file more.csv", "Check the name", "--join more.csv"),
    Case("written over", f"{LINE} --join s.csv", ("s.csv",), "--out", {"s.csv": STRANGERS}),
    new("infinite region", cell("region3", 4, "inf"), ("region3", "row 6"), "Correct"),
    new("huge region", cell("region3", 4, "1e300"), ("region3", "row 6"), "Correct"),
    new(
        "text and gaps at once",
        both(cell("region3", 4, "low"), cell("region4", 5, ""), cell("region5", 6, "inf")),
        ("'region3'", "'low'", "region4", "row 7", "region5", "row 8"),
        "Correct",
        "--complete-only",
    ),
    new("nobody", lambda p: p.iloc[:0], "no rows below", "one row per person"),
    new("empty", "", "people.csv is empty", "one row per person"),
    new("row too long", lambda p: as_text(p) + "p99,1,2\n", "Row 82 of people.csv has 3 cells", "separator"),
    new("unknown way with sites", None, ("--new-sites", "'drop'"), "'refuse' or 'uncorrected'", "--new-sites drop"),
    new("needed column excluded", None, "needs column 'region3'", "--exclude", "--exclude region3"),
    new("report wanted", None, "--show-ids", "--report FILE", "--show-ids"),
    new(
        "follow-up without a report",
        assigned(years=1.0, died=0),
        "--time, --event can only be used with a report",
        "--report FILE",
        "--time years --event died",
    ),
    new(
        "unknown event",
        assigned(years=1.0, died=0),
        "'dead' (from --event) is not a column",
        "Did you mean 'died'?",
        "--time years --event dead --report r.html",
    ),
    # What is accepted
    new(
        "without a diagnosis", lambda p: p.drop(columns="diagnosis"), "Scored 80 people", "", code=0, writes=("s.csv",)
    ),
    new("other order", lambda p: p[p.columns[::-1]], "Scored 80 people", "", code=0, writes=("s.csv",)),
    new(
        "region too many",
        assigned(extra=1.5),
        ("Scored 80 people", "unknown to the model are ignored: extra"),
        "",
        code=0,
        writes=("s.csv",),
    ),
    new(
        "ids under a usual name",
        lambda p: p.rename(columns={"participant_id": "subject"}),
        ("Scored 80 people", "Ids are read from column 'subject'"),
        "--id COLUMN",
        code=0,
        writes=("s.csv",),
    ),
    new("one person", lambda p: p.iloc[[50]], "Scored 1 person", "", code=0, writes=("s.csv",)),
    new("ids as numbers", lambda p: p.assign(participant_id=p.index), "Scored 80", "", code=0, writes=("s.csv",)),
    # Controls of new sites
    local("known site", None, "already includes sites Bern, Ulm", "Provide controls from new sites only"),
    local("nobody healthy", lambda p: p[40:].assign(site="Graz"), "people.csv has no controls", "add controls"),
    local("few controls", lambda p: p[:4].assign(site="Graz"), ("at least 10 controls", "Graz (4)"), "Add controls"),
    local("a small site", lambda p: p[:8].assign(site="Graz"), ("at least 10 controls", "(8)"), "--few-controls"),
    local("site missing", lambda p: p.drop(columns="site"), "no column 'site'", "Add the column"),
    local(
        "a new site",
        lambda p: p.assign(site="Graz"),
        ("Estimated the effects of site Graz from 40 controls", "40 other rows were ignored", "define the reference"),
        "",
        code=0,
        writes=("m.safetensors",),
    ),
    local(
        "a small new site",
        lambda p: p[:8].assign(site="Graz"),
        ("Estimated the effects of site Graz from 8 controls", "fewer than 10"),
        "",
        code=0,
        writes=("m.safetensors",),
        options=" --few-controls",
    ),
    # Visits with too little information are still scored
    new(
        "visits without a time",
        again("second"),
        ("neither dates nor times such as m06", "no column 'age' that increases"),
        "Change per year cannot be computed",
        "--visit wave",
        code=0,
        writes=("s.csv",),
    ),
    new(
        "people who came twice count once",
        lambda people: again("second")(people.assign(region3=people["region3"].where(people.index != 4, 9000))),
        ("1 person is outside the training range;", "of 80 people"),
        "flags",
        "--visit wave",
        code=0,
        writes=("s.csv",),
    ),
    new(
        "too few controls came again",
        lambda people: (
            people.assign(wave="bl")
            .iloc[:44]
            .pipe(lambda table: pd.concat([table, table.iloc[36:].assign(wave="m12")]))
        ),
        (
            "no intervals: 4 controls had repeated visits",
            "too few",
            "The time between visits is taken from the labels of visits",
        ),
        "--scan-noise",
        "--visit wave",
        code=0,
        writes=("s.csv", "s_change.csv"),
    ),
)
def test_each_table_is_answered_as_its_case_says(stage, case):
    stage(case)
