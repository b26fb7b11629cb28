"""Invalid options, and folders that cannot be written to."""

import errno
import os

from tests.bad_input.harness import FOLDER, Case, cases, fit, refuse_opening


def option(options, found, remedy, name="", **rest):
    """Return a case of `rindices fit` with these options."""
    return fit(name or options, None, found, remedy, options, **rest)


GIVE = "Provide the run.toml from a run folder"
RUN_TOML = (
    '[table]\npath = "{table}"\nid = "participant_id"\ndiagnosis = "diagnosis"\nfeatures = []\n\n[training]\n{more}'
)
TRAINING = 'n_patterns = [3]\nn_repetitions = 2\nexhaustive = false\npreset = "fast"\nrandom_state = 0\n'


def config(name, text, found, remedy, options="--config run.toml", **rest):
    """Return a case of `rindices fit --config`."""
    return Case(name, f"fit --out run {options}", found, remedy, {"run.toml": text}, **rest)


def unwritable(monkeypatch):
    """Make every folder unwritable."""
    usual = os.access
    monkeypatch.setattr("os.access", lambda path, mode, **rest: mode != os.W_OK and usual(path, mode, **rest))


SCORE = "apply model.safetensors people.csv --out"


SAME = "fit people.csv --out done --patterns 3 --repetitions 2 --covariates age,sex --site site --unit mm3"


def full(name, line, file, **rest):
    """Return a case of a full disk."""
    spoil = refuse_opening(errno.ENOSPC, ".partial", "wax")
    told = ("Error: No space left on device", file, "Free up space on the disk that holds")
    return Case(name, line, told, "run the same command again", spoil=spoil, **rest)


def no_memory(monkeypatch):
    """Make the simulation run out of memory."""

    def ask(*_, **__):
        raise MemoryError

    monkeypatch.setattr("rindices.simulate.simulate_cohort", ask)


@cases(
    # Options
    option("--patterns 0", "but got 0", "between 1 and 20"),
    option("--patterns 5-2", "'5-2'", "2-5"),
    option("--patterns 2-99", "but got 21, 22", "between 1 and 20"),
    option("--patterns many", "'many'", "auto, a number such as 3, a list such as 2,3 or a range such as 2-5"),
    option("--patterns 2.5", "'2.5'", "2-5"),
    option("--exclude a --exclude b", "--exclude was given more than once", "separated by commas"),
    option("--patterns 13", "13 patterns cannot be distinguished in 12 regions", "--patterns"),
    option("--orthogonality -1", "-1", "non-negative number"),
    option("--orthogonality high", "'high'", "0.8"),
    option("--repetitions 0", "Invalid value for", "--repetitions"),
    option("--repetitions ten", "valid int", "--repetitions"),
    option("--seed -1", "Invalid value for", "--seed"),
    option("--seed 99999999999999999999", "Invalid value for", "--seed"),
    option("--preset quick", "'quick'", "'fast', 'linear', 'blind', 'paper' or 'official'"),
    option("--latent some", ("--latent", "'some'"), "'independent' or 'correlated'"),
    option("--method quick", "'quick'", "'fast', 'linear', 'blind', 'paper' or 'official'"),
    option("--null 19", "--null", "-h"),
    option("--method linear --steps 10", ("--steps", "does not apply to linear models"), "omit it"),
    option("--method linear --orthogonality 0.3", ("--orthogonality", "does not apply to linear models"), "omit it"),
    option("--method linear --orthogonality 0.1,0.3", ("--orthogonality", "does not apply to linear"), "omit it"),
    option("--steps 0", "Invalid value for", "--steps"),
    option("--workers 0", "Invalid value for", "--workers"),
    option("--models-per-chunk 0", "Invalid value for", "--models-per-chunk"),
    option("--subgroup-limits 0.9,0.1", "'0.9,0.1'", "such as 0.4,0.7"),
    option("--level 95", "got 95", "The default is 0.95"),
    option("--level much", "Invalid value", "--level"),
    option("--subgroup-limits 0.4", "'0.4'", "such as 0.4,0.7"),
    option("--scan-noise 0.04", ("--scan-noise", "there are none"), "--visit"),
    option("--visit site --scan-noise -0.1", "but got -0.1", "a finite positive number such as 0.04"),
    option("--visit site --scan-noise little", "'little'", "such as 0.04"),
    option("--visit site --patterns 3 --scan-noise 0.1,0.2", "each of 3 patterns, but got 2", "one number"),
    option("--visit site --scan-noise 0.1,0.2", "is estimated before training, but got 2", "one number"),
    option("--covariate age", "--covariate", "--covariates"),
    option("--drop-gaps", "--drop-gaps", "-h"),
    option("more.csv", ("needs a label", "CN=people.csv"), "--join FILE"),
    option("--features ''", "value after --features is empty", "omit the option"),
    option("--features=", "value after --features is empty", "omit the option"),
    option("--features ,", "should name regions, but got ','", "omit --features"),
    option("--covariates ' '", "value after --covariates is empty", "omit the option"),
    Case("empty table", "fit '' --out run", ("value after fit is empty",), "shell variable"),
    Case("empty place", "demo --out ''", ("value after --out is empty",), "shell variable"),
    Case("no folder for results", "fit people.csv", ("folder",), "--out"),
    Case("no table", "fit --out run", ("A table is required",), "rindices fit TABLE"),
    Case("unknown command", "train people.csv", ("'train'",), "-h"),
    Case("few controls to plan", "power --controls 5", ("you asked for 5 controls",), "--like"),
    Case("many patients to plan", "power --patients 50000", ("you asked for 50,000 patients",), "--like"),
    Case("one region to plan", "power --regions 1", ("--regions should be at least 2",), "but got 1"),
    Case("figure of one's own people", "power --like people.csv --figure p.png", ("figure can show only",), "Omit"),
    Case(
        "patients to plan on",
        "power --like people.csv",
        ("in --like, but column 'diagnosis' has 2 labels",),
        "Keep only the controls",
    ),
    Case("covariate as a score", "report done --remove-scores age", ("'age'",), "--remove-scores"),
    Case(
        "folder that is to be gathered",
        "check subjects",
        ("subjects",),
        "convert that output to a table with rindices gather",
        {"subjects/sub-0001/stats/aseg.stats": "# Title Segmentation Statistics"},
    ),
    Case("nothing to gather", "gather . --out t.csv", (". contains no recognised files",), "Expected FreeSurfer"),
    Case("gathered into a folder", "gather . --out .", (". is a folder, not a regular file",), "file name with --out"),
    Case("no folder to gather", "gather no --out t.csv", ("no is not a folder",), "Provide the output folder"),
    Case("gathered tabs", "gather . --out t.tsv", ("but got t.tsv",), "use t.csv"),
    Case("unknown measure", "gather . --out t.csv --measures curvature", ("'curvature'",), "volume, thickness, area"),
    # Runs repeated from a run.toml
    config("no such file", None, ("The file run.toml cannot be read",), GIVE),
    config("not TOML", "table: people.csv", ("run.toml", "line 1"), GIVE),
    config("a table", lambda people: people, ("run.toml", "line 1"), GIVE),
    config("another TOML", '[tool]\nname = "x"\n', ("run.toml", "'table'"), GIVE),
    config("without a path", "[table]\n[training]\n", ("run.toml", "'path'"), GIVE),
    config(
        "half of it",
        RUN_TOML.format(table="people.csv", more="n_patterns = [3]\n"),
        ("run.toml", "n_repetitions and random_state"),
        GIVE,
    ),
    config(
        "of a later version",
        RUN_TOML.format(table="people.csv", more=TRAINING + "dreams = 3\n"),
        ("run.toml", "dreams"),
        "version",
    ),
    config(
        "wrong kind of value",
        RUN_TOML.format(table="people.csv", more=TRAINING.replace("[3]", '"three"')),
        ("run.toml", "n_patterns", "'three'"),
        "correct it",
    ),
    config(
        "table moved",
        RUN_TOML.format(table="data/people.csv", more=TRAINING),
        ("data/people.csv", "run.toml"),
        "rindices fit TABLE --config",
    ),
    config(
        "table changed",
        RUN_TOML.format(table="people.csv", more=TRAINING).replace("features", 'sha256 = "0"\nfeatures'),
        ("people.csv is not the table", "contents differ"),
        "rindices fit TABLE --config",
    ),
    config("and other options", None, ("--config", "--patterns"), "Omit", "--config run.toml --patterns 4"),
    config(
        "of the demonstration",
        '[table]\npath = "people.csv"\n[training]\nn_patterns = [3]\nn_repetitions = 4\nrandom_state = 0\n',
        ("40 controls", "12 regions"),
        "CN versus AD",
        code=0,
    ),
    config("is a folder", FOLDER, ("run.toml", "Is a directory"), GIVE),
    # Places for results
    Case("is a file", "fit people.csv --out notes.txt", ("notes.txt is a file",), "--out", {"notes.txt": "mine"}),
    Case("is the table", "fit people.csv --out people.csv", ("people.csv is a file",), "--out"),
    Case("below a file", "fit people.csv --out people.csv/run", ("people.csv is a file",), "--out"),
    Case("has other files", "fit people.csv --out run", ("notes.txt",), "--out", {"run/notes.txt": "mine"}),
    Case("is here", "fit people.csv --out .", ("people.csv",), "--out"),
    Case(
        "is around the table", "fit run/people.csv --out run", ("people.csv",), "--out", {"run/people.csv": lambda p: p}
    ),
    Case(
        "is a run around the table",
        "fit done/people.csv --out done --overwrite",
        ("done/people.csv is inside the output folder done",),
        "--out",
    ),
    Case(
        "has files named like ours",
        "fit people.csv --out run",
        ("patterns.csv",),
        "--out",
        {"run/patterns.csv": "mine"},
    ),
    Case("cannot be written", "fit people.csv --out run", ("is not writable",), "--out", spoil=unwritable),
    Case(
        "contains another run",
        "fit people.csv --out done --patterns 3",
        (
            "a different run",
            "covariates: age, sex, site before, none now",
            "site: site before, not given now",
            "n_repetitions: 2 before, 10 now",
        ),
        "--overwrite",
    ),
    Case("run without settings", "fit people.csv --out run", ("run.toml",), "--overwrite", {"run/summary.json": "{}"}),
    Case("figures in a file", "fit people.csv --out run --figures people.csv", ("people.csv is a file",), "--figures"),
    Case("figures in the run", "fit people.csv --out run --figures run/f", ("run folder",), "run/figures"),
    Case(
        "scores in a folder",
        "apply model.safetensors people.csv --out run",
        ("run is a folder",),
        "--out",
        {"run": FOLDER},
    ),
    Case("scores over the table", "apply model.safetensors people.csv --out people.csv", ("would overwrite",), "--out"),
    Case(
        "scores over the model",
        "apply model.safetensors people.csv --out model.safetensors",
        ("would overwrite",),
        "--out",
    ),
    Case(
        "report over the table",
        "apply model.safetensors people.csv --out s.csv --report people.csv",
        ("would overwrite",),
        "--report",
    ),
    Case(
        "scores and report in one",
        "apply model.safetensors people.csv --out x.csv --report x.csv",
        ("--report should be a file name ending in .html or .htm, but got x.csv",),
        "use x.html",
    ),
    Case("figures below a file", "report done --figures people.csv/f", ("people.csv is a file",), "--figures"),
    Case("simulation in a folder", "simulate basic --out .", ("is a folder",), "--out"),
    Case("simulation below a file", "simulate basic --out people.csv/c.csv", ("people.csv is a file",), "--out"),
    Case("demo among files", "demo --out .", ("other files",), "--out"),
    # Results of a run are not overwritten
    Case("report", "report done --out done/model.safetensors", ("reserved for the results of the run in",), "--out"),
    Case(
        "report into analyses",
        "report done --out done/analysis/r.html",
        ("reserved for the results of the run in",),
        "--out",
    ),
    Case(
        "report of others",
        "apply done/model.safetensors people.csv --out s.csv --report done/report.html",
        ("reserved for the results of the run in",),
        "--report",
    ),
    Case("scores", f"{SCORE} done/people.csv", ("reserved for the results of the run in",), "--out"),
    Case("simulation", "simulate basic --out done/r_indices.csv", ("reserved for the results of the run in",), "--out"),
    Case(
        "truth",
        "simulate basic --out c.csv --truth done/patterns.csv",
        ("reserved for the results of the run in",),
        "--truth",
    ),
    Case(
        "model",
        "import-official m.pt --features muse72 --out done/model.safetensors",
        ("reserved for the results of the run",),
        "--out",
    ),
    Case(
        "own report again",
        "report done --out done/report.html",
        ("Report: done/report.html",),
        code=0,
        writes=("done/report.html",),
    ),
    # File names must match the format
    Case(
        "letter",
        f"{SCORE} letter.docx",
        ("ending in .csv, but got letter.docx",),
        "letter.csv",
        {"letter.docx": "mine"},
    ),
    Case("workbook", f"{SCORE} s.xlsx", ("ending in .csv, but got s.xlsx",), "use s.csv"),
    Case("packed", f"{SCORE} s.csv.gz", ("but got s.csv.gz",), "use s.csv,"),
    Case("tabs", "simulate basic --out c.tsv", ("but got c.tsv",), "use c.csv"),
    Case("truth", "simulate basic --out c.csv --truth t", ("--truth should be a file", "but got t"), "use t.csv"),
    Case("report", "report done --out r.pdf", ("ending in .html or .htm, but got r.pdf",), "use r.html"),
    Case("model", "import-official m.pt --features muse72 --out m.bin", ("but got m.bin",), "use m.safetensors"),
    # A finished run repeated
    Case("as before", SAME, ("already complete",), "--overwrite", code=0),
    Case("without a report", f"{SAME} --no-report", ("already complete",), "Already done", code=0),
    Case(
        "with ids", f"{SAME} --show-ids", ("already complete", "--show-ids"), "rindices report done --show-ids", code=0
    ),
    Case(
        "other limits",
        f"{SAME} --subgroup-limits 0.3,0.6",
        ("already complete",),
        "report done --subgroup-limits 0.3,0.6",
        code=0,
    ),
    Case("as BIDS", f"{SAME} --bids", ("already complete", "--bids"), "--bids --overwrite", code=0),
    # A full disk
    full("simulated table", "simulate basic --out c.csv --controls 30 --patients 30", ": c.csv."),
    full("scores", "apply model.safetensors people.csv --out s.csv", ": s.csv."),
    full("run", "fit people.csv --out run", "run/run.toml", writes=("run", "run/journal", "run/journal/lock")),
    full("report", "report done", "done/report.html"),
    # Too little memory
    Case("memory", "simulate basic --out c.csv", ("not enough memory",), "more memory", code=3, spoil=no_memory),
)
def test_each_option_or_place_is_answered_as_its_case_says(stage, case):
    stage(case)
