"""What is imported is declared, what is declared is imported, and what may be missing is asked for in words."""

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import rindices
from tests.test_cli import TINY, run, small_table
from tests.test_layers import MODULES, dotted, imported

PROJECT = Path(rindices.__file__).parents[2] / "pyproject.toml"
EXTRAS = ("imaging", "cluster", "parquet", "app")  # of users; "cuda" is JAX's build for a device, "dev" is ours
# Libraries that are imported beside the one that brings them.
COMES_WITH = {"markupsafe": "jinja2", "nibabel": "nilearn"}
USED_BY_OTHERS = {"pyarrow": "pandas reads Parquet files with it"}
# The distributions that each module may come from.
HOMES = {
    name: {re.sub(r"[-_.]+", "-", one).lower() for one in found}
    for name, found in metadata.packages_distributions().items()
}


def names(requirements):
    """Return the names of distributions, and those of their extras: ``dask[distributed]`` declares both."""
    return {name.lower() for one in requirements for name in re.findall(r"[\w-]+", re.match(r"[\w.,[\]-]+", one)[0])}


@pytest.fixture(scope="module")
def declared():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return names(project["dependencies"]), {name for extra in EXTRAS for name in names(extras[extra])}


def third_party(names):
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"rindices"}


EVERYTHING = third_party({name for path in MODULES for name in imported(path)})


def at_once(path):
    """Return what a module imports as soon as it is imported itself."""
    found, waiting = set(), list(ast.parse(path.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


def undeclared(modules, distributions):
    """Return the modules that come from none of the distributions, neither themselves nor with another."""
    carriers = {name: COMES_WITH.get(name, name) for name in modules}
    return {name for name, carrier in carriers.items() if not HOMES.get(carrier, {carrier}) & distributions}


def test_what_is_imported_is_declared(declared):
    core, extras = declared
    assert undeclared(EVERYTHING, core | extras) == set()


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_modules_need_nothing_but_the_core_to_be_imported(declared, path):
    of_pages = {"starlette", "uvicorn"} if dotted(path).startswith("pages.server.") else set()
    assert undeclared(third_party(at_once(path)), declared[0] | of_pages) == set()


def test_what_is_declared_is_imported(declared):
    core, extras = declared
    used = {home for name in EVERYTHING for home in HOMES.get(name, {name})} | USED_BY_OTHERS.keys()
    assert (core | extras) - used == set()


@pytest.mark.parametrize("name", COMES_WITH)
def test_what_comes_with_another_does(name):
    pytest.importorskip(COMES_WITH[name])
    assert name in names(one for one in metadata.requires(COMES_WITH[name]) if "extra ==" not in one)


@pytest.mark.parametrize("missing", ["distributed", "dask"])
def test_what_is_not_installed_is_asked_for(missing, monkeypatch, tmp_path):
    small_table().to_csv(tmp_path / "table.csv", index=False)
    for name in [missing, *(name for name in sys.modules if name.startswith(f"{missing}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    found = run("fit", tmp_path / "table.csv", "--out", tmp_path / "run", "--dask", "local", *TINY)
    assert found.exit_code == 2
    assert "pip install 'rindices[cluster]'" in found.output
