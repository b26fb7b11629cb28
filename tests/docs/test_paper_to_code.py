"""Every function and test that experiments/paper/README.md names exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split(" | ")]
    for line in (ROOT / "experiments" / "paper" / "README.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| paper "))
]


def names_in(path):
    parsed = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(parsed) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def found(function):
    if function.endswith(".py"):
        return any((ROOT / "experiments" / folder / function).is_file() for folder in ("paper", "."))
    *modules, name = function.split(".")
    home = (ROOT / "src" / "rindices").joinpath(*modules)
    return any(name in names_in(path) for path in (home.with_suffix(".py"), *home.glob("*.py")) if path.is_file())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_a_row_names_is_there(row):
    _, functions, tests, said = row
    assert said
    assert all(found(name) for name in re.findall("`([^`]+)`", functions))
    named = re.findall("`([^`]+)`", tests)
    assert named
    for test in named:
        path, _, name = test.partition("::")
        assert not name or name in names_in(ROOT / path)
        assert (ROOT / path).is_file()


def test_all_equations_and_tables_are_mapped():
    said, mapped = " ".join(row[0] for row in ROWS), set()
    for first, last in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", said):
        mapped |= set(range(int(first), int(last or first) + 1))
    assert mapped == set(range(1, 23))
    assert not [number for number in range(1, 8) if not re.search(rf"Tables?[^|]*\b{number}\b", said)]
