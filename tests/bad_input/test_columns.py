"""Columns that are missing, repeated, or have two parts to play."""

from tests.bad_input.harness import Case, as_text, cases, cell, fit


def renamed(**names):
    """Return a change of column names."""
    return lambda people: people.rename(columns=names)


def repeated(people):
    """Repeat a region's name."""
    return as_text(people).replace("region4", "region3", 1)


def shared_ids(people):
    """Give three people an id of others."""
    return people.assign(participant_id=people["participant_id"].replace({"p07": "p03", "p09": "p03", "p11": "p10"}))


def without_header(people):
    """Return the rows alone."""
    return as_text(people, header=False)


@cases(
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
    fit("no header", without_header, ("'participant_id'", "column names"), "first line"),
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
        "Keep one of them",
        "--visit wave",
    ),
    fit(
        "impossible date of a visit",
        lambda people: people.assign(day="2021-02-30"),
        ("'day' (visit)", "row 2", "'2021-02-30'"),
        "Correct the date",
        "--visit day",
    ),
)
def test_columns_that_do_not_do(stage, case):
    stage(case)


@cases(
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
        ("Not treated as regions because of their names: mmse, panss_total (score)", "12 regions"),
        "Use them with --clinical mmse,panss_total. To include them, name all regions with --features",
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
)
def test_columns_that_do(stage, case):
    stage(case)


@cases(
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
def test_what_cannot_be_checked_or_opened(stage, case):
    stage(case)
