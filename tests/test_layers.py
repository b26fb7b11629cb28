"""Imports go downwards only, and the light parts do not load the heavy libraries."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rindices

SRC = Path(rindices.__file__).parent

# What each room or file may import of ours besides itself, `EVERYBODY` and what these import in turn.
EVERYBODY = ["problems", "files", "settings", "setting_fields"]
MAY_IMPORT = {
    "rindices": [],  # loads everything else when it is first used
    "problems": [],
    "setting_fields": ["problems"],
    "settings": ["setting_fields", "problems"],
    "files": ["problems"],
    "regions": [],
    "schema": ["regions"],
    "core": [],
    "linear": [],
    "preprocessing": ["schema"],
    "training": ["core", "linear"],
    "judging": ["training", "preprocessing", "linear"],
    "scoring": ["judging"],
    "model": ["rindices", "schema", "scoring"],
    "estimator": ["model", "scoring"],
    "linear_estimator": ["estimator"],
    "search": ["estimator"],
    "tables": ["schema"],
    "cohort": ["tables", "schema"],
    "plots": ["regions"],
    "analysis": ["regions"],
    "imaging": ["analysis", "plots"],
    "simulate": [],
    "interop": ["estimator", "cohort"],
    "record": ["judging"],
    "pages": ["record", "plots"],
    "run": ["search", "linear_estimator", "cohort", "interop", "analysis", "imaging", "pages", "record", "plots"],
    "pages.server": ["run", "pages", "record"],
    "cli": ["pages.server", "run", "simulate", "interop", "tables"],
}

ENGINE_LIBRARIES = {"jax", "optax", "numpy"}
MODULES = sorted(SRC.rglob("*.py"))


def dotted(path):
    """Return the name below `rindices`: ``core.step``, ``cohort.labels``, ``rindices`` for the package itself."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "rindices"


def layer(name):
    """Return the entry of the table that a module belongs to, its package's where it has none of its own."""
    while name not in MAY_IMPORT and "." in name:
        name = name.rpartition(".")[0]
    return name


def imported(path):
    """Return all that a module imports, as full dotted names, also within functions and for types only."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports should be absolute"
            names |= {_resolved(node.module, alias.name) for alias in node.names}
    return names


def _resolved(module, name):
    """Return ``module.name`` where that is a module of ours, else ``module``."""
    path = SRC.parent.joinpath(*module.split("."), name)
    return f"{module}.{name}" if path.is_dir() or path.with_suffix(".py").is_file() else module


def ours(path):
    names = {name for name in imported(path) if name.split(".")[0] == "rindices"}
    return {layer(name.removeprefix("rindices.")) for name in names}


def below(name):
    """Return all layers that a layer may import, directly or through others."""
    reached, waiting = set(), [name] if name in EVERYBODY else [name, *EVERYBODY]
    while waiting:
        new = set(MAY_IMPORT[waiting.pop()]) - reached
        reached |= new
        waiting += new
    return reached


def test_neither_the_table_of_layers_nor_the_modules_have_a_circle():
    assert set(TopologicalSorter(MAY_IMPORT).static_order()) == set(MAY_IMPORT)
    graph = {f"rindices.{dotted(path)}": imported(path) for path in MODULES if path.name != "__init__.py"}
    assert set(TopologicalSorter(graph).static_order()) >= set(graph)


def test_contributors_are_shown_this_table():
    page = (SRC.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `([\w/]+)` \| [^|]+ \| ([\w/, –]+) \|$", page, re.MULTILINE)
    below_it = {name.replace("/", "."): below.replace("/", ".").replace("–", "") for name, below in shown}
    assert {name: [one for one in below.split(", ") if one] for name, below in below_it.items()} == MAY_IMPORT


def test_no_two_modules_have_one_name():
    names = [path.name for path in MODULES if path.name != "__init__.py"]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_module_imports_only_what_is_below_it(path):
    name = layer(dotted(path))
    assert name in MAY_IMPORT, f"{name} is new: give it a place in the table of layers"
    assert ours(path) <= below(name) | {name} | (set() if name in EVERYBODY else {*EVERYBODY})


@pytest.mark.parametrize("path", sorted((SRC / "core").glob("*.py")), ids=dotted)
def test_engine_knows_jax_optax_and_numpy_only(path):
    roots = {name.split(".")[0] for name in imported(path)}
    assert roots - sys.stdlib_module_names - {"rindices"} <= ENGINE_LIBRARIES


@pytest.mark.parametrize("module", ["rindices", "rindices.cohort", "rindices.settings", "rindices.cli"])
def test_light_modules_load_neither_jax_nor_scikit_learn(module):
    code = f"import sys, {module}; sys.exit(', '.join({{'jax', 'sklearn', 'optax'}} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
