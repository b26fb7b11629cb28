"""Excel workbooks that cannot be read as a table, or only in part."""

import io
import zipfile

import openpyxl

from tests.bad_input.harness import Case, as_text, cases


def book(*changes, **more_sheets):
    """Return what makes the bytes of a workbook of the table, changed and with more sheets."""

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
    """Return a change of one cell, named as in a spreadsheet."""

    def change(sheet):
        sheet[place] = value

    return change


def titled(sheet):
    """Put a title above the header."""
    sheet.insert_rows(1, 2)
    sheet["A1"] = "Volumes of the study, March 2021"


def numbered(sheet):
    """Put row numbers before the ids, twice, as a program does that saves a table again."""
    sheet.insert_cols(1, 2)
    sheet["B1"] = "Unnamed: 0"
    for row in range(2, 82):
        sheet.cell(row, 1).value = sheet.cell(row, 2).value = row


def emptied(sheet):
    """Take all rows."""
    sheet.delete_rows(1, sheet.max_row)


def archive(people):
    """Return a zip archive of the table."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr("people.csv", as_text(people))
    return content.getvalue()


def excel(name, content, found, remedy, file="people.xlsx", options="", **rest):
    """Return a case of a workbook."""
    return Case(name, f"fit {file} --out run {options}", found, remedy, {file: content}, **rest)


@cases(
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
    excel("empty", book(emptied), ("people.xlsx", "no data in 1 sheet ('People')"), "header"),
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
)
def test_workbooks(stage, case):
    stage(case)


@cases(
    excel("as it is", book(), ("40 controls", "12 regions"), "CN versus AD", code=0),
    excel("saved twice", book(numbered), ("40 controls", "12 regions"), "CN versus AD", code=0),
    excel("empty second sheet", book(Notes=[]), ("40 controls", "12 regions"), "CN versus AD", code=0),
)
def test_workbooks_that_do(stage, case):
    stage(case)
