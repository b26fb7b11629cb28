"""Files that are not tables, and damaged tables."""

import errno
import gzip
import io
import pickle
import shutil
import zipfile
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from tests.bad_input.harness import FOLDER, Case, as_text, cases, fit, refuse_opening

KINDS = ".csv, .tsv, .txt"


def given(name, file, content, found, remedy, **rest):
    """Return a case of a file other than people.csv."""
    words = (found,) if isinstance(found, str) else found
    return Case(name, f"fit {file} --out run", (file, *words), remedy, {file: content}, **rest)


def lines(change):
    """Return a function that writes the table with changed lines."""

    def changed(people):
        rows = as_text(people).splitlines()
        change(rows)
        return "\n".join(rows)

    return changed


def longer(rows):
    """Add a cell to the third line."""
    rows[2] += ",5"


def shorter(rows):
    """Remove the last cell of two lines."""
    rows[2], rows[5] = (rows[number].rpartition(",")[0] for number in (2, 5))


def unclosed(rows):
    """Open a quotation that is never closed."""
    rows[3] = '"' + rows[3]


def above(*titles):
    """Return a function that puts lines above the header."""
    return lines(lambda rows: rows.__setitem__(slice(0, 0), titles))


# Excel workbooks that cannot be read as a table, or only in part


def book(*changes, **more_sheets):
    """Return a function that writes the table as a workbook, with changes and more sheets."""

    def made(people):
        workbook = openpyxl.Workbook()
        sheet = workbook.active
        sheet.title = "People"
        for row in [list(people), *people.to_numpy().tolist()]:
            sheet.append(row)
        for name, rows in more_sheets.items():
            other = workbook.create_sheet(name)
            for row in rows:
                other.append(row)
        for change in changes:
            change(sheet)
        content = io.BytesIO()
        workbook.save(content)
        return content.getvalue()

    return made


def put(place, value):
    """Return a function that changes one cell, named as in a spreadsheet."""

    def change(sheet):
        sheet[place] = value

    return change


def titled(sheet):
    """Put a title above the header."""
    sheet.insert_rows(1, 2)
    sheet["A1"] = "Volumes of the study, March 2021"


def numbered(sheet):
    """Put row numbers before the ids, twice, as happens when a program saves a table again."""
    sheet.insert_cols(1, 2)
    sheet["B1"] = "Unnamed: 0"
    for row in range(2, 82):
        sheet.cell(row, 1).value = sheet.cell(row, 2).value = row


def archive(people):
    """Return a zip archive of the table."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr("people.csv", as_text(people))
    return content.getvalue()


def excel(name, content, found, remedy, file="people.xlsx", options="", **rest):
    """Return a case of a workbook."""
    return Case(name, f"fit {file} --out run {options}", found, remedy, {file: content}, **rest)


# Finished runs that were changed afterwards


SAME = "fit people.csv --out run --patterns 3 --repetitions 2 --no-report --covariates age,sex --site site --unit mm3"


def some_lines(path: Path, keep: slice) -> None:
    """Keep some lines of a file."""
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[keep]), encoding="utf-8")


def last_line_lost(run: Path) -> None:
    """Delete a person from the R-indices."""
    some_lines(run / "r_indices.csv", slice(0, -1))


def sorted_anew(run: Path) -> None:
    """Sort a table whose rows are matched by position."""
    pd.read_csv(run / "z_scores.csv").sort_values("region0").to_csv(run / "z_scores.csv", index=False)


def changed(finished: Path, folder: Path, change) -> dict:
    """Return a changed copy of the finished run, and new scores."""
    run = shutil.copytree(finished, folder / "changed")
    change(run)
    return {"run": run, "scores.csv": "participant_id,mmse\np01,29\n"}


@pytest.mark.parametrize("options", ["", " --clinical scores.csv", " --subgroup-limits 0.3,0.6"])
@pytest.mark.parametrize(
    ("change", "found"),
    [
        (last_line_lost, ("r_indices.csv", "39 people in the patient group", "summary.json there should be 40")),
        (lambda run: some_lines(run / "people.csv", slice(0, 1)), ("people.csv", "participant p00 has 0 rows")),
        (
            lambda run: (run / "model.safetensors").write_bytes(b"{}"),
            ("model.safetensors", "not this run's model"),
        ),
        (sorted_anew, ("z_scores.csv", "a different order")),
    ],
    ids=["a patient lost", "people lost", "another model", "sorted"],
)
def test_report_of_a_changed_run_is_refused(stage, finished, tmp_path, change, found, options):
    stage(
        Case(
            "changed",
            f"report run{options}",
            found,
            "rindices fit ... --overwrite",
            changed(finished, tmp_path, change),
        )
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [("report run", "r_indices.csv is missing"), (SAME, "1 of its results is missing: r_indices.csv")],
)
def test_a_run_without_a_result_is_not_called_complete_and_says_how_to_make_it_again(
    stage, finished, tmp_path, line, found
):
    files = changed(finished, tmp_path, lambda run: (run / "r_indices.csv").unlink())
    stage(Case("missing", line, (found,), "--overwrite", files))


@cases(
    # Text that is not a table
    fit("empty", "", "people.csv is empty", "header and one row per person"),
    fit("blank lines", " \n\n \n", "people.csv is empty", "header and one row per person"),
    fit("header only", lambda people: people.iloc[:0], "no rows below", "one row per person"),
    fit("one person", lambda people: people.iloc[:1], "no patients", "Add patients"),
    fit("row too long", lines(longer), "Row 3 of people.csv has 19 cells, but the header has 18", "separator"),
    fit("rows too short", lines(shorter), ("Row 3 of people.csv has 17 cells", "1 more row"), "separator"),
    fit(
        "decimal commas among commas",
        lambda people: as_text(people, decimal=",").replace('"', ""),
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
    fit(
        "one bad byte",
        lambda people: as_text(people.replace("Ulm", "Köln")).encode().replace(b"p04", b"p\xff4"),
        ("damaged: row 6", "UTF-8"),
        "'CSV UTF-8'",
    ),
    fit(  # half of a surrogate pair
        "damage in UTF-16",
        lambda people: as_text(people).encode("utf-16").replace("p04".encode("utf-16-le"), b"p\0\x00\xd84\0"),
        ("damaged: row 6", "UTF-16"),
        "'CSV UTF-8'",
    ),
    fit("unclosed quotation mark", lines(unclosed), "people.csv", "quotation mark"),
    fit("bars between the columns", lambda people: as_text(people, sep="|"), "'diagnosis'", "commas, semicolons"),
    fit("zero bytes", lambda people: as_text(people).replace("p07", "p\0\0"), "people.csv", "Save"),
    fit("picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "people.csv", KINDS),
    fit("PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj", "people.csv", KINDS),
    fit("UTF-16 without its mark", lambda people: as_text(people).encode("utf-16-le"), "people.csv", "UTF-8"),
    fit("JSON in a CSV", '{"participant_id": ["p01"],\n "diagnosis": ["CN"]}', "people.csv", "commas"),
    # Files of other kinds
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
    # Datasets and joined tables
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
        ("scores.csv has more than one row with 'p01' (rows 2 and 3)",),
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
    # Tables from other countries
    fit(
        "Latin 1",
        lambda people: as_text(people.replace("Ulm", "Köln")).encode("latin-1"),
        ("40 controls", "12 regions"),
        "",
        "--site site",
        code=0,
    ),
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
    # Workbooks
    excel("several sheets", book(Scores=[["participant_id", "mmse"], ["p01", 28]]), ("People", "Scores"), "#"),
    excel("error in a cell", book(put("J6", "#DIV/0!")), ("'region3'", "row 6", "#DIV/0!"), "leave the cell empty"),
    excel("formula that was never computed", book(put("J6", "=SUM(A1:A2)")), ("region3", "6"), "save"),
    excel(
        "number as text",
        book(put("J6", "4,999.5 mm3")),
        ("'region3'", "row 6", "'4,999.5 mm3'"),
        "with digits and a decimal point only",
    ),
    excel("title above the header", book(titled), ("people.xlsx", "row 1"), "remove titles above"),
    excel(
        "empty",
        book(lambda sheet: sheet.delete_rows(1, sheet.max_row)),
        ("people.xlsx", "contains no data in sheet 'People'"),
        "header",
    ),
    excel("damaged", b"PK\x03\x04" + bytes(600), ("people.xlsx",), "save it again"),
    excel("half", lambda people: book()(people)[:3000], ("people.xlsx",), "save it again"),
    excel("archive of a table", archive, ("people.xlsx",), "save"),
    excel("text in spite of its name", lambda people: as_text(people), ("people.xlsx", "text"), ".csv"),
    excel("old", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), ("people.xls",), "CSV UTF-8", file="people.xls"),
    excel("protected", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), ("people.xlsx", "password"), "save"),
    excel(
        "gap",
        book(put("J6", None)),
        ("Missing", "'region3', row 6 (participant p04)"),
        "--drop-missing",
        options="--complete-only",
    ),
    excel("repeated column", book(put("K1", "region3")), ("'region3'", "more than once"), "Rename"),
    # Workbooks that are accepted
    excel("as it is", book(), ("40 controls", "12 regions"), "CN versus AD", code=0),
    excel("saved twice", book(numbered), ("40 controls", "12 regions"), "CN versus AD", code=0),
    excel("empty second sheet", book(Notes=[]), ("40 controls", "12 regions"), "CN versus AD", code=0),
    # What can be neither compared nor shared
    Case(
        "compare: no run",
        "compare people.csv nothing",
        ("summary.json is missing",),
        "Provide the folder of a finished run",
    ),
    Case("compare: one run", "compare . .", ("are the same run",), "two different runs"),
    Case("share: no run", "share nothing --out m.zip", ("summary.json is missing",), "folder of a finished run"),
    Case("share: no archive", "share nothing --out m.csv", (".zip",), "use m.zip"),
    Case("verify: a table", "verify people.csv", ("cannot be read as a zip file",), "rindices share"),
    Case("verify: nothing", "verify nothing.zip", ("There is no file nothing.zip",), "rindices share"),
)
def test_each_file_is_answered_as_its_case_says(stage, case):
    stage(case)
