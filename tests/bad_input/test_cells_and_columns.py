"""Cells and columns of a table that cannot be used, and some that can."""

from tests.bad_input.harness import Case, as_text, both, cases, cell, fit

LEAVE_OUT, PLAIN = "--exclude region3", "Write numbers with digits and a decimal point only"
COMPLETE = "--complete-only"  # otherwise a person may lack a few regions


def text(name, value, remedy):
    """Return a case with text in one cell of a region."""
    return fit(name, cell("region3", 4, value), ("'region3'", "row 6 (participant p04)", repr(value)), remedy)


def region(change):
    """Return a function that changes all cells of two regions."""
    return lambda people: people.assign(**{name: people[name].map(change) for name in ("region3", "region4")})


def european(gap, comma):
    """Return a function that writes numbers with other separators."""
    return lambda value: f"{value:,.1f}".translate({ord(","): gap, ord("."): comma})


def thousands(people):
    """Return the table with one region of whole numbers, one of them with a point between thousands."""
    return cell("region3", 4, "4.999")(people.assign(region3=people["region3"].round().astype(int)))


def number(name, value, shown=None):
    """Return a case with an impossible number in one cell of a region."""
    found = (f"region3 = {shown or value}", "row 6 (participant p04)")
    return fit(name, cell("region3", 4, value), found, "exclude these people with --drop-missing")


# Columns that are missing, repeated, or have two roles


def renamed(**names):
    """Return a function that renames columns."""
    return lambda people: people.rename(columns=names)


def repeated(people):
    """Repeat a region's name."""
    return as_text(people).replace("region4", "region3", 1)


def shared_ids(people):
    """Give three people the ids of others."""
    return people.assign(participant_id=people["participant_id"].replace({"p07": "p03", "p09": "p03", "p11": "p10"}))


@cases(
    # Text among numbers
    text("word", "low", LEAVE_OUT),
    text("separator of thousands", "1,234", PLAIN),
    text("separators of thousands", "1,234,567.8", PLAIN),
    text("apostrophe of thousands", "1'234", PLAIN),
    text("decimal comma", "4999,5", PLAIN),
    text("unit", "4999.5 mm3", PLAIN),
    text("percent", "12%", PLAIN),
    text("date", "2021-03-31", LEAVE_OUT),
    text("date of a spreadsheet", "03-Jan", LEAVE_OUT),
    text("error of a spreadsheet", "#DIV/0!", "If a value is missing, leave the cell empty"),
    text("below a limit", "<0.5", LEAVE_OUT),
    text("two points", "4..5", LEAVE_OUT),
    text("question mark", "?", "If a value is missing, leave the cell empty"),
    text("truth value", "TRUE", LEAVE_OUT),
    text("typographic minus", "\u2212999", LEAVE_OUT),
    fit(
        "text in several columns",
        both(cell("region3", 4, "low"), cell("region3", 5, "high"), cell("region7", 1, "3.4 mL")),
        ("'region3'", "row 6 (participant p04)", "'low'", "1 more cell", "'region7'", "row 3", "'3.4 mL'"),
        "--exclude region3,region7",
    ),
    fit(
        "points of thousands beside whole numbers",
        lambda people: as_text(thousands(people), sep=";", decimal=","),
        ("'region3'", "'4.999' in row 6", "decimal commas"),
        "Remove thousands separators from all cells (here: 4999)",
    ),
    fit(
        "points of thousands beside decimal commas",
        lambda people: as_text(cell("region3", 4, "4.999")(region(european("", ","))(people)), sep=";", decimal=","),
        ("'region3'", "'4.999' in row 6", "decimal commas"),
        "Remove thousands separators from all cells (here: 4999)",
    ),
    fit(
        "separators of thousands everywhere",
        lambda people: people.assign(**{n: people[n].map("{:,.1f}".format) for n in people.filter(like="region")}),
        ("'region0'", "10 more columns contain text", "row 2"),
        PLAIN,
    ),
    # Numbers that would be lost or misread
    fit(
        "covariate with points of thousands and a decimal comma",
        lambda people: as_text(people.assign(icv=people["icv"].map(european(".", ","))), sep=";", decimal=","),
        ("'icv' (covariate)", "row 2 (participant p00)", "79 more cells"),
        PLAIN,
        "--covariates icv",
    ),
    fit(
        "score with units",
        lambda people: people.assign(mmse=[f"{value} pts" for value in range(80)]),
        ("'mmse' (clinical score)", "row 2 (participant p00)", "'0 pts'"),
        "Correct the cells",
        "--clinical mmse",
    ),
    fit(
        "score with gaps taken for a region",
        lambda people: cell("Punkte", 4, "")(people.assign(Punkte=people["age"] % 12 + 18)),
        ("Punkte (1 person)", "row 6"),
        "name it with --clinical Punkte if it is a score, not a region",
    ),
    fit(
        "half of the regions with units",
        lambda people: people.assign(**{f"region{n}": people[f"region{n}"].map("{} mm3".format) for n in range(6)}),
        ("'region0'", "4 more columns contain text", "row 2"),
        "exclude the columns with --exclude region0",
    ),
    fit(
        "people whom the joined table does not know",
        lambda people: people.drop(columns="icv"),
        ("icv (3 people)", "row 2 (participant p00)", "in more.csv for 3 rows of the main table"),
        "exclude these people with --drop-missing",
        "--join more.csv --covariates icv",
        files={"more.csv": lambda people: people.loc[3:, ["participant_id", "icv"]]},
    ),
    # Regions of text are not dropped silently
    fit(
        "separators of thousands in two regions",
        region("{:,.1f}".format),
        ("'region3'", "'region4'", "row 2"),
        PLAIN,
    ),
    fit(
        "European thousands in two regions",
        lambda people: as_text(region(european(".", ","))(people), sep=";", decimal=","),
        ("'region3'", "'region4'", "row 2"),
        PLAIN,
    ),
    fit(
        "thin spaces of thousands in two regions",
        lambda people: as_text(region(european("\u2009", ","))(people), sep=";", decimal=","),
        ("'region3'", "'region4'", "row 2"),
        PLAIN,
    ),
    fit("limits in two regions", region("<{}".format), ("'region3'", "'region4'", "row 2"), PLAIN),
    fit("stars in two regions", region("{}*".format), ("'region3'", "'region4'", "row 2"), PLAIN),
    fit("units in two regions", region("{} mm3".format), ("'region3'", "'region4'", "row 2"), PLAIN),
    # Impossible numbers
    number("infinity", "inf"),
    number("negative infinity", "-inf"),
    fit(
        "too large", cell("region3", 4, "1e400"), ("region3", "row 6 (participant p04)"), "people with --drop-missing"
    ),  # text in pandas 2
    number("huge", "1e300", "1e+300"),
    number("negative volume", "-4000.5", "-4000"),
    number("zero", "0"),
    number("code for a gap", "-999"),
    *(
        fit(
            name, cell("region3", 4, gap), ("Missing", "region3", "row 6 (participant p04)"), "--drop-missing", COMPLETE
        )
        for name, gap in (("gap", ""), ("gap in words", "n/a"))
    ),
    fit(
        "gaps and impossible values at once",
        both(cell("region3", 4, ""), cell("age", 6, ""), cell("age", 7, 250), cell("region5", 8, -3)),
        ("region3 (1 person)", "row 6", "age (1 person)", "row 8", "age = 250 in row 9", "region5 = -3 in row 10"),
        "--drop-missing",
        f"--covariates age {COMPLETE}",
    ),
    fit("impossible age", cell("age", 4, 250), ("age = 250", "row 6"), "--drop-missing", "--covariates age"),
    fit("negative age", cell("age", 4, -1), ("age = -1", "row 6"), "--drop-missing", "--covariates age"),
    fit("head size of 0", cell("icv", 4, 0), ("icv = 0", "row 6"), "--drop-missing", "--covariates icv"),
    fit("head size divided by", cell("icv", 4, 0), ("icv = 0", "row 6"), "--drop-missing", "--proportion icv"),
    fit(
        "one value in all cells",
        lambda people: people.assign(region3=4.0),
        ("'region3'", "everyone has the value 4"),
        "--exclude region3",
        "--features 'region*'",
    ),
    fit(
        "only zeros",
        lambda people: people.assign(region3=0, region4=0),
        ("2 regions", "region3, region4"),
        "--exclude region3,region4",
        "--features 'region*'",
    ),
    fit(
        "a column of zeros and a number of the site",
        lambda people: people.assign(region3=0, place=7),
        ("Constant columns are excluded: region3 (always 0); place (always 7)",),
        code=0,
        remedy="11 regions",
    ),
    fit(
        "constant in controls",
        lambda people: people.assign(region3=people["region3"].where(people["diagnosis"] == "AD", 4.0)),
        ("'region3'", "every control has the value 4"),
        "--exclude region3",
    ),
    fit(
        "nearly all zeros",
        both(lambda people: people.assign(region3=0.0), both(cell("region3", 4, 5.2), cell("region3", 60, 8.1))),
        ("'region3'", "every control but 1 has the value 0"),
        "--exclude region3",
        "--features 'region*'",
    ),
    fit("empty column", lambda people: people.assign(region3=""), ("excluded: region3",), code=0, remedy="11 regions"),
    # People with gaps and impossible values are left out on request
    *(
        fit(
            name,
            both(cell("region3", 4, value), cell("region5", 8, -3)),
            "2 of 80 rows are excluded",
            "38 controls",
            f"--drop-missing {COMPLETE}",
            code=0,
        )
        for name, value in (("a gap left out", ""), ("a huge number left out", "1e300"))
    ),
    # Columns that are refused
    fit(
        "no ids",
        lambda people: people.drop(columns="participant_id"),
        ("'participant_id'", "Columns found: diagnosis"),
        "--id COLUMN",
    ),
    fit("no diagnosis", renamed(diagnosis="group"), ("'diagnosis'", "Columns found:"), "--diagnosis group"),
    fit("diagnosis elsewhere", renamed(diagnosis="status"), ("'diagnosis'", "--diagnosis COLUMN"), "--join FILE"),
    fit(
        "other ids asked for",
        renamed(participant_id="Participant_ID"),
        "Did you mean 'Participant_ID'?",
        "--id COLUMN",
        "--id participantid",
    ),
    fit("no header", lambda people: as_text(people, header=False), ("'participant_id'", "column names"), "first line"),
    fit("repeated column", repeated, ("'region3' more than once", "columns 10 and 11"), "Rename or remove"),
    fit("repeated ids", shared_ids, ("'p03' occurs in rows 5 and 9 and 11", "1 other"), "--visit COLUMN"),
    fit(
        "ids missing",
        lambda people: people.assign(participant_id=people["participant_id"].replace({"p07": "", "p09": " "})),
        "'participant_id' is empty in rows 9, 11",
        "Fill in every id",
    ),
    fit(
        "id that means missing",
        cell("participant_id", 0, "NA"),
        ("'participant_id' is empty", "row 2"),
        "Fill in every id",
    ),
    fit(
        "saved twice",
        lambda people: people.assign(**{"Unnamed: 0": range(80)}).to_csv(),
        ("40 controls", "12 regions"),
        "CN versus AD",
        code=0,
    ),
    fit(
        "three regions", lambda people: people.iloc[:, :9], ("At least 4 regions", "but the table has 3"), "--features"
    ),
    fit("regions excluded", None, ("At least 4 regions", "but the table has 0"), "--exclude", "--exclude 'region*'"),
    fit(
        "few regions named", None, ("but the table has 2: region1, region2"), "--features", "--features region1,region2"
    ),
    fit("unknown region", None, ("'regoin1' (from --features)", "Did you mean"), "region0", "--features regoin1"),
    fit("pattern for nothing", None, "'Region*' (from --features) matches no", "region0", "--features 'Region*'"),
    fit("unknown column excluded", None, "'lHip' (from --exclude)", "region0", "--exclude lHip"),
    fit("no file of names", None, "names.txt", "one name per line", "--features @names.txt"),
    fit("empty file of names", None, "no names", "one name per line", "--features names.txt", files={"names.txt": "#"}),
    fit(
        "picture as names", None, "names.txt", "one name per line", "--features names.txt", files={"names.txt": b"\xff"}
    ),
    fit(
        "region and covariate",
        None,
        ("'region0' is a covariate", "--features"),
        "Choose one or the other",
        "--features region0,region1,region2,region3,region4 --covariates region0",
    ),
    fit(
        "covariate excluded",
        None,
        ("'age' is a covariate", "--exclude"),
        "Choose one or the other",
        "--covariates age --exclude age",
    ),
    fit(
        "covariate and score",
        None,
        ("'age' is a covariate", "clinical"),
        "--clinical",
        "--covariates age --clinical age",
    ),
    fit(
        "ids as diagnosis", None, "'participant_id' is the participant id", "--diagnosis", "--diagnosis participant_id"
    ),
    fit("unknown score", None, ("'mmse' (from --clinical)", "not a column"), "Available columns", "--clinical mmse"),
    fit("unknown visit", None, ("'wave'", "the visit"), "--visit", "--visit wave"),
    fit(
        "repeated visits",
        lambda people: shared_ids(people).assign(wave=1),
        ("'p03' has the visit '1' (column 'wave') in rows 5 and 9 and 11", "1 other"),
        "Keep only one of these rows",
        "--visit wave",
    ),
    fit(
        "impossible date of a visit",
        lambda people: people.assign(day="2021-02-30"),
        ("'day' (visit)", "row 2", "'2021-02-30'"),
        "Correct the date",
        "--visit day",
    ),
    # Columns that are accepted
    fit(
        "ids elsewhere", renamed(participant_id="subject"), "Ids are read from column 'subject'", "--id COLUMN", code=0
    ),
    fit(
        "ids in a first column",
        renamed(participant_id="code"),
        "Ids are read from column 'code'",
        "--id COLUMN",
        code=0,
    ),
    fit("a region named twice", None, "12 regions", "40 controls", "--features 'region0,region*,region0'", code=0),
    fit(
        "ids as floats",
        lambda people: people.assign(participant_id=people.index * 1.0),
        "40 controls",
        "12 regions",
        code=0,
    ),
    fit(
        "row numbers without a name",
        lambda people: as_text(people.rename(columns={"icv": ""})),
        "12 regions",
        "40 controls",
        code=0,
    ),
    fit(
        "scores among the regions",
        lambda people: people.assign(mmse=people["age"] % 30, panss_total=people["age"] % 41),
        ("Judging by their names, mmse, panss_total are not regions (score)", "12 regions"),
        "Use them as clinical scores with --clinical mmse,panss_total. To use them as regions, "
        "name all regions with --features",
        code=0,
    ),
    fit(
        "a score that is named as a region",
        lambda people: people.assign(mmse=people["age"] % 30),
        "look like scores: mmse",
        "--clinical",
        "--features 'region*,mmse'",
        code=0,
    ),
    # What cannot be checked or opened
    Case("check: unknown column", "check people.csv --covariates agee", ("Did you mean 'age'?",), "--covariates"),
    Case("open: no folder", "open nowhere --no-browser", ("No folder was found at nowhere",), "Provide the folder"),
    Case("open: a file", "open people.csv --no-browser", ("No folder was found at people.csv",), "Provide the folder"),
    Case("open: port out of range", "open . --no-browser --port 70000", ("Invalid value",), "--port"),
    Case("check: no table", "check people2.csv", ("There is no file people2.csv",), "Check the name"),
    Case("check: page of another kind", "check people.csv --report page.csv", (".html",), "use page.html"),
    Case(
        "check: page over the table",
        "check people.html --report people.html",
        ("people.html",),
        "--report",
        files={"people.html": as_text},
    ),
)
def test_each_table_is_answered_as_its_case_says(stage, case):
    stage(case)
