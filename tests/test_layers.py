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

# Exactly what each of our packages or modules imports from ours besides itself and `EVERYBODY`.
EVERYBODY = ["problems", "files", "value_kinds", "settings", "presets"]
MAY_IMPORT = {
    "__main__": ["cli"],
    "rindices": [],  # loads everything else on first use
    "problems": [],
    "value_kinds": ["problems"],
    "presets": ["problems"],
    "settings": ["value_kinds", "presets"],
    "files": ["problems"],
    "regions": [],
    "schema": ["regions"],
    "core": [],
    "linear": [],
    "preprocessing": ["schema", "linear"],
    "training": ["core", "linear"],
    "judging": ["schema", "core", "linear", "preprocessing", "training"],
    "scoring": ["schema", "core", "preprocessing", "training", "judging"],
    "model": ["rindices", "schema", "core", "preprocessing", "scoring"],
    "fitted_model": ["schema", "core", "preprocessing", "judging", "scoring"],
    "estimator": [
        *("rindices", "core", "linear", "preprocessing", "training", "judging", "scoring", "model"),
        "fitted_model",
    ],
    "search": ["linear", "training", "judging", "scoring", "fitted_model", "estimator"],
    "tables": ["regions", "schema"],
    "cohort": ["regions", "schema", "tables"],
    "plots": ["regions"],
    "analysis": ["regions"],
    "imaging": ["analysis"],
    "simulate": [],
    "interop": ["regions", "schema", "core", "preprocessing", "judging", "scoring", "estimator"],
    "record": ["judging"],
    "pages": ["regions", "plots", "record"],
    "run": [
        "rindices",
        "regions",
        "schema",
        "core",
        "linear",
        "preprocessing",
        "training",
        "judging",
        "scoring",
        "model",
        "estimator",
        "search",
        "tables",
        "cohort",
        "plots",
        "analysis",
        "imaging",
        "simulate",
        "interop",
        "record",
        "pages",
    ],
    "pages.server": ["regions", "schema", "model", "tables", "cohort", "record", "pages", "run"],
    "cli": [
        "rindices",
        "schema",
        "core",
        "training",
        "model",
        "tables",
        "cohort",
        "plots",
        "simulate",
        "interop",
        "record",
        "pages",
        "run",
        "pages.server",
    ],
}

ENGINE_LIBRARIES, MODULES = {"jax", "optax", "numpy", "joblib"}, sorted(SRC.rglob("*.py"))


def dotted(path):
    """Return the name below `rindices`: ``core.step``, ``cohort.labels``, ``rindices`` for the package itself."""
    return ".".join(part for part in path.relative_to(SRC).with_suffix("").parts if part != "__init__") or "rindices"


def layer(name):
    """Return the entry of the table for a module: its own, or otherwise its package's."""
    while name not in MAY_IMPORT and "." in name:
        name = name.rpartition(".")[0]
    return name


def imported(path):
    """Return everything a module imports as full dotted names, including imports in functions and for typing only."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports should be absolute"
            names |= {_resolved(node.module, alias.name) for alias in node.names}
    return names


def _resolved(module, name):
    """Return ``module.name`` if that is a module of ours, otherwise ``module``."""
    path = SRC.parent.joinpath(*module.split("."), name)
    return f"{module}.{name}" if path.is_dir() or path.with_suffix(".py").is_file() else module


def ours(path):
    names = {name for name in imported(path) if name.split(".")[0] == "rindices"}
    return {layer(name.removeprefix("rindices.")) for name in names}


def test_neither_the_table_of_layers_nor_the_modules_have_a_circle():
    assert set(TopologicalSorter(MAY_IMPORT).static_order()) == set(MAY_IMPORT)
    graph = {f"rindices.{dotted(path)}": imported(path) for path in MODULES if path.name != "__init__.py"}
    assert set(TopologicalSorter(graph).static_order()) >= set(graph)


def test_contributors_are_shown_every_room_and_where_each_question_is_answered():
    page = (SRC.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = re.findall(r"^\| `([\w/]+)` \| [^|]+ \|$", page, re.MULTILINE)
    assert sorted(room.replace("/", ".") for room in rooms) == sorted(MAY_IMPORT)
    page = Path(__file__).with_name("questions.md").read_text(encoding="utf-8")
    answers = dict(re.findall(r"^\| (\d+) \| `([^`]+)` \|$", page, re.MULTILINE))
    assert [*answers] == re.findall(r"^(\d+)\. ", page, re.MULTILINE)
    assert [path for path in answers.values() if not (SRC / path).is_file()] == []


def test_every_module_has_a_name_of_its_own_and_a_place_in_the_table_of_layers():
    names = [path.name for path in MODULES if path.name != "__init__.py"]
    assert sorted(names) == sorted(set(names))
    assert {layer(dotted(path)) for path in MODULES} == set(MAY_IMPORT)


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_layer_imports_what_the_table_says_no_more_and_no_less(name):
    arrows = {arrow for path in MODULES if layer(dotted(path)) == name for arrow in ours(path)} - {name}
    assert arrows - ({*EVERYBODY} if name not in EVERYBODY else set()) == set(MAY_IMPORT[name])


@pytest.mark.parametrize("path", sorted((SRC / "core").glob("*.py")), ids=dotted)
def test_engine_knows_jax_optax_and_numpy_only(path):  # and joblib, which counts the cores of a container
    assert {name.split(".")[0] for name in imported(path)} - sys.stdlib_module_names - {"rindices"} <= ENGINE_LIBRARIES


VERSION = "from rindices.cli import app; app(['--version'], standalone_mode=False)"
HELP = """import contextlib, io, runpy, sys
sys.argv, said = ['rindices', '--help'], io.TextIOWrapper(io.BytesIO(), 'utf-8')
with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
    runpy.run_module('rindices', run_name='__main__')
said.seek(0)
assert said.read().lstrip().startswith('Usage: rindices [OPTIONS]')"""

TABLES = Path(__file__).with_name("longevity")
CHECKED = f"""from rindices.run.check_table import check_table
from rindices.settings import TableSettings
assert check_table({str(TABLES / "cohort.csv")!r}, TableSettings()).usable"""
REFUSED = f"""from typer.testing import CliRunner
from rindices.cli import app
done = CliRunner().invoke(app, ["fit", {str(TABLES / "people.csv")!r}, "--out", "run"])
assert (done.exit_code, "At least 20 patients are needed" in done.output) == (2, True), done.output"""


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import rindices", ["jax", "optax", "sklearn"]),
        ("import rindices.cohort", ["jax", "optax", "sklearn"]),
        ("import rindices.settings", ["jax", "optax", "sklearn"]),
        (VERSION, ["numpy", "pandas", "pydantic", "scipy"]),
        (HELP, ["numpy", "pandas", "pydantic", "scipy"]),
        (
            "import rindices.run.check_table",
            ["jax", "optax", "sklearn", "scipy.stats", "statsmodels", "matplotlib"],
        ),
        (CHECKED, ["jax", "optax", "sklearn"]),
        (REFUSED, ["jax", "optax", "sklearn", "matplotlib"]),
    ],
    ids=["package", "cohort", "settings", "version", "help", "check", "a table is checked", "a bad table is refused"],
)
def test_light_parts_do_not_wait_for_heavy_libraries(tmp_path, code, heavy):
    loaded = f"{code}\nimport sys; sys.exit(', '.join({{*{heavy}}} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
