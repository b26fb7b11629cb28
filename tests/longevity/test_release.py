"""What is written in several places says the same: versions, dependencies, public names."""

import ast
import re
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import rindices
from tests.docs.pages import ROOT, script
from tests.pages.page import missing

CONDA_NAMES = {"matplotlib": "matplotlib-base"}  # without the parts that draw in windows
CONTAINERFILE, STUB = ROOT / "packaging" / "Containerfile", Path(rindices.__file__).with_suffix(".pyi")


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


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
    expected = {CONDA_NAMES.get(one.name, one.name): str(one.specifier) for one in needed}
    found = dict(text.split() for text in recipe["requirements"]["run"])
    assert found == expected | {"python": PROJECT["requires-python"]}
    build = {text.replace(" ", "") for text in recipe["requirements"]["host"]}
    assert build >= {*PYPROJECT["build-system"]["requires"]}
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    about, python = recipe["about"], recipe["build"]["python"]
    assert (recipe["context"]["version"], python["entry_points"]) == (rindices.__version__, scripts)
    assert (about["license"], about["license_file"]) == (PROJECT["license"], PROJECT["license-files"])


def test_the_container_is_pinned_installs_our_wheel_and_has_no_root():
    text, wheel = CONTAINERFILE.read_text(encoding="utf-8"), f"rindices-{rindices.__version__}-py3-none-any.whl"
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    keywords, texts = zip(*(line.split(maxsplit=1) for line in lines), strict=True)
    container = dict(zip(keywords, texts, strict=True))
    assert [keywords.count(one) for one in ("FROM", "LABEL", "ADD", "EXPOSE", "HEALTHCHECK")] == [1, 1, 0, 0, 0]
    base = r"docker\.io/library/python:3\.\d+\.\d+-slim-\w+"
    assert re.fullmatch(base, container["FROM"]), "a version, never latest"
    assert f"COPY {wheel} /tmp/" in lines
    assert [line for line in texts if "pip install" in line and wheel not in line] == []
    labels = f'image.version="{rindices.__version__}"', f'image.licenses="{PROJECT["license"]}"'
    assert not missing(container["LABEL"], *labels)
    extras = {*container["ARG"].removeprefix("EXTRAS=").split(",")}
    with_gpu = {*re.search(r"--build-arg EXTRAS=(\S+)", text)[1].split(",")}
    assert (with_gpu - extras, with_gpu - {*PROJECT["optional-dependencies"]}) == ({"cuda"}, set())
    assert re.fullmatch(r"[1-9]\d*(:.*)?", container["USER"])  # by number: clusters ask whether it is 0
    assert "RUN" not in keywords[keywords.index("USER") :], "what is installed is not the user's to change"
    assert container["ENTRYPOINT"] == f'["{next(iter(PROJECT["scripts"]))}"]'
    runs = re.findall(r"^# +(?:podman|docker) run .*", text, re.MULTILINE)
    owned = ('--user "$(id -u):$(id -g)"', "--network none")  # as told, whoever runs it owns the results
    assert [missing(line, *owned) for line in runs] == [[], []]


def test_type_checkers_are_told_of_every_public_name():
    nodes = [node for node in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    told = {alias.asname: getattr(import_module(node.module), alias.asname) for node in nodes for alias in node.names}
    assert told == {name: getattr(rindices, name) for name in rindices.__all__}


@pytest.mark.skipif("oldest" not in sys.prefix, reason="this is not the environment of make test-oldest")
def test_the_oldest_environment_has_the_lower_bounds():
    bounds = {one.name: next(iter(one.specifier)).version for one in map(Requirement, PROJECT["dependencies"])}
    assert {name: Version(version(name)) for name in bounds} == {name: Version(one) for name, one in bounds.items()}


# No answer about vulnerabilities is not a good answer


SOUND = {"name": "numpy", "version": "2.0.0", "vulns": []}
FLAW = {"id": "CVE-1", "fix_versions": ["3.1.6"], "aliases": [], "description": ""}
AFFECTED = {"name": "jinja2", "version": "3.1.4", "vulns": [FLAW]}
UNKNOWN = {"name": "jax", "skip_reason": "Dependency not found on PyPI and could not be audited: jax (0.8.0)"}
OURS = {"name": "rindices", "skip_reason": "distribution marked as editable"}


audit = script("tools/audit.py")


@pytest.mark.parametrize(
    ("packages", "code", "words"),
    [
        ([SOUND, OURS], 0, "1 packages checked, 0 affected."),
        ([SOUND, AFFECTED], 1, "jinja2 3.1.4: CVE-1, mended in 3.1.6"),
        ([SOUND, UNKNOWN], 2, "NOT CHECKED: nothing could be learned about 1 packages: jax."),
        ([AFFECTED, UNKNOWN], 1, "NOT CHECKED"),
        ([OURS], 2, "0 packages checked"),
    ],
)
def test_only_a_full_answer_is_a_good_one(packages, code, words):
    found, told = audit.verdict({"dependencies": packages})
    assert (found, words in told) == (code, True), told


def test_a_service_that_does_not_answer_is_told(monkeypatch, capsys):
    monkeypatch.setattr(audit, "COMMAND", ["-c", "raise SystemExit('ConnectionError: no route')"])
    monkeypatch.setattr("sys.argv", ["audit.py"])
    assert audit.main() == 2
    assert "could not be asked.\nConnectionError: no route" in capsys.readouterr().out
