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

CONDA_NAMES = {"matplotlib": "matplotlib-base"}  # without the parts that draw in windows
CONTAINERFILE, STUB = ROOT / "packaging" / "Containerfile", Path(rindices.__file__).with_suffix(".pyi")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def recipe():
    return yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def container():
    """Instructions of the Containerfile, continued lines joined: pairs of a keyword and its text."""
    text = CONTAINERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_the_changelog_and_the_citation_have_this_version():
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (heading, str(citation["version"])) == (rindices.__version__, rindices.__version__)


def test_every_dependency_has_a_lower_bound(project):
    listed = chain(project["dependencies"], *project["optional-dependencies"].values())
    loose = [one for one in map(Requirement, listed) if not one.specifier and one.name != project["name"]]
    assert not loose, "make test-oldest installs the lower bounds"


def test_the_conda_recipe_needs_and_has_what_the_project_does(project, recipe):
    expected = {
        CONDA_NAMES.get(one.name, one.name): str(one.specifier) for one in map(Requirement, project["dependencies"])
    }
    found = dict(text.split() for text in recipe["requirements"]["run"])
    assert found == expected | {"python": project["requires-python"]}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert {text.replace(" ", "") for text in recipe["requirements"]["host"]} >= {*build}
    assert recipe["context"]["version"] == rindices.__version__
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in project["scripts"].items()]
    about = recipe["about"]
    assert (about["license"], about["license_file"]) == (project["license"], project["license-files"])


def test_the_container_is_pinned_installs_our_wheel_and_has_no_root(container, project):
    (base,) = [text for keyword, text in container if keyword == "FROM"]
    assert re.fullmatch(r"docker\.io/library/python:3\.\d+\.\d+-slim-\w+", base), "a version, never latest"
    wheel = f"rindices-{rindices.__version__}-py3-none-any.whl"
    assert ("COPY", f"{wheel} /tmp/") in container
    assert all(wheel in text for keyword, text in container if "pip install" in text)
    (labels,) = [text for keyword, text in container if keyword == "LABEL"]
    assert f'image.version="{rindices.__version__}"' in labels
    assert f'image.licenses="{project["license"]}"' in labels
    extras = dict(container)["ARG"].removeprefix("EXTRAS=").split(",")
    text = CONTAINERFILE.read_text(encoding="utf-8")
    with_gpu = re.search(r"--build-arg EXTRAS=(\S+)", text)[1].split(",")
    assert {*with_gpu} - {*extras} == {"cuda"}
    assert {*with_gpu} <= {*project["optional-dependencies"]}
    keywords = [keyword for keyword, _ in container]
    assert dict(container)["USER"].split(":")[0].isdigit()  # by number: clusters ask whether it is 0
    assert dict(container)["USER"] != "0"
    assert "RUN" not in keywords[keywords.index("USER") :], "what is installed is not the user's to change"
    assert not {"ADD", "EXPOSE", "HEALTHCHECK"} & {*keywords}
    assert dict(container)["ENTRYPOINT"] == f'["{next(iter(project["scripts"]))}"]'
    runs = re.findall(r"^# +(?:podman|docker) run .*", text, re.MULTILINE)
    assert len(runs) == 2  # as told, whoever runs it owns the results
    assert all('--user "$(id -u):$(id -g)"' in line and "--network none" in line for line in runs)


def test_type_checkers_are_told_of_every_public_name():
    nodes = [node for node in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    told = {alias.asname: node.module for node in nodes for alias in node.names}
    assert (
        sorted(told),
        [name for name, home in told.items() if getattr(import_module(home), name) is not getattr(rindices, name)],
    ) == (sorted(rindices.__all__), [])


@pytest.mark.skipif("oldest" not in sys.prefix, reason="this is not the environment of make test-oldest")
def test_the_oldest_environment_has_the_lower_bounds(project):
    for one in map(Requirement, project["dependencies"]):
        (bound,) = one.specifier
        assert Version(version(one.name)) == Version(bound.version), one.name


# No answer about vulnerabilities is not a good answer


SOUND = {"name": "numpy", "version": "2.0.0", "vulns": []}
FLAW = {"id": "CVE-1", "fix_versions": ["3.1.6"], "aliases": [], "description": ""}
AFFECTED = {"name": "jinja2", "version": "3.1.4", "vulns": [FLAW]}
UNKNOWN = {"name": "jax", "skip_reason": "Dependency not found on PyPI and could not be audited: jax (0.8.0)"}
OURS = {"name": "rindices", "skip_reason": "distribution marked as editable"}


@pytest.fixture(scope="module")
def audit():
    return script("tools/audit.py")


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
def test_only_a_full_answer_is_a_good_one(audit, packages, code, words):
    found, told = audit.verdict({"dependencies": packages})
    assert found == code
    assert words in told


def test_a_service_that_does_not_answer_is_told(audit, monkeypatch, capsys):
    monkeypatch.setattr(audit, "COMMAND", ["-c", "raise SystemExit('ConnectionError: no route')"])
    monkeypatch.setattr("sys.argv", ["audit.py"])
    assert audit.main() == 2
    assert "could not be asked.\nConnectionError: no route" in capsys.readouterr().out
