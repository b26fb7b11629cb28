"""Files are data: nothing that is read is unpickled, compiled or run."""

import ast
import pickle
from collections import OrderedDict
from pathlib import Path

import joblib
import pytest

import rindices
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
# Modules by name: our own, and libraries for images that may not be installed. Neither name comes from data.
IMPORTED_BY_NAME = {"rindices", "imaging.images"}


def faults(text):
    """Return what a module does that it should not."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield f"line {node.lineno}: {node.func.id}"
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            if node.func.attr in METHODS or (owner, node.func.attr) in OF_MODULES:
                yield f"line {node.lineno}: {owner}.{node.func.attr}"
        for keyword in node.keywords:
            allowed = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            if keyword.arg in ("shell", "allow_pickle") and not allowed:
                yield f"line {node.lineno}: {keyword.arg}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_modules_neither_load_nor_start_nor_fetch_anything(path):
    roots = {name.split(".")[0] for name in imported(path)}
    assert roots & FORBIDDEN.keys() == set()
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
        before = len(watch.unpickled)
        joblib.load(tmp_path / "numbers.joblib")
        assert len(watch.unpickled) > before
        compile("1 + 1", "cell", "eval")
        assert b"1 + 1" in watch.compiled


def test_the_package_is_what_is_tested():
    assert len(MODULES) > 100
    assert Path(rindices.__file__) in MODULES
