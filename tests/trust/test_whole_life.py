"""A study from its table to its last report: no network access, no code run from files, nobody identified in records.

Training uses threads here. By design, Joblib's processes and Dask's workers exchange pickles with the process that
started them (Dask's through local sockets), but only between processes of one run. Files are never pickles.
"""

import csv
import json
import logging
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from rindices.files import plain
from tests.imaging.made_up import write_image
from tests.interop.archives import checkpoint, save
from tests.test_cli import TINY, run, small_table
from tests.trust.watch import watching

FORMULAS = ("=cmd|' /C calc'!A0", "-1", "+49 123", "@x", "'=already", "＝x", '"=quoted', "a;=b")
REGION, SCORE = "@lAccumbens", "=recallPoints"  # column names that a spreadsheet would run
PLANTED = ("SECRET-", "/C calc'", REGION[1:], SCORE[1:])  # absent from library code, which may be compiled on import
AGE, VOLUME, OUTLIER, POINTS = 77.7717, 0.31415926, 5.151515, 13.1313
SECRETS = ("SECRET", "77.77", "0.3141", "5.1515", "13.13", "calc", "49 123", "=already", "=quoted")
RECORDS = ("run.toml", "summary.json", "plan.json", "holder.txt")
HEARD = "one line for certain: what is compiled already is not told again"


class Life:
    """A study's folder, the events watched, the output of commands and loggers, and the files of the failed run."""

    def __init__(self, folder, watch):
        self.folder, self.watch = folder, watch
        self.said, self.logged, self.failed = {}, [], {}

    def __call__(self, name, *arguments, code=0):
        self.said[name] = run(*arguments)
        assert self.said[name].exit_code == code, f"{name}: {self.said[name].output}"


def secret_table():
    """Return 80 people with ids and a few values that occur nowhere else."""
    table, rng = small_table(), np.random.default_rng(0)
    table["participant_id"] = [*FORMULAS, *(f"SECRET-{i}" for i in range(len(FORMULAS), len(table)))]
    table[SCORE] = rng.normal(20, 3, len(table)).round(2)
    table["amyloid"] = np.where(rng.uniform(size=len(table)) < 0.5, "+ve", "-ve")
    first, second, third = table.index[table["diagnosis"] == "PT"][:3]
    table.loc[first, ["age", "lAcc"]] = AGE, VOLUME
    table.loc[second, "rAcc"], table.loc[third, SCORE] = OUTLIER, POINTS
    return table.rename(columns={"lAcc": REGION})


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    """Simulate, fit (failing once, then resuming), apply, report, describe, import and compare images."""
    import_module("matplotlib.font_manager")  # on a new machine it runs system programs to find fonts
    root, listener, level = logging.getLogger(), logging.Handler(logging.DEBUG), logging.getLogger().level
    root.addHandler(listener)
    try:
        with pytest.MonkeyPatch.context() as patch, watching(patch) as watch:
            found = Life(tmp_path_factory.mktemp("life"), watch)
            listener.emit = lambda record: found.logged.append(record.getMessage())
            root.setLevel(logging.INFO)
            logging.getLogger("jax").info(HEARD)
            _live(found)
    finally:
        root.removeHandler(listener)
        root.setLevel(level)
    return found


def _live(life):
    folder, out, table = life.folder, life.folder / "run", secret_table()
    table.to_csv(folder / "cohort.csv", index=False)
    table[["participant_id"]].assign(later=np.arange(len(table)) % 7 + 0.5).to_csv(folder / "later.csv", index=False)
    life("simulate", "simulate", "basic", "--out", folder / "simulated.csv", "--controls", 30, "--patients", 30)
    fit = (
        *("fit", folder / "cohort.csv", "--out", out, "--patients", "PT", "--covariates", "age,sex"),
        *("--clinical", f"{SCORE},amyloid", "--bids", *TINY),
    )
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(Path, "replace", _failing(Path.replace))
        life("failed", *fit, "--log-json", code=3)
    life.failed = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    life("fit", *fit, "--log-json", "--no-report")  # the report is written below, with later scores
    life("again", *fit, "--no-report")
    model = out / "model.safetensors"
    life("apply", "apply", model, folder / "cohort.csv", "--out", folder / "new.csv", "--report", folder / "new.html")
    life("report", "report", out, "--clinical", folder / "later.csv")
    life("describe", "describe", model)
    theirs = save(folder / "theirs.pt", checkpoint(n_regions=8)[0])
    names = ",".join(f"region{i}" for i in range(8))
    life(
        *("import", "import-official", theirs, "--out", folder / "theirs.safetensors", "--features", names),
        "--covariates",
        "sex,age",
    )
    _compare_images(life, table)


def _failing(replace):
    """Return a `Path.replace` that fails on writing R-indices, with a message that identifies people."""

    def fail(path, target):
        if Path(target).name == "r_indices.csv":
            raise ValueError(f"could not convert {FORMULAS[0]} = {OUTLIER} of SECRET-17")
        return replace(path, target)

    return fail


def _compare_images(life, table):
    rng, paths = np.random.default_rng(0), [f"{number}.nii" for number in range(len(table))]
    for path in paths:
        write_image(life.folder / path, rng.standard_normal((6, 6, 6)))
    write_image(life.folder / "mask.nii", np.pad(np.ones((4, 4, 4)), 1), dtype=np.uint8)
    table[["participant_id"]].assign(path=paths).to_csv(life.folder / "maps.csv", index=False)
    life(
        *("voxelwise", "voxelwise", life.folder / "run", "--maps", life.folder / "maps.csv"),
        *("--mask", life.folder / "mask.nii", "--regressions"),
    )


def test_nothing_connects_nothing_is_unpickled_or_compiled_and_no_program_is_started(life):
    assert {"fit", "apply", "report", "describe", "simulate", "import"} <= life.said.keys()
    assert (life.watch.connections, life.watch.unpickled) == ([], [])
    # Python runs uname to identify the processor.
    assert {Path(str(args[0])).name for _, args, _ in life.watch.programs} <= {"uname"}
    texts = [one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in life.watch.compiled]
    texts = [text for text in texts if isinstance(text, str)]
    assert texts, "templates are compiled at least"
    assert not [text for text in texts if any(word in text for word in PLANTED)]


def told(text):
    """Return the secrets that a text reveals."""
    return [secret for secret in SECRETS if secret in text]


def test_the_secrets_are_where_they_belong(life):
    """Confirm that the secrets are in the tables of people, so that the other tests can fail."""
    assert told((life.folder / "cohort.csv").read_text()) == list(SECRETS)
    assert {"SECRET", "calc"} <= set(told((life.folder / "run" / "people.csv").read_text()))
    assert any("outlier" in line for line in life.said["again"].output.splitlines())


@pytest.mark.parametrize("command", ["failed", "fit", "again", "apply", "report", "describe", "voxelwise"])
def test_what_is_said_names_nobody(life, command):
    result = life.said[command]
    channel = result.stdout if command == "failed" else result.output  # the reason goes to standard error
    # A model stores the range of ages (see the guide).
    assert {*told(channel)} <= ({"77.77"} if command == "describe" else set())


def test_lines_of_json_tell_how_it_ended_and_where_it_failed(life):
    lines = [json.loads(line) for line in life.said["failed"].stdout.splitlines()]
    assert (lines[-1]["status"], lines[-1]["exit_code"]) == ("failed", 3)
    assert re.match(r"ValueError in \w+\.py, line \d", lines[-1]["message"])
    assert str(OUTLIER) in life.said["failed"].stderr, "the user is told"
    lines = [json.loads(line) for line in life.said["fit"].stdout.splitlines()]
    assert (lines[-1]["status"], lines[-1]["exit_code"]) == ("done", 0)
    assert {"table", "progress", "done"} <= {line["event"] for line in lines}


def test_records_and_reports_of_a_run_and_loggers_of_libraries_name_nobody(life):
    failed = {path: text for path, text in life.failed.items() if path.name in RECORDS}
    assert {path.name for path in failed} == set(RECORDS)
    assert json.loads(failed[Path("summary.json")])["status"] == "failed"
    finished = {path: path.read_bytes() for path in (life.folder / "run").glob("*.*") if path.name in RECORDS}
    assert {str(path): secrets for path, text in (failed | finished).items() if (secrets := told(text.decode()))} == {}
    pages = [(life.folder / name).read_text() for name in ("run/report.html", "new.html")]
    assert not [word for page in pages for word in ("SECRET", FORMULAS[0]) if word in page]
    assert HEARD in life.logged
    lines = [
        re.sub(r"\d+\.\d+ ?s(ec|econds)?\b", "some time", line) for line in life.logged
    ]  # durations can contain any number
    assert [line for line in lines if told(line)] == []


def test_files_of_numbers_hold_no_ids(life):
    """Models store extremes of regions and covariates, and chunks store R-indices, but neither stores ids."""
    model = life.folder / "run" / "model.safetensors"
    chunks = [data for path, data in life.failed.items() if path.suffix == ".safetensors"]
    assert chunks
    assert not [word for data in (*chunks, model.read_bytes()) for word in (b"SECRET", b"calc") if word in data]
    assert 80 not in {size for array in load_file(model).values() for size in array.shape}, (
        "nothing in a model has a row a person"
    )


def test_a_refused_table_is_told_to_the_user_only(tmp_path):
    table = secret_table()
    table.assign(**{REGION: ["SECRET-CELL", *table[REGION][1:]]}).to_csv(tmp_path / "bad.csv", index=False)
    result = run("fit", tmp_path / "bad.csv", "--out", tmp_path / "run", "--log-json", *TINY)
    last = json.loads(result.stdout.splitlines()[-1])
    assert (result.exit_code, last["status"], last["exit_code"]) == (2, "failed", 2)
    reason = "see standard error for the reason" in last["message"]
    assert ("SECRET-CELL" in result.stderr, told(result.stdout), reason) == (True, [], True)


def running(path, delimiter):
    """Return the cells of a file that a spreadsheet would run, found independently of our own rule."""
    rows = csv.reader(path.read_text(encoding="utf-8-sig").splitlines(), delimiter=delimiter)
    # When commas do not separate cells, the first cell of each row is already checked with commas.
    cells = {cell: cell if cell[:1] == "'" else cell.lstrip(" \"'") for row in rows for cell in row[delimiter == ";" :]}
    number = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
    return [
        cell
        for cell, text in cells.items()
        if text[:1] in "=+-@＝＋－＠" and len(text) > 1 and not number.fullmatch(cell)
    ]


def test_no_table_holds_a_cell_that_would_run(life):
    paths = sorted([*(life.folder / "run").rglob("*.[ct]sv"), life.folder / "new.csv"])
    assert {"r_indices.csv", "r_indices.tsv", "z_scores.csv", "associations.csv"} <= {path.name for path in paths}
    for path in paths:
        for delimiter in "\t" if path.suffix == ".tsv" else ",;":
            assert running(path, delimiter) == [], path
    assert running(life.folder / "cohort.csv", ","), "the table itself would"


def ours(path, **options):
    """Read a table that rindices wrote, undoing the protection against running cells."""
    return plain(pd.read_csv(path, dtype=str, keep_default_na=False, **options))


def test_ids_survive_and_scores_that_came_later_find_their_people(life):
    # A table may already protect its own cells.
    ids = secret_table()["participant_id"].replace("'=already", "=already").tolist()
    tables = {
        name: ours(life.folder / name)
        for name in ("new.csv", *(f"run/{one}.csv" for one in ("r_indices", "people", "z_scores", "variables")))
    }
    for name, table in tables.items():
        assert table["participant_id"].tolist() == ids, name
        assert "\n'=already," in (life.folder / name).read_text()
    assert REGION in tables["run/z_scores.csv"]
    variables = tables["run/variables.csv"]
    np.testing.assert_array_equal(variables["later"].astype(float), np.arange(80) % 7 + 0.5)
    assert (set(variables["amyloid"]), "" in {*variables[SCORE]}) == ({"+ve", "-ve"}, False)
    phenotype = life.folder / "run" / "bids" / "phenotype"
    table, entries = ours(phenotype / "r_indices.tsv", sep="\t"), json.loads((phenotype / "r_indices.json").read_text())
    assert (table["participant_id"].tolist(), set(table["diagnosis"])) == (ids, entries["diagnosis"]["Levels"].keys())
