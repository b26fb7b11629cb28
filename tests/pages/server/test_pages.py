"""The pages: how a table is read, proposed remedies, results under their verdict, new people and two runs."""

import json
import os
import re
import shutil
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import quote

import pandas as pd
import pytest

from rindices.cli import results as open_command
from rindices.model import read_model, write_model
from rindices.pages import layout
from rindices.pages.server.page import background_result, on_page
from rindices.problems import Remedy
from rindices.record.documents import SENTENCES
from tests.pages.made_run import change_summary, rewrite
from tests.pages.page import missing, rows_of
from tests.tables.trees import subjects_dir
from tests.test_cli import run


def checked(client, **asked):
    return client.get("/table/checked", params={"table": "cohort.csv"} | asked).raise_for_status().text


def query_of(text):
    return re.search(r'data-query="([^"]*)"', text)[1].replace("&amp;", "&")


def test_roles_are_guessed_shown_and_changed(client, folder):
    text = checked(client)
    assert not missing(text, "This table can be used for training", 'data-later="/table/look?')
    assert text.count('class="spark"') > 10
    look = client.get(f"/table/look?{query_of(text)}").text  # after the check, what can be said before training
    assert not missing(look, "A fit takes about ", 'data-name="spectrum"')
    region = pd.read_csv(folder / "cohort.csv").columns[-1]
    changed = checked(client, chosen="yes", covariates=["age", "sex"], column=region, role="clinical score")
    assert f"rindices check cohort.csv --covariates age,sex --clinical {region}" in changed
    back = client.get(f"/table/checked?{query_of(changed)}&column={region}&role=region").text
    roles = [re.findall("clinical=[^&]+|covariates=age", query_of(one)) for one in (text, changed, back)]
    assert roles == [["covariates=age"], ["covariates=age", f"clinical={region}"], ["covariates=age"]]


def test_controls_and_patients_in_files_of_their_own_are_one_table(client, folder):
    table, csv = pd.read_csv(folder / "cohort.csv"), f"{'x' * 130}.csv"  # together longer than a file name may be
    for label, people in table.groupby("diagnosis"):
        people.drop(columns="diagnosis").to_csv(folder / f"{label}{csv}", index=False)
    first, second = sorted(table["diagnosis"].unique())
    asked = {"of": [first, "SCZ", ""], "file": [f"{first}{csv}", f"{second}{csv}", ""]}
    name, tables = f"{first}={first}{csv},SCZ={second}{csv}", f"{first}={first}{csv} SCZ={second}{csv}"
    assert client.get("/table", params=asked).url.params["table"] == name
    text = checked(client, table=name)
    assert not missing(
        text,
        "This table can be used for training",
        f"rindices check {tables} --covariates age,sex",
    )
    assert "covariates=age" in query_of(text)
    assert not missing(client.get(f"/train?{query_of(text)}").text, f"{first}-SCZ-run", f"rindices fit {tables}")
    refused = (f"A=../secret.csv,B={first}{csv}", "A=/etc/passwd,B=/etc/hosts", f"A={first}{csv},A={second}{csv}")
    assert {client.get("/table/checked", params={"table": name}).status_code for name in refused} == {400}


def test_a_table_of_the_same_people_is_joined_and_its_columns_guessed(client, folder):
    table, who = pd.read_csv(folder / "cohort.csv"), ["participant_id", "diagnosis", "age", "sex"]
    table[who].rename(columns={"participant_id": "subject"}).to_csv(folder / "labels.csv", index=False)
    table.drop(columns=who[1:]).to_csv(folder / "volumes.csv", index=False)
    text = checked(client, table="volumes.csv")
    assert not missing(text, "no column &#39;diagnosis&#39;", "<option>labels.csv</option>")
    joined = client.get(f"/table/checked?{query_of(text)}&also=labels.csv").text
    lines = re.findall("rindices check volumes.csv --covariates age,sex .*--join labels.csv", joined)
    assert (len(lines) > 0, missing(joined, "This table can be used for training", 'id="role-age"')) == (True, [])
    assert "join" not in query_of(client.get(f"/table/checked?{query_of(joined)}&without=join").text)


# A table, what its page says, the choice made there, and what the page then says.
CHOICES = {
    "a total is a region": (
        lambda table: table.assign(V1=table[table.columns[-2:]].sum(axis=1)),
        ["V1 (the sum or mean of "],
        "column=V1&role=region",
        ["they look like totals: V1"],
    ),
    "a score by its name is one": (
        lambda table: table.assign(mmse=table.index % 13, qc_rating=table["age"] % 7),
        [
            "This table can be used for training",
            "Judging by its name, mmse is not a region (score).",
            "Judging by its name, qc_rating is not a region (quality measure).",
            'data-change="clinical=mmse"',
        ],
        "clinical=mmse",
        [" --clinical mmse"],
    ),
    "a score by its name is a region": (
        lambda table: table.assign(mmse=table.index % 13),
        ["mmse is not a region (score)"],
        "column=mmse&role=region",
        ["they look like scores: mmse"],
    ),
    "people with impossible values are left out": (
        lambda table: table.assign(age=table["age"].mask(table.index == 3, -5)),
        [
            '<tr class="wrong"> <th scope="row">age<',
            "cannot be used for training yet",
            "row 5",
            'data-change="drop_missing=yes"',
        ],
        "drop_missing=yes",
        ["This table can be used for training", 'data-change="without=drop_missing"'],
    ),
    "a stranger is excluded": (
        lambda table: table.assign(UID=range(7000, 7000 + len(table))),
        ["Neither the name nor the values of UID show that it is a region", "exclude=UID"],
        "exclude=UID",
        ["This table can be used for training"],
    ),
    "a label is that of the controls": (
        lambda table: table.replace({"diagnosis": {"CN": "one"}}),
        ["Specify the control label with “controls”"],  # not an option of the command line
        "label=one&group=controls",
        ["controls (one)"],
    ),
    "ids are repeated": (
        lambda table: table.replace({"participant_id": {"sub-0002": "sub-0001"}}),
        ["&#39;sub-0001&#39; occurs in rows 2 and 3."],
        "",
        ["cannot be used for training"],
    ),
    "a table of something else": (
        lambda table: pd.DataFrame({"who": [1], "b": [2]}),
        ["cannot be used for training", "no column &#39;diagnosis&#39;", "Role of who"],
        "",
        ["cannot be used for training"],
    ),
}


@pytest.mark.parametrize("case", CHOICES)
def test_what_is_wrong_with_a_table_is_said_with_what_helps(client, folder, case):
    change, told, chosen, then = CHOICES[case]
    change(pd.read_csv(folder / "cohort.csv")).to_csv(folder / "more.csv", index=False)
    text = client.get("/table/checked?table=more.csv").text
    assert missing(" ".join(text.split()), *told, "[id]") == ["[id]"]  # ids are shown to those who have the table
    assert not missing(client.get(f"/table/checked?{query_of(text)}&{chosen}").text, *then)


def test_a_folder_is_gathered_and_refusals_stand_above_the_form(client, folder):
    subjects_dir(folder / "subjects", 3)
    assert "<option>subjects</option>" in client.get("/gather").text
    asked = {"folder": "subjects", "out": "gathered.csv", "measures": "volume,thickness", "atlas": ""}
    done = client.post("/gather", data=asked).raise_for_status().text
    line = "rindices gather subjects --measures volume,thickness --out gathered.csv"
    assert not missing(done, "has 3 rows and", line)
    assert len(pd.read_csv(folder / "gathered.csv")) == 3
    assert "no column &#39;diagnosis&#39;" in checked(client, table="gathered.csv", dictionary="gathered.json")
    for change, said in (
        ({}, "new file whose name ends in .csv"),
        ({"out": "more.csv", "measures": "weight"}, "should be one or more of volume, thickness, area"),
        ({"out": "more.csv", "folder": ".."}, "is not in the folder"),
        ({"out": "more.csv", "folder": "finished"}, "contains no recognised files"),
    ):
        refused = client.post("/gather", data=asked | change)
        assert (refused.status_code, missing(refused.text, said, 'name="folder"')) == (400, [])


def test_a_sheet_of_a_workbook_is_chosen_with_a_button(client, folder):
    with pd.ExcelWriter(folder / "book.xlsx") as book:
        pd.DataFrame({"note": ["of 2024"]}).to_excel(book, sheet_name="Readme", index=False)
        pd.read_csv(folder / "cohort.csv").to_excel(book, sheet_name="The data", index=False)
    for path, fits in (
        ("/table/checked?", "can be used for training"),
        ("/train?", "Training takes about"),
        ("/apply?model=three.safetensors&", "matches the model"),
    ):
        text = client.get(f"{path}table=book.xlsx").text
        assert re.findall(r'data-change="(.*?)">(Sheet: .*?)</button>', text) == [
            ("table=book.xlsx%23Readme", "Sheet: Readme"),
            ("table=book.xlsx%23The+data", "Sheet: The data"),
        ]
        assert not re.search("This is not possible|to the file name", text)  # the latter belongs to the command line
        assert fits in client.get(f"{path}table=book.xlsx&table=book.xlsx%23The+data").text


COMMAND = "rindices fit cohort.csv --covariates age --patterns 2-4 --repetitions 5 --out next"
HOSTILE = '"><img src=x onerror=alert(2)>.csv'  # the name of a table
HARM = ["<script>alert", "<img src"]
NOT_FINISHED = ["This run is not finished", "/continue?run=interrupted", "Models already trained are kept"]

# An address, the status of the response, what the page says, and what it does not say.
SAID = [
    ("/", 200, ["ot a diagnosis"], []),
    ("/nowhere", 404, [], []),
    # People are without ids unless these are asked for.
    ("/people?run=finished", 200, ['id="linked"', '"name":"age"', '"name":"sex"'], ["sub-0001"]),
    ("/people?run=finished&ids=yes", 200, ['id="linked"', "sub-0001"], []),
    ("/run?run=finished", 200, [], []),
    (f"/table/checked?table={quote(HOSTILE)}", 200, ["&lt;script&gt;alert(1)"], []),
    (f"/train?table={quote(HOSTILE)}", 200, [], []),
    (f"/apply?model=three.safetensors&table={quote(HOSTILE)}", 200, [], []),
    # A file is not taken for an option.
    ("/train?table=--overwrite+--out%3Dcohort.csv&out=next", 200, ["fit &#39;./--overwrite --out=cohort.csv&#39;"], []),
    ("/table/look?table=odd.csv", 200, ["This table cannot be used for training"], []),
    ("/apply", 200, ["finished/model.safetensors</option>"], ["interrupted/model"]),
    (
        "/apply?model=three.safetensors&table=more.csv",
        200,
        ["matches the model", "--out more_scores-2.csv --report more_scores-2.html"],  # no file is replaced
        [],
    ),
    ("/apply?model=three.safetensors&table=less.csv", 200, ["does not match the model"], []),
    ("/apply?model=three.safetensors&table=cohort.csv&id=nobody", 200, ["does not match"], []),
    ("/run?run=interrupted", 200, NOT_FINISHED, []),
    ("/people?run=interrupted", 400, ["There is no finished run"], ['id="linked"']),  # nobody has been scored yet
    ("/run?run=damaged", 200, ["This run is damaged", "summary.json cannot be used"], ["It was stopped"]),
    ("/run?run=gone", 400, ["There is no run", "gone"], []),
    (f"/run?run={300 * 'x'}", 400, [], []),
    (
        "/train?table=cohort.csv&covariates=age&patterns=2-4&repetitions=5&out=next",
        200,
        [COMMAND, "Training takes about"],
        ["log-json"],
    ),
    ("/train?table=cohort.csv&covariates=a,b", 200, ["contains a comma"], []),
    ("/table/checked?table=cohort.csv&exclude=@/etc/hostname", 400, ["denotes a file"], []),
    ("/table/checked?table=cohort.csv&column=age&role=king", 400, ["not a column role"], []),
    ("/table/checked?table=A=none.csv,B=cohort.csv", 400, ["There is no table &#39;none.csv&#39;"], []),
    ("/methods?run=finished", 200, ["Surreal"], ["@inproceedings"]),
    ("/methods?run=finished&as=bibtex", 200, ["@inproceedings{yang2022,"], []),
    ("/compare?first=finished&second=finished", 200, ["are the same run"], []),
    ("/table", 200, ["<option>cohort.csv</option>"], []),
    # Odd addresses cause no internal error.
    ("/table/checked?table=cohort.csv&without=__class__", 200, [], []),
    ("/table/checked?table=cohort.csv&small_sites=what", 200, [], []),
    ("/scored?model=three.safetensors&scores=new.csv&first=-1", 400, [], []),
    ("/run?run=cohort.csv", 200, [], []),
    ("/apply?model=new.csv", 400, [], []),
]


def test_what_pages_say_of_their_address(client, folder):
    shutil.copy(folder / "three.safetensors", folder / "interrupted" / "model.safetensors")  # not finished
    shutil.copytree(folder / "finished", folder / "damaged")
    shutil.copy(folder / "cohort.csv", folder / "--overwrite --out=cohort.csv")
    cohort, table = pd.read_csv(folder / "cohort.csv"), pd.read_csv(folder / "new.csv").assign(weight=70.0)
    for name, content in (
        (HOSTILE, cohort.rename(columns={cohort.columns[-1]: "<script>alert(1)</script>"}).to_csv(index=False)),
        ("odd.csv", "who;b\n1;2\n"),
        ("more.csv", table.to_csv(index=False)),
        ("less.csv", table.rename(columns={"age": "years"}).to_csv(index=False)),
        ("damaged/summary.json", '{"status": "do'),
        ("gone.training.log", "A warning.\n"),  # all that is left of that run
        ("more_scores.html", ""),
    ):
        (folder / name).write_text(content)
    for path, status, said, unsaid in SAID:
        answer = client.get(path)
        assert (answer.status_code, missing(answer.text, *said, *unsaid, *HARM)) == (status, unsaid + HARM), path
        assert not missing(answer.headers["content-security-policy"], "default-src 'none'", "script-src 'self';"), path


NAMES = {
    "cohort.csv": "is a file",
    "a (b)": "The name of a run",
    "a/b/c": "The name of a run",
    "NUL": "names that Windows reserves",
    "nowhere/com1.old": "names that Windows reserves",
    "nowhere/a": "There is no folder &#39;nowhere&#39;",
    "x" * 243: "is too long",  # with the suffix of its log
    "mine": "already contains other files",
    "../out": "The name of a run",
    "a\nb": "The name of a run",
    "finished/journal/x/y": "The name of a run",
}


def test_the_name_of_a_run_is_refused_before_training_and_the_proposed_one_is_not(client, folder):
    shutil.copy(folder / "cohort.csv", folder / "study (1).csv")
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").touch()
    plan = {"table": "study (1).csv", "chosen": "yes"}
    text = client.get("/train", params=plan).text
    assert missing(text, 'value="study-1-run"', 'class="banner"') == ['class="banner"']
    for name, why in NAMES.items():
        refused = client.post("/train", params=plan | {"out": name})
        assert (refused.status_code, missing(refused.text, why, 'name="out"')) == (400, []), name  # above the form
        assert why in client.get("/train", params=plan | {"out": name}).text, name


# The first fifth of a training, which took 20 seconds.
TRAINED = [
    f'{{"event": "progress", "stage": "Training", "done": {n}, "total": 100, "time": "2026-01-01T00:00:{n:02}+0000"}}'
    for n in (0, 10, 20)  # speed is measured from the second on, after compilation
]


def watched(client, run):
    """Return the page of a run as it was from time to time, the last one after training ended."""
    texts = [client.get(f"/run?run={run}").text]
    while 'id="training"' in texts[-1]:
        time.sleep(0.2)
        texts.append(client.get(f"/run?run={run}").text)
    return texts


def test_one_training_a_folder_is_watched_and_stopped(client_of, folder):
    script = f"import time\nfor line in {TRAINED!r}: print(line, flush=True)\ntime.sleep(60)"
    client = client_of(folder, (sys.executable, "-c", script))
    begun = client.post("/train?table=cohort.csv&out=next", follow_redirects=False)
    assert (begun.status_code, begun.headers["location"]) == (303, "/run?run=next")
    again = client.post("/train?table=cohort.csv&out=next")
    assert (again.status_code, missing(again.text, "already in progress", 'href="/run?run=next"')) == (400, [])
    deadline, progress = time.monotonic() + 60, "20 % · 1 steps per second · about 1 min 20 s left"
    while progress not in client.get("/run?run=next").text:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    client.post("/stop?run=next", follow_redirects=False)
    said = "This run is not finished", "/continue?run=next", "Models already trained"
    assert missing(client.get("/run?run=next").text, *said) == [said[-1]]  # the run has no folder
    assert 'id="training"' in client.post("/continue?run=next").text
    client.post("/stop?run=next")


def test_a_training_on_windows_has_no_window_that_could_end_it_and_may_be_gone(client, monkeypatch):
    begun = Mock(**{"return_value.poll.return_value": None})
    odd = Mock(side_effect=OSError(22, "the parameter is wrong"))
    for name, value in (("subprocess.Popen", begun), ("subprocess.CREATE_NO_WINDOW", 8), ("os.kill", odd)):
        monkeypatch.setattr(name, value, raising=False)
    monkeypatch.setattr("rindices.pages.server.run_pages._TIME_TO_STOP", 0)
    asked = "/train?table=cohort.csv&out=next", "/stop?run=next"
    assert [client.post(path, follow_redirects=False).status_code for path in asked] == [303, 303]
    assert (begun.call_args.kwargs["creationflags"], odd.called) == (8, True)


def test_refusals_of_the_command_line_are_shown_and_not_taken_for_the_run_of_that_name(client, folder, monkeypatch):
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("LC_ALL", "C")  # an encoding that lacks most characters
    (folder / "statistics.py").write_text("raise SystemExit('A script of the user.')")
    (folder / "odd.csv").write_text("participant_id,±lHip\n1,2\n", "utf-8")
    (folder / "finished.training.log").write_text("A warning.\n")
    assert "was rejected" not in client.get("/run?run=finished").text
    client.post("/train?table=odd.csv&out=next", follow_redirects=False)
    told = "The input of this run was rejected", "no column &#39;diagnosis&#39;", "±lHip", "/continue"
    assert missing(watched(client, "next")[-1], *told) == ["/continue"]
    assert not (folder / "next").exists()
    client.post("/train?table=odd.csv&chosen=yes&out=finished", follow_redirects=False)
    order = ["was rejected", "no column &#39;diagnosis&#39;", "those of the earlier run", "Downloads"]
    assert sorted(order, key=watched(client, "finished")[-1].index) == order
    later = (folder / "finished.training.log").stat().st_mtime + 1
    os.utime(folder / "finished" / "summary.json", (later, later))  # written by a run that was not refused
    assert "was rejected" not in client.get("/run?run=finished").text


def test_a_form_refuses_what_the_training_would(client):
    same = "table=cohort.csv&chosen=yes&control=CN&patients=PT&covariates=age&covariates=sex&covariates=site&smooth=age"
    same += "&site=site&exclude=icv&unit=mL&steps=300&out=finished&patterns=2-3&repetitions="
    assert 'class="banner"' not in client.get(f"/train?{same}3").text
    for asked, why in (  # in the words of the training
        (f"{same}2", "n_repetitions: 3 before, 2 now\nChoose another name for the run."),
        (f"{same}3&exclude=lHip", "contains a different run"),
        ("table=cohort.csv&patterns=0", "“Patterns” should be between 1 and 20"),
        ("table=cohort.csv&repetitions=0", "“Repetitions” should be at least 1, but got 0."),
        ("table=cohort.csv&steps=-1", "“Steps” should be at least 1, but got -1."),
        (f"{same}3&patterns=20&features=l[A-C]*&out=other", "cannot be distinguished in "),
    ):
        assert why in client.post(f"/train?{asked}").text


def test_a_run_has_its_verdict_or_how_far_it_got_a_slider_and_downloads(client, folder):
    listed, text = client.get("/").text, client.get("/run?run=finished").text
    assert re.search(r"run=finished.*?class=\"tag", listed, re.DOTALL)
    assert re.search(r"interrupted.*?unfinished.*?/continue\?run=interrupted", listed, re.DOTALL)
    assert text.index('class="verdict') < text.index('id="slider"')
    assert not set(re.findall(r'href="#([^"]+)', text)) - set(re.findall(r'id="([^"]+)', text))  # links have targets
    assert json.loads(re.search(r'id="doses">(.*?)</script>', text, re.DOTALL)[1])["patterns"]
    got = client.get("/files/finished/patterns.csv")
    assert got.content == (folder / "finished" / "patterns.csv").read_bytes()
    assert got.headers["content-disposition"].startswith("attachment")


def test_nobody_interprets_what_is_not_found_again(client, folder):
    change_summary(folder / "finished", verdict="not reproducible", reliable=False)
    for page, result in (("/run?run=finished", 'id="slider"'), ("/people?run=finished", 'id="linked"')):
        before, gate, after = client.get(page).text.partition('class="gate"')
        assert "The groups differ, but the patterns are not reproducible." in before + gate + after
        assert result not in before
        assert result in after


def test_new_people_are_checked_and_scored_under_the_verdict(client, folder):
    path = "/apply?model=three.safetensors&table=new.csv"
    assert not missing(
        client.get(path).text,
        "This table matches the model",
        "rindices apply three.safetensors new.csv --out new_scores.csv --report new_scores.html",
    )
    before, _, after = client.post(path).raise_for_status().text.partition("Severities with their intervals")
    assert 'class="verdict' in before
    assert after
    assert pd.read_csv(folder / "new_scores.csv", dtype=str)["participant_id"][0] in before + after
    report = client.get("/report/new_scores.html")
    assert report.headers["content-security-policy"].startswith("sandbox allow-scripts")
    assert "Verdict of the training run: " in report.text
    header, *rest = read_model(folder / "three.safetensors")
    write_model(folder / "three.safetensors", replace(header, verdict=("not reproducible", "Chance is 50.")), *rest)
    order = [SENTENCES["not reproducible"][0], 'class="strip"', "<caption>Severities"]
    assert sorted(order, key=client.post(path).text.index) == order


def test_work_that_failed_is_tried_again():
    work = Mock(side_effect=[OSError("The disk is full."), TimeoutError("The network drive is gone."), 7])
    for error in (OSError, TimeoutError):  # a TimeoutError of the work itself is not "One moment"
        with pytest.raises(error):
            background_result("a picture", work)
    assert [background_result("a picture", work) for _ in range(2)] == [7, 7]
    assert work.call_count == 3


def test_messages_name_buttons_and_fields_as_the_pages_do():
    templates = Path(layout.__file__).parent / "templates"
    words = "".join(path.read_text(encoding="utf-8") for path in templates.rglob("*.html.j2"))
    buttons = "drop_missing", "drop_outliers", "small_sites", "complete_only", "missing", "new_sites"
    assert [name for name in (*buttons, "join", "out") if on_page(Remedy(name)).strip("“”") not in words] == []


def test_one_person_becomes_a_table(client, folder):
    form = client.get("/person?model=three.safetensors").text
    person = pd.read_csv(folder / "new.csv").iloc[1]
    names = re.findall(r'name="((?:region|covariate) [^"]+)"', form)
    said = {name: str(person[name.partition(" ")[2]]) for name in names} | {"id": "=1+1"}
    assert "1 row scored" in client.post("/person?model=three.safetensors", data=said).text
    written = {path.name: path.read_text() for path in folder.glob("*.csv")}
    [name] = [name for name, text in written.items() if "'=1+1" in text and "severity1" not in text]
    assert name.startswith("1-1")
    odd = client.post("/person?model=three.safetensors", data=said | {names[-1]: "1e6"}).text
    # The person is flagged; sites are not mentioned, as the model has none.
    assert not missing(odd, "matches the model", "lies outside the training range; each is flagged")


def test_two_runs_are_compared(client, folder):
    shutil.copytree(folder / "finished", folder / "again")
    rewrite(folder / "again" / "r_indices.csv", severity1=lambda of: of["severity1"] + 0.4 * (of.index == 3))
    text = client.get("/compare?first=finished&second=again").text
    assert missing(text, "Matched patterns", "reproducible", "people.csv") == ["people.csv"]  # only of the command
    assert text.index("of pairs of shared patients in the same order") < text.index("<h2>")  # the answer first
    moved = pd.DataFrame([row[3:] for row in rows_of(text, "Largest differences")]).replace("−", "-", regex=True)
    first, second, change = moved.astype(float).to_numpy().T
    assert change[0] == 0.4
    assert second - first == pytest.approx(change, abs=0.011)


def test_what_is_missing_or_taken_is_said(folder, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = run("open", folder, "--port", taken.getsockname()[1])
    assert (told.exit_code, "cannot be used" in told.output) == (2, True)
    monkeypatch.setattr(open_command, "find_spec", lambda name: None)
    told = run("open", folder)
    assert (told.exit_code, 'pip install "rindices[app]"' in told.output) == (2, True)
