"""Files that are no tables, or tables that are damaged."""

import errno
import gzip
import pickle

from tests.bad_input.harness import FOLDER, Case, as_text, cases, fit, refuse_opening

KINDS = ".csv, .tsv, .txt"


def given(name, file, content, found, remedy, **rest):
    """Return a case of another file than people.csv."""
    words = (found,) if isinstance(found, str) else found
    return Case(name, f"fit {file} --out run", (file, *words), remedy, {file: content}, **rest)


def lines(change):
    """Return a change of the lines of the table."""

    def changed(people):
        rows = as_text(people).splitlines()
        change(rows)
        return "\n".join(rows)

    return changed


def longer(rows):
    """Add a cell to the third line."""
    rows[2] += ",5"


def shorter(rows):
    """Take the last cell of two lines."""
    rows[2], rows[5] = (rows[number].rpartition(",")[0] for number in (2, 5))


def unclosed(rows):
    """Open a quotation."""
    rows[3] = '"' + rows[3]


def above(*titles):
    """Return what puts lines above the header."""
    return lines(lambda rows: rows.__setitem__(slice(0, 0), titles))


def one_bad_byte(people):
    """Write a city in UTF-8, and one id with a byte that is none of it."""
    return as_text(people.assign(site=people["site"].replace("Ulm", "Köln"))).encode().replace(b"p04", b"p\xff4")


def half_a_sign(people):
    """Write UTF-16 with the first half of a sign of two halves."""
    return as_text(people).encode("utf-16").replace("p04".encode("utf-16-le"), b"p\0\x00\xd84\0")


def commas(people):
    """Write decimal commas among commas."""
    return as_text(people, decimal=",").replace('"', "")


@cases(
    fit("empty", "", "people.csv is empty", "header and one row per person"),
    fit("blank lines", " \n\n \n", "people.csv is empty", "header and one row per person"),
    fit("header only", lambda people: people.iloc[:0], "no rows below", "one row per person"),
    fit("one person", lambda people: people.iloc[:1], "no patients", "Add patients"),
    fit("row too long", lines(longer), "Row 3 of people.csv has 19 cells, but the header has 18", "separator"),
    fit("rows too short", lines(shorter), ("Row 3 of people.csv has 17 cells", "1 more row"), "separator"),
    fit(
        "decimal commas among commas",
        commas,
        ("Row 2", "header has 18"),
        "decimal commas, separate columns with semicolons",
    ),
    fit("header once more", lines(lambda rows: rows.append(rows[0])), ("row 82", "'region0'"), "Correct the cells"),
    fit(
        "comment above",
        above("# made by hand"),
        ("Row 2 of people.csv has 18 cells", "the header has 1"),
        "remove any title above",
    ),
    fit(
        "title above",
        above("Volumes, in mm3", "", "of 2021"),
        ("Row 3 of people.csv", "the header has 2"),
        "remove any title above",
    ),
    fit(
        "title above semicolons",
        lambda people: "Volumes\n" + as_text(people, sep=";", decimal=","),
        ("the header has 1", "separated by semicolons"),
        "remove any title above",
    ),
    fit("one bad byte", one_bad_byte, ("damaged: row 6", "UTF-8"), "'CSV UTF-8'"),
    fit("damage in UTF-16", half_a_sign, ("damaged: row 6", "UTF-16"), "'CSV UTF-8'"),
    fit("unclosed quotation mark", lines(unclosed), "people.csv", "quotation mark"),
    fit("bars between the columns", lambda people: as_text(people, sep="|"), "'diagnosis'", "commas, semicolons"),
    fit("zero bytes", lambda people: as_text(people).replace("p07", "p\0\0"), "people.csv", "Save"),
    fit("picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "people.csv", KINDS),
    fit("PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj", "people.csv", KINDS),
    fit("UTF-16 without its mark", lambda people: as_text(people).encode("utf-16-le"), "people.csv", "UTF-8"),
    fit("JSON in a CSV", '{"participant_id": ["p01"],\n "diagnosis": ["CN"]}', "people.csv", "commas"),
)
def test_text_that_is_no_table(stage, case):
    stage(case)


@cases(
    given("JSON", "people.json", lambda people: people.to_json(), "'.json'", KINDS),
    given("PDF by its name", "people.pdf", b"%PDF-1.7", "'.pdf'", KINDS),
    given("pickle", "people.pkl", lambda people: pickle.dumps(people.to_dict()), "'.pkl'", KINDS),
    given("MATLAB", "people.mat", b"MATLAB 5.0 MAT-file", "'.mat'", KINDS),
    given("R", "people.rds", b"\x1f\x8b\x08", "'.rds'", KINDS),
    given("SPSS", "people.sav", b"$FL2", "'.sav'", KINDS),
    given("OpenDocument", "people.ods", b"PK\x03\x04", "", "save it as"),
    given("no extension", "people", "participant_id,diagnosis\n", "", KINDS),
    given("folder", "people", FOLDER, "folder", KINDS),
    given("missing", "persons.csv", None, "There is no file", "Check the name"),
    given("missing folder", "data/persons.csv", None, "There is no file", "Check the name"),
    given(
        "half a gz", "people.csv.gz", lambda p: gzip.compress(as_text(p).encode())[:900], "cannot be opened", "complete"
    ),
    given("no gz", "people.csv.gz", lambda p: as_text(p), "cannot be opened", "complete"),
    given("damaged Parquet", "people.parquet", b"PAR1 and nothing else", "Parquet", "save the table as .csv"),
    Case("other extension", "fit people.tsv --out run", ("people.tsv", "contains people.csv"), "Check the name"),
    fit(
        "not allowed to read",
        None,
        "people.csv cannot be opened",
        "have permission to read",
        spoil=refuse_opening(errno.EACCES, "people.csv", "r"),
    ),
)
def test_files_of_other_kinds(stage, case):
    stage(case)


@cases(
    given("no dataset", "study", FOLDER, "has no participants.tsv", "BIDS dataset"),
    Case(
        "dataset without ids",
        "fit study --out run",
        ("'participant_id'",),
        "rename an existing one",
        {"study/participants.tsv": "age\tsex\n61\tF\n61\tM\n"},
    ),
    Case(
        "scores of strangers",
        "fit study --out run",
        ("No id in phenotype/mmse.tsv", "'x1'", "'p00'"),
        "Use the same ids in both tables",
        {"study/participants.tsv": lambda p: p, "study/phenotype/mmse.tsv": "participant_id\tmmse\nx1\t28\n"},
    ),
    Case(
        "damaged description",
        "fit study --out run",
        ("participants.json",),
        "Correct",
        {"study/participants.tsv": lambda p: p, "study/participants.json": '{"age": {"Units": '},
    ),
    fit("joined table missing", None, "There is no file scores.csv", "Check the name", "--join scores.csv"),
    fit(
        "joined table without ids",
        None,
        ("scores.csv", "'participant_id'", "Did you mean"),
        "Rename",
        "--join scores.csv",
        files={"scores.csv": "mmse,participantid_\n28,p01\n28,p01\n"},
    ),
    fit(
        "joined table with repeated ids",
        None,
        ("scores.csv has 'p01' in rows 2 and 3",),
        "Keep one row per person",
        "--join scores.csv",
        files={"scores.csv": "participant_id,mmse\np01,28\np01,29\n"},
    ),
    fit(
        "joined table that contradicts",
        None,
        ("'age'", "scores.csv", "row 3"),
        "Rename or remove",
        "--join scores.csv",
        files={"scores.csv": "participant_id,age\np01,7\n"},
    ),
    fit("dictionary missing", None, "words.csv", "Check", "--dictionary words.csv"),
    fit(
        "dictionary of something else",
        None,
        "words.csv",
        "column",
        "--dictionary words.csv",
        files={"words.csv": "a,b\n1,2\n"},
    ),
)
def test_datasets_and_joined_tables(stage, case):
    stage(case)


def umlauts(people):
    """Write a city with an umlaut as old spreadsheets do."""
    return as_text(people.assign(site=people["site"].replace("Ulm", "Köln"))).encode("latin-1")


@cases(
    fit("Latin 1", umlauts, ("40 controls", "12 regions"), "", "--site site", code=0),
    fit("UTF-16", lambda people: as_text(people).encode("utf-16"), ("40 controls", "12 regions"), code=0, remedy=""),
    fit("mark of UTF-8", lambda people: as_text(people).encode("utf-8-sig"), "12 regions", "40 controls", code=0),
    fit("German", lambda people: as_text(people, sep=";", decimal=","), "12 regions", "40 controls", code=0),
    fit("tabs in a CSV", lambda people: as_text(people, sep="\t"), "12 regions", "40 controls", code=0),
    fit("Excel's line", above("sep=,"), "12 regions", "40 controls", code=0),
    fit("empty lines above", above("  ", ",,,,", ""), "12 regions", "40 controls", code=0),
    fit(
        "Excel's line with semicolons",
        lambda people: "sep=;\n" + as_text(people, sep=";", decimal=","),
        "12 regions",
        "40 controls",
        code=0,
    ),
    fit("Windows", lambda people: as_text(people, lineterminator="\r\n"), "12 regions", "40 controls", code=0),
)
def test_tables_of_other_countries(stage, case):
    stage(case)
