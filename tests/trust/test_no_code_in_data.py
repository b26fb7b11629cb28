"""Files are data: nothing that is read is unpickled, compiled or run."""

import ast
import pickle
from collections import OrderedDict

import joblib
import pytest

from tests.test_layers import MODULES, dotted, imported
from tests.trust.watch import watching

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
# What a page in the browser needs, and nobody else has.
OF_THE_PAGES = {
    "pages.server.page": {"subprocess"},  # knows the processes that were started
    "pages.server.run_pages": {"subprocess"},  # starts rindices report and fit
    "pages.server.addresses": {"socket"},  # listens on the loopback address
    "cli.results": {"webbrowser"},  # opens that address
}
# Modules by name: our own, and libraries for images that may not be installed. Neither name comes from data.
IMPORTED_BY_NAME = {"rindices", "imaging.images"}


def faults(text):
    """Return what a module does that it should not."""
    for node in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
        owner, _, name = ast.unparse(node.func).rpartition(".")
        if name in (METHODS if owner else CALLS) or (owner, name) in OF_MODULES:
            yield f"line {node.lineno}: {owner}.{name}"
        for keyword in node.keywords:
            if keyword.arg in ("shell", "allow_pickle") and ast.unparse(keyword.value) != "False":
                yield f"line {node.lineno}: {keyword.arg}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_modules_neither_load_nor_start_nor_fetch_anything(path):
    roots = {name.split(".")[0] for name in imported(path) if name != "urllib.parse"}  # which only takes text apart
    assert roots & FORBIDDEN.keys() == OF_THE_PAGES.get(dotted(path), set())
    text = path.read_text(encoding="utf-8")
    assert list(faults(text)) == []
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


def test_the_watch_sees_pickles(monkeypatch, tmp_path):
    joblib.dump({"a": [1, 2]}, tmp_path / "numbers.joblib")
    texts = pickle.dumps([1, 2]), pickle.dumps(OrderedDict(a=1))
    with watching(monkeypatch) as watch:
        pickle.loads(texts[0])
        assert [name for name, _ in watch.unpickled] == ["loads"]
        pickle.loads(texts[1])
        assert ("collections", "OrderedDict") in [args for args, _ in watch.unpickled]
        watch.unpickled.clear()
        joblib.load(tmp_path / "numbers.joblib")
        assert watch.unpickled
        compile("1 + 1", "cell", "eval")
        assert b"1 + 1" in watch.compiled
