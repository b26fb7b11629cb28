"""Kept models, results and run folders still give the same results (see README.md here).

Whatever several files of a release state is the same in all of them: versions, dependencies, public names.
"""

import ast
import re
import shlex
import shutil
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version
from safetensors import safe_open

import rindices
from rindices.model import FORMAT_VERSION
from rindices.record import read_run, read_settings, read_summary
from tests.docs.pages import ROOT
from tests.longevity import golden
from tests.longevity.freeze import COHORT, FROZEN, MODELS, PEOPLE, RUNS, description_of, maps_of, model_of, scores_of
from tests.pages.page import missing
from tests.test_cli import run, told

# Models in the file format still give the same results: see README.md here


# Inference is in double precision, so other processors and libraries change only the last digits: by 3e-14 at most
# between the oldest and the newest dependencies. Single precision is off by 5e-7 to 1e-5, and a change of the method
# by more.
SAME = 1e-9


@pytest.fixture(params=MODELS)
def folder(request):
    return FROZEN / request.param


def test_frozen_models_say_what_they_said(folder):
    path, model, people = folder / "model.safetensors", model_of(folder.name), pd.read_csv(PEOPLE)
    with safe_open(path, framework="numpy") as file:
        version = file.metadata()["format_version"]
    assert version == str(FORMAT_VERSION), "make them again: python -m tests.longevity.freeze"
    # A change near 0 is the difference of two brains near 1.
    for name, found, near in (("scores", scores_of(model, people), 0), ("maps", maps_of(model, people), 1e-12)):
        kept = pd.read_csv(folder / f"{name}.csv")
        pd.testing.assert_frame_equal(found, kept, rtol=SAME, atol=near, check_dtype=False)
    lines = (folder / "describe.txt").read_text(encoding="utf-8").splitlines()
    values = [line.rpartition(": ")[2] for line in lines]  # the wording of labels may change
    assert not missing("\n".join(description_of(path)), *values)


def test_apply_writes_the_scores_of_then_and_the_contract_holds(folder, tmp_path):
    out, few, people = tmp_path / "scores.csv", tmp_path / "few.csv", pd.read_csv(PEOPLE)
    told("apply", folder / "model.safetensors", PEOPLE, "--out", out)
    scores, written = pd.read_csv(folder / "scores.csv"), pd.read_csv(out)
    np.testing.assert_allclose(written[scores.columns[1:]], scores.iloc[:, 1:], rtol=5.1e-6)  # six digits are written
    assert written["participant_id"].tolist() == people["participant_id"].tolist()
    with_age = "age" in (folder / "describe.txt").read_text(encoding="utf-8")
    assert written["flags"].notna()[0] == with_age, "this person is 97 years old"
    people.iloc[:, :-6].to_csv(few, index=False)  # a quarter of the regions is too many to impute
    told("apply", folder / "model.safetensors", few, "--out", tmp_path / "s.csv", code=2)


# Results match those kept: README.md here explains the tolerances


ROUNDING = 1e-5  # of weights after a few steps in single precision
EXACT = 1e-9


@pytest.mark.parametrize("name", [name for name in golden.RESULTS if name != "fit"])
def test_what_is_computed_in_double_precision_and_training_are_as_they_were(name):
    now, kept = golden.RESULTS[name](), golden.read(name)
    assert now.keys() == kept.keys()
    for key, value in kept.items():
        rtol, atol = (0, ROUNDING) if name.startswith("weights") else (EXACT, 1e-12)
        np.testing.assert_allclose(np.asarray(now[key], float), value, rtol, atol, err_msg=key)


@pytest.mark.parametrize("name", golden.WEIGHTS._fields)
def test_one_percent_of_a_loss_weight_would_be_noticed(name):
    other = golden.WEIGHTS._replace(**{name: 1.01 * getattr(golden.WEIGHTS, name)})
    result = "weights_near_a_linear_model" if name == "prior" else "weights"
    now, kept = golden.RESULTS[result](other), golden.read(result)
    assert max(np.abs(np.asarray(now[key]) - kept[key]).max() for key in kept) > 2 * ROUNDING


@pytest.mark.slow
def test_a_known_truth_is_found_as_well_as_it_was():
    """JAX 0.8.0 and 0.10.2 differ at most by: concordance 0.0005, agreement 0.009, R-indices 0.13, maps 0.87 sd."""
    now, kept = golden.fit(), golden.read("fit")
    assert (now["reliable"], now["concordance"]) == (kept["reliable"], pytest.approx(kept["concordance"], abs=0.005))
    for name, most in (("agreement", 0.03), ("scores", 0.25), ("maps", 1.5)):
        np.testing.assert_allclose(now[name], kept[name], atol=most, err_msg=name)


# Run folders of this layout are reported, rerun and resumed; older ones are refused


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with copies of the table and of both runs, where training raises an error."""
    for name in ("finished", "interrupted"):
        shutil.copytree(RUNS / name, tmp_path / name)
    shutil.copy(COHORT, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rindices.training.execution.train_chunk", Mock(side_effect=RuntimeError("training began")))
    return tmp_path


def command_of(name):
    """Return the command that a run was made with, as recorded in its run.toml."""
    return shlex.split(read_settings(Path(name, "run.toml")).command["line"])[1:]


@pytest.mark.parametrize("name", ["finished", "interrupted"])
def test_documents_are_written_as_they_were(name):
    settings, summary = RUNS / name / "run.toml", read_summary(RUNS / name)
    assert read_settings(settings).text() == settings.read_text(encoding="utf-8")
    written = summary.model_dump_json(indent=2, exclude_unset=True) + "\n"
    assert written == (RUNS / name / "summary.json").read_text(encoding="utf-8")


def test_finished_run_is_reported(place, monkeypatch):
    monkeypatch.setattr("rindices.pages.patterns_section.find_spec", lambda _: None)
    told("report", "finished", "--subgroup-limits", "0.3,0.6")
    summary = read_run(place / "finished").summary
    assert (summary.versions["rindices"], summary.subgroup_limits) == (rindices.__version__, (0.3, 0.6))
    assert not missing(
        (place / "finished" / "report.html").read_text(encoding="utf-8"),
        "compares 154 patients (PT) with 146 controls (CN)",
        f"All computations were done with rindices {rindices.__version__}",
    )


def test_finished_run_is_the_same_run_and_runs_again_elsewhere(place):
    Path("finished", "r_indices.png").touch()  # which is not kept here
    assert "already complete" in told(*command_of("finished"))
    assert "training began" in told("fit", "--config", "finished/run.toml", "--out", "again", code=3)
    before, now = (read_settings(Path(name, "run.toml")) for name in ("finished", "again"))
    assert (before.table, before.training) == (now.table, now.training)


def test_interrupted_run_is_reported_and_goes_on_or_is_refused_with_its_version(place):
    assert "Traceback" not in run("report", "interrupted").output
    assert Path("interrupted", "report.html").exists()  # even without results to show
    journal = {*Path("interrupted", "journal").iterdir()}
    again = run(*command_of("interrupted"))
    assert (" then" if again.exit_code == 2 else "training began") in " ".join(again.output.split())
    assert journal <= {*Path("interrupted", "journal").iterdir()}


# Different places of a release state the same


CONTAINERFILE, STUB = ROOT / "packaging" / "Containerfile", Path(rindices.__file__).with_suffix(".pyi")


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_changelog_and_the_citation_have_this_version():
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (heading, str(citation["version"])) == (rindices.__version__, rindices.__version__)


def test_every_dependency_has_a_lower_bound():
    listed = chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    loose = [one for one in map(Requirement, listed) if not one.specifier and one.name != PROJECT["name"]]
    assert not loose, "make test-oldest installs the lower bounds"


def test_the_conda_recipe_needs_and_has_what_the_project_does():
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    needed = [Requirement(text) for text in PROJECT["dependencies"]]
    # There, matplotlib has no GUI backends.
    expected = {{"matplotlib": "matplotlib-base"}.get(one.name, one.name): str(one.specifier) for one in needed}
    found = dict(text.split() for text in recipe["requirements"]["run"])
    assert found == expected | {"python": PROJECT["requires-python"]}
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert (recipe["context"]["version"], recipe["build"]["python"]["entry_points"]) == (rindices.__version__, scripts)


def test_the_container_is_pinned_installs_our_wheel_and_has_no_root():
    text, wheel = CONTAINERFILE.read_text(encoding="utf-8"), f"rindices-{rindices.__version__}-py3-none-any.whl"
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    keywords, texts = zip(*(line.split(maxsplit=1) for line in lines), strict=True)
    container = dict(zip(keywords, texts, strict=True))
    assert [keywords.count(one) for one in ("FROM", "ADD", "EXPOSE")] == [1, 0, 0]
    base = r"docker\.io/library/python:3\.\d+\.\d+-slim-\w+"
    assert re.fullmatch(base, container["FROM"]), "a version, never latest"
    assert [line for line in texts if "pip install" in line and wheel not in line] == []
    assert f'image.version="{rindices.__version__}"' in container["LABEL"]
    assert {*container["ARG"].removeprefix("EXTRAS=").split(",")} <= {*PROJECT["optional-dependencies"]}
    assert re.fullmatch(r"[1-9]\d*(:.*)?", container["USER"])  # a number: clusters check that it is not 0
    assert "RUN" not in keywords[keywords.index("USER") :], "what is installed is not the user's to change"


def test_type_checkers_are_told_of_every_public_name():
    nodes = [node for node in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    told = {alias.asname: getattr(import_module(node.module), alias.asname) for node in nodes for alias in node.names}
    assert told == {name: getattr(rindices, name) for name in rindices.__all__}


@pytest.mark.skipif("oldest" not in sys.prefix, reason="this is not the environment of make test-oldest")
def test_the_oldest_environment_has_the_lower_bounds():
    bounds = {one.name: next(iter(one.specifier)).version for one in map(Requirement, PROJECT["dependencies"])}
    assert {name: Version(version(name)) for name in bounds} == {name: Version(one) for name, one in bounds.items()}
