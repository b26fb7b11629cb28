"""How large the project is, beside its limits: `make size`. Ends with 1 where one is exceeded.

A later capability raises the limits by what it needs, with the reason in its commit.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

LIMITS = {
    # 9,150 before severities, intervals, misfit and four verdicts (600); checking, growing, comparing and sharing runs
    # (810); missing regions, new sites, strangers (370); drawn brains and the explorer of the report (650); change
    # between visits (370); the pages in the browser (1,280); numbers of patterns that train together (30);
    # a file for what is loaded while models train, and weights that are tried where they matter (40)
    # 13,385 before scripts (716) and conditions of templates (231) were counted; settings and roles as data (60);
    # linear models, the look before training and where repetitions start (530)
    # what programs and studies call their columns (90), which covariates a published model takes (65),
    # and the folders of five programs as one table (375)
    # one test of all background variables, an interval of the AUC, sentences that follow the run (500)
    # the look before training on the command line and the page, time needed, the linear estimator (330)
    # cards of patterns, patients versus controls (240)
    # columns that are no regions, values in two units, ids and tables that do not fit together (530)
    # folders gathered, tables joined and several tables on the page; totals left out; too few patients (150)
    # what is left unknown of true change between visits and of new sites (130)
    # what patterns resemble (150), what became of people (370), planning of studies (200)
    # scores by name, means beside their parts, FastSurfer without surfaces; follow-up that comes later (85)
    # verdicts that begin with their number, cards of regions without sides or of many patterns (15)
    # thin modules in those that they belong to, and presets, checkpoints, consensus and persons in files of their own
    # what a page calls its settings, one person scored at once, results that are kept (20)
    # 17,843 before annotations did without an import of the future (107), and small files went where they belong (60);
    # since then, pages that score one person (24)
    # files that belong together (217): imports said once
    # patterns that could not be estimated, confounded runs, rows that are pasted (34)
    # contents that mark the section being read, the share of patients beside a pattern's name (4)
    # severities that may be too low are said to be, where patterns are found (7); the paper's choice of a number (15)
    # several cores for permutations and halves, chunks that settle themselves, the time a command took (39)
    # rows named in one way, what is given to `fit` in one place, linear patterns in the order of a run's (14)
    # time between visits only where it is plainly one, regions that were imputed, sheets of workbooks, the verdict that
    # a model carries, settings of a wrong kind, chances of planned studies by regression (172)
    # disks without locks, files that others are reading, consoles of few letters (20)
    # tables of tens of thousands of people by sums of products; less: one measure of reports, figures nobody drew (22)
    # what a fit does while nothing can be counted; rotations that do not converge are settled once (7)
    # imported models whose severities change nothing are refused (3)
    "statements in src": 18_193,
    "files in src": 130,
    # 1,893 before a table could be looked at without a fit (190); a file for each role of a column: imports (40)
    # a base class of fields, diagnosis and visit as fields, guesses of roles for all interfaces (55)
    # readers of other programs' folders (243); columns that are no regions, units, ids, several tables (510)
    # totals and copies that are left out (30)
    # columns of follow-up (60)
    # scores by name, means beside their parts, FastSurfer without surfaces (40)
    # rows of a table named in one way (3)
    # dates, waves and ages of visits; spellings of sex (34); dates as covariates, categories read once (5)
    "statements of tables, cohort and schema": 3_024,
    # 12,370 before all that; 24 are scripts; linear models, spectrum, settings (650); other systems and disks (72);
    # visits, follow-up and comparisons recomputed, large tables, tables as clinics have them (62)
    # 18,123 before what is arranged alike was arranged once; of 223 mutants none is noticed less
    # 15,785 before damaged files were tried in one process, and killed runs of pages where pages are tested
    "statements in tests": 15_471,
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
    """Say whether a statement is a docstring."""
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
    """Give each function's lines without its docstring, and where it is."""
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
    """Count the parameters of the function that has most; constructors of estimators are made by dataclasses."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return max((n_parameters(one) for one in functions if one.name not in MANY_PARAMETERS), default=0)


def main() -> int:
    """Print the table; return 1 where a limit is exceeded."""
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
