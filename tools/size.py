"""Print the size of the project beside its limits (`make size`); exit with 1 if a limit is exceeded.

A new capability raises the limits by what it needs, and its commit says why (`git log -p tools/size.py`).
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

LIMITS = {
    "statements in src": 16_427,
    "files in src": 130,
    "statements of tables, cohort and schema": 2_679,
    "statements in tests": 13_500,
    "mappings of Any in src": 7,
    "command-line options outside cli": 0,
    "parameters of a function": 8,
}
# Functions that may have more: `simulate_cohort` is called by users, by keyword and with few of them at a time, as
# scikit-learn's `make_classification` is; an object of options would be one more thing to make before the first cohort.
MANY_PARAMETERS = {"simulate_cohort"}
LONGEST_FUNCTION = 60  # lines; printed for information

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "rindices"
OPTION = re.compile(r"(?:^|[^\w-])(?<!var\()--[a-z][a-z-]+", re.MULTILINE)  # not the variable of a style
OUTPUT = re.compile(r"\{\{.*?\}\}", re.DOTALL)  # what a template puts in
CONDITION = re.compile(r"\b(?:if|and|or)\b")
TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)  # of a script
SCRIPT_STATEMENT = re.compile(r";|\b(?:if|for|while|switch|try|function|class)\b")


def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def is_text(node: ast.AST) -> bool:
    """Return whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def statements(folders: Iterable[Path]) -> int:
    """Count statements without docstrings; in templates tags and conditions, in scripts statements."""
    count = 0
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        if path.suffix == ".py":
            count += sum(isinstance(node, ast.stmt) and not is_text(node) for node in ast.walk(parsed(path)))
        elif path.suffix == ".js":
            count += len(SCRIPT_STATEMENT.findall(TEXT.sub("", path.read_text(encoding="utf-8"))))
        elif "templates" in path.parts:
            text = path.read_text(encoding="utf-8")
            outputs = [TEXT.sub("", output) for output in OUTPUT.findall(text)]
            count += text.count("{%") + sum(len(CONDITION.findall(output)) for output in outputs)
    return count


def mappings_of_any(tree: ast.Module) -> int:
    """Count annotations that say nothing of what a mapping holds.

    These are ``dict[..., Any]``, ``Mapping[..., Any]`` and ``MutableMapping[..., Any]`` anywhere in an annotation or an
    alias, and parameters ``**name: Any``.
    """
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments) and node.kwarg is not None and node.kwarg.annotation is not None:
            count += ast.unparse(node.kwarg.annotation) in ("Any", "typing.Any")
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            mapping = ast.unparse(node.value).rpartition(".")[2] in ("dict", "Mapping", "MutableMapping")
            count += mapping and ast.unparse(node.slice.elts[-1]) in ("Any", "typing.Any")
    return count


def functions(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of lines of each function, without its docstring, and its location."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if is_text(node.body[0]) else node.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            yield lines, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def n_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the parameters of a function, without the object or class that a method belongs to."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if one]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def most_parameters(tree: ast.Module) -> int:
    """Return the largest number of parameters of a function; the constructors of estimators come from dataclasses."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return max((n_parameters(one) for one in functions if one.name not in MANY_PARAMETERS), default=0)


def main() -> int:
    """Print the table; return 1 if a limit is exceeded."""
    modules = sorted(SRC.rglob("*.py"))
    others = [path for path in modules if "cli" not in path.relative_to(SRC).parts]
    found = (
        statements([SRC]),
        len(modules),
        statements([SRC / "tables", SRC / "cohort", SRC / "schema"]),
        statements([ROOT / "tests"]),
        sum(mappings_of_any(parsed(path)) for path in modules),
        sum(len(OPTION.findall(path.read_text(encoding="utf-8"))) for path in others),
        max(most_parameters(parsed(path)) for path in modules),
    )
    for (name, limit), number in zip(LIMITS.items(), found, strict=True):
        print(f"{name:42} {number:7,} of at most {limit:6,}{'  TOO LARGE' if number > limit else ''}")
    longest = sorted((function for path in modules for function in functions(path)), reverse=True)
    print(f"functions longer than {LONGEST_FUNCTION} lines: {sum(lines > LONGEST_FUNCTION for lines, _ in longest)}")
    print(f"the longest: {longest[0][1]}, {longest[0][0]} lines")
    rooms = sorted(path.parent for path in SRC.glob("*/__init__.py"))
    print("statements by room: " + ", ".join(f"{folder.name} {statements([folder]):,}" for folder in rooms))
    return int(any(number > limit for number, limit in zip(found, LIMITS.values(), strict=True)))


if __name__ == "__main__":
    sys.exit(main())
