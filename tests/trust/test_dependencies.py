"""What is imported is declared, what is declared is imported, and what may be missing is asked for in words."""

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import rindices
from rindices.errors import InputError
from rindices.imaging import images
from rindices.training import clusters
from tests.test_layers import MODULES, imported

PROJECT = Path(rindices.__file__).parents[2] / "pyproject.toml"
EXTRAS = ("imaging", "cluster", "parquet")  # of users; "cuda" is JAX's build for a device, "dev" is ours
# Libraries that are imported beside the one that brings them.
COMES_WITH = {"markupsafe": "jinja2", "nibabel": "nilearn"}
USED_BY_OTHERS = {"pyarrow": "pandas reads Parquet files with it"}


def plain_name(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements):
    """Return the names of distributions, and those of their extras: ``dask[distributed]`` declares both."""
    found = set()
    for requirement in requirements:
        name, extras = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", requirement).groups()
        found |= {plain_name(name), *(plain_name(extra) for extra in (extras or "").split(",") if extra)}
    return found


@pytest.fixture(scope="module")
def declared():
    if not PROJECT.is_file():
        pytest.skip("rindices is installed without its pyproject.toml")
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return names(project["dependencies"]), {name for extra in EXTRAS for name in names(extras[extra])}


@pytest.fixture(scope="module")
def homes():
    """Return the distributions that each module may come from."""
    return {name: {plain_name(one) for one in found} for name, found in metadata.packages_distributions().items()}


def third_party(names):
    roots = {name.split(".")[0] for name in names}
    return roots - sys.stdlib_module_names - {"rindices"}


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


def carrier(name, homes):
    """Return the distributions of a module, of the one that brings it where it is not declared itself."""
    return homes.get(COMES_WITH.get(name, name), {COMES_WITH.get(name, name)})


def test_what_is_imported_is_declared(declared, homes):
    core, extras = declared
    everything = third_party({name for path in MODULES for name in imported(path)})
    assert {name for name in everything if not carrier(name, homes) & (core | extras)} == set()


def test_modules_need_nothing_but_the_core_to_be_imported(declared, homes):
    core, _ = declared
    needed = {path.name: third_party(at_once(path)) for path in MODULES}
    strange = {file: {name for name in found if not carrier(name, homes) & core} for file, found in needed.items()}
    assert {file: found for file, found in strange.items() if found} == {}


def test_what_is_declared_is_imported(declared, homes):
    core, extras = declared
    everything = third_party({name for path in MODULES for name in imported(path)})
    used = {home for name in everything for home in homes.get(name, {plain_name(name)})} | USED_BY_OTHERS.keys()
    assert (core | extras) - used == set()


@pytest.mark.parametrize("name", COMES_WITH)
def test_what_comes_with_another_does(name):
    try:
        needed = metadata.requires(COMES_WITH[name]) or ()
    except metadata.PackageNotFoundError:
        pytest.skip(f"{COMES_WITH[name]} is not installed")
    assert name in {plain_name(re.match(r"[\w.-]+", one)[0]) for one in needed if "extra ==" not in one}


def start_dask():
    with clusters.parallel(dask="local"):
        pass


@pytest.mark.parametrize(
    ("missing", "action", "error", "extra"),
    [
        ("nibabel", lambda: images.library("nibabel"), InputError, "imaging"),
        ("nilearn", lambda: images.library("nilearn.datasets"), InputError, "imaging"),
        ("distributed", start_dask, InputError, "cluster"),
        ("dask", start_dask, InputError, "cluster"),
    ],
    ids=["nibabel", "nilearn", "distributed", "dask"],
)
def test_what_is_not_installed_is_asked_for(missing, action, error, extra, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(error, match=rf"pip install 'rindices\[{extra}\]'"):
        action()
