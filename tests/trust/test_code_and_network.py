"""What the code imports and calls: declared libraries only, nothing that runs data, nothing beyond this machine."""

import ast
import pickle
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections import OrderedDict
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest

import rindices
from tests.refusal import refused_with
from tests.test_cli import TINY, run, small_table
from tests.test_layers import MODULES, dotted, imported
from tests.trust.watch import watching

# Imports are declared, declared libraries are imported, and a missing optional library is asked for by name


PROJECT = Path(rindices.__file__).parents[2] / "pyproject.toml"
EXTRAS = ("imaging", "cluster", "parquet", "app")  # for users; "cuda" is JAX's build for a device, "dev" is ours
# Libraries that are installed with another one.
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
    extras = (names(project["optional-dependencies"][extra]) for extra in EXTRAS)
    return names(project["dependencies"]), set().union(*extras)


IMPORTED = {name.split(".")[0] for path in MODULES for name in imported(path)}
EVERYTHING = IMPORTED - sys.stdlib_module_names - {"rindices"}


def undeclared(modules, distributions):
    """Return the modules that come from none of the distributions, directly or with another library."""
    carriers = {name: COMES_WITH.get(name, name) for name in modules}
    return {name for name, carrier in carriers.items() if not HOMES.get(carrier, {carrier}) & distributions}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported(declared):
    core, extras = declared
    assert undeclared(EVERYTHING, core | extras) == set()
    assert (core | extras) - (
        {home for name in EVERYTHING for home in HOMES.get(name, {name})} | USED_BY_OTHERS.keys()
    ) == set()


ALONE = """
import importlib, sys
absent, *modules = sys.argv[1:]
sys.modules.update(dict.fromkeys(absent.split(",")))
for name in modules:
    importlib.import_module(name)
"""


@pytest.mark.parametrize("of_pages", [False, True], ids=["all", "pages"])
def test_modules_need_nothing_but_the_core_to_be_imported(declared, of_pages):
    absent = undeclared(EVERYTHING, declared[0]) - ({"starlette", "uvicorn"} if of_pages else set())
    own = [name for name in map(dotted, MODULES) if name.startswith("pages.server") == of_pages and name != "__main__"]
    modules = [f"rindices.{name}".removeprefix("rindices.rindices") or "rindices" for name in own]
    subprocess.run([sys.executable, "-c", ALONE, ",".join(absent), *modules], check=True)


@pytest.mark.parametrize("missing", ["distributed", "dask"])
def test_what_is_not_installed_is_asked_for(missing, monkeypatch, tmp_path):
    small_table().to_csv(tmp_path / "table.csv", index=False)
    for name in [missing, *(name for name in sys.modules if name.startswith(f"{missing}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    found = run("fit", tmp_path / "table.csv", "--out", tmp_path / "run", "--dask", "local", *TINY)
    assert (found.exit_code, "pip install 'rindices[cluster]'" in found.output) == (2, True)


# Files are data: nothing that is read is unpickled, compiled or run


FORBIDDEN = {
    "pickle": "loads code",
    "_pickle": "loads code",
    "dill": "loads code",
    "cloudpickle": "loads code",
    "marshal": "loads code",
    "shelve": "loads code",
    "torch": "loads code",
    "yaml": "loads code unless one is careful",
    "ctypes": "calls anything",
    "runpy": "runs code",
    "code": "runs code",
    "subprocess": "starts programs",
    "socket": "connects",
    "ssl": "connects",
    "http": "connects",
    "urllib": "connects",
    "requests": "connects",
    "httpx": "connects",
    "aiohttp": "connects",
    "ftplib": "connects",
    "smtplib": "connects",
    "webbrowser": "connects",
    "xmlrpc": "connects",
}
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {
    "read_pickle": "loads code",
    "to_pickle": "writes what loads code",
    "system": "starts programs",
    "popen": "starts programs",
    "mktemp": "gives a name that somebody else may take",
    "query": "compiles text",
    "eval": "compiles text",
    "find_class": "loads code",
}
OF_MODULES = {("joblib", "load"), ("joblib", "dump"), ("np", "load"), ("np", "save"), ("numpy", "load")}
# What pages in the browser need, and no other module uses.
OF_THE_PAGES = {
    "pages.server.page": {"subprocess"},  # tracks the processes that were started
    "pages.server.run_pages": {"subprocess"},  # starts rindices report and fit
    "pages.server.addresses": {"socket"},  # listens on the loopback address
    "cli.results": {"webbrowser"},  # opens that address
}
# They import by name: our own modules, or optional imaging libraries. The names never come from data.
IMPORTED_BY_NAME = {"rindices", "imaging.images"}


def faults(text):
    """Yield the forbidden calls of a module."""
    for node in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
        owner, _, name = ast.unparse(node.func).rpartition(".")
        if name in (METHODS if owner else CALLS) or (owner, name) in OF_MODULES:
            yield f"line {node.lineno}: {owner}.{name}"
        for keyword in node.keywords:
            if keyword.arg in ("shell", "allow_pickle") and ast.unparse(keyword.value) != "False":
                yield f"line {node.lineno}: {keyword.arg}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_modules_neither_load_nor_start_nor_fetch_anything(path):
    roots = {name.split(".")[0] for name in imported(path) if name != "urllib.parse"}  # it only parses text
    text = path.read_text(encoding="utf-8")
    assert (roots & FORBIDDEN.keys(), list(faults(text))) == (OF_THE_PAGES.get(dotted(path), set()), [])
    assert "import_module(" not in text or dotted(path) in IMPORTED_BY_NAME


@pytest.mark.parametrize(
    "text",
    [
        "eval(cell)",
        "exec(x)",
        "pd.read_pickle(p)",
        "joblib.load(p)",
        "np.load(p)",
        "run(x, shell=True)",
        "os.system(x)",
    ],
)
def test_a_fault_is_found(text):
    assert list(faults(text))


def test_the_watch_sees_pickles_and_compiled_texts_and_closes_the_network(monkeypatch):
    closed = partial(refused_with, "the network is closed", error=ConnectionError)
    plain, dictionary = pickle.dumps([1, 2]), pickle.dumps(OrderedDict(a=1))
    with watching(monkeypatch) as watch, socket.socket() as one:
        pickle.loads(plain)
        pickle.loads(dictionary)
        compile("1 + 1", "cell", "eval")
        closed(socket.create_connection, ("127.0.0.1", 9))
        closed(one.bind, ("0.0.0.0", 0))
    assert [what for what, _ in watch.unpickled] == ["loads", "loads", ("collections", "OrderedDict")]
    assert b"1 + 1" in watch.compiled
    assert [event for event, *_ in watch.connections] == ["socket.getaddrinfo", "socket.bind"]


# Nothing is requested from beyond this machine


SCRIPT = """
import socket, sys
try:
    socket.create_connection(("192.0.2.1", 80), timeout=2)
except OSError as error:
    assert error.errno in (101, 113), error  # unreachable: there is no way out
else:
    raise SystemExit("this process has a network")
from rindices.cli import app
app()
"""


@pytest.mark.slow
def test_a_program_without_a_network(tmp_path):
    """The watch cannot see requests that libraries make beneath Python; here, there is no network to reach."""
    alone = [shutil.which("unshare") or "unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("processes without a network cannot be started here")
    small_table().to_csv(tmp_path / "table.csv", index=False)
    for command in (
        ["fit", "table.csv", "--out", "run", *TINY],
        ["apply", "run/model.safetensors", "table.csv", "--out", "new.csv", "--report", "new.html"],
        ["report", "run"],
        ["demo", "--out", "demo", "--repetitions", "2", "--steps", "10"],
    ):
        line = [*alone, sys.executable, "-c", SCRIPT, *command]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
