"""The application, the options that several commands share, and how their text is read."""

import functools
import inspect
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperGroup

import rindices
from rindices.cli.console_and_exits import console, guarded
from rindices.files import check_writable, refuse_same
from rindices.problems import InputError, Remedy
from rindices.settings import ApplySettings, TableSettings
from rindices.value_kinds import Setting, settings_of

# Suffixes of the files that commands write.
TABLE, PAGE, MODEL = (".csv",), (".html", ".htm"), (".safetensors",)


_OF_NAMES = {
    f"--{one.option}" for kind in (TableSettings, ApplySettings) for one in settings_of(kind) if one.kind.several
}


class _Commands(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the version before anything else is loaded; refuse empty values, and names given twice.

        An empty path would mean the current folder, and an empty list of names would mean none. If a list of names were
        repeated, the last would silently replace the others.
        """
        if args[:1] == ["--version"]:
            console.print(f"rindices {rindices.__version__}")
            ctx.exit()
        apart = [before for before, text in pairwise(["rindices", *args]) if not text.strip()]
        joined = [text.rstrip("= ") for text in args if re.fullmatch(r"--[a-z-]+=\s*", text)]
        if apart or joined:
            ctx.fail(
                f"The value after {[*apart, *joined][0]} is empty. Provide a value, or omit the option. If the value "
                "comes from a shell variable, that variable is empty or not set."
            )
        given = Counter(text.split("=")[0] for text in takewhile(lambda text: text != "--", args))
        if twice := next((name for name in _OF_NAMES if given[name] > 1), None):
            ctx.fail(f"{twice} was given more than once. Give it once, with its values separated by commas.")
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Commands,
    help="R-indices: in how many distinct ways a disease changes the brain, and how severely each person is affected.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """List the option in the help; `_Commands` handles it."""


def argument(help: str, name: str | None = None) -> typer.models.ArgumentInfo:
    """Return an argument without a default, named after the parameter unless `name` is given."""
    return typer.Argument(help=help, show_default=False, metavar=name)


def option(help: str, default: str | bool = False, **limits: int) -> typer.models.OptionInfo:
    """Return an option whose default is described in words, or not shown."""
    return typer.Option(help=help, show_default=default, **limits)  # type: ignore[arg-type]


def check_output(
    path: Path | None, name: str, endings: tuple[str, ...], *inputs: Path, own: Path | None = None
) -> None:
    """Refuse, before any work is done, to overwrite inputs or results of a run, or to write another type of file.

    Parameters
    ----------
    path
        The file to write, if any.
    name
        The setting that named it.
    endings
        Permitted suffixes of the file name.
    inputs
        Files that are read.
    own
        The one result of a run that may be replaced.
    """
    from rindices.record import run_around

    if path is None:
        return
    check_writable(path, name)
    refuse_same(path, *inputs, name=name)
    run = run_around(path)
    if run is not None and (own is None or path.resolve() != own.resolve()):
        raise InputError(
            f"{path} is reserved for the results of the run in {run}.\nChoose another name or folder with ",
            Remedy(name),
            ".",
        )
    if not path.name.casefold().endswith(endings):
        better = Path(path.name.removesuffix(".gz")).with_suffix(endings[0])
        raise InputError(
            Remedy(name),
            f" should be a file name ending in {' or '.join(endings)}, but got {path}.\n"
            f"Other formats are not supported; use {better}, for example.",
        )


def command(name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command: its parameters become options, and a class of settings one option per setting.

    Defaults of settings are those of the class, or of the instance that is the parameter's default;
    ``Annotated[ApplySettings, "id", "join"]`` has options for these settings only.
    """
    return lambda function: app.command(name)(guarded(with_settings(function)))


def with_settings(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function with one parameter per setting, which passes the settings to the given function."""
    own = inspect.signature(function, eval_str=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[Setting]]] = {}
    for one in own.parameters.values():
        kind, *only = get_args(one.annotation) if get_origin(one.annotation) is Annotated else (one.annotation,)
        if isinstance(kind, type) and is_dataclass(kind):
            usual = kind() if one.default is one.empty else one.default
            shown = [about for about in settings_of(kind) if not only or about.name in only]
            groups[one.name] = usual, shown
            parameters += [_parameter(about, getattr(usual, about.name)) for about in shown]
        else:
            parameters.append(one)

    @functools.wraps(function)
    def run(**given: Any) -> None:
        for name, (usual, shown) in groups.items():
            values = {
                about.name: about.read(text) if about.kind.type is str else text
                for about in shown
                if (text := given.pop(about.parameter)) is not None
            }
            given[name] = replace(usual, **values)
        function(**given)

    parameters.sort(key=lambda one: one.default is not one.empty)  # those without a default come first
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _parameter(about: Setting, usual: Any) -> inspect.Parameter:
    """Return the function parameter that Typer turns into an option."""
    kind = about.kind.type
    is_written = usual not in (None, "", ())
    decided: Any = about.kind.write(usual) if kind is str and is_written else usual if is_written else None
    names = [f"--{name}" for name in (about.option, about.also) if name]
    option = typer.Option(
        *(names if usual is False or kind is not bool else []),
        help=about.help,
        show_default=about.unset or is_written,
        min=about.kind.least,
        max=about.kind.most,
    )
    annotation = Annotated[kind if is_written else kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(about.parameter, inspect.Parameter.KEYWORD_ONLY, default=decided, annotation=annotation)


def given_options(context: typer.Context, *kinds: type) -> list[str]:
    """Return the options given on the command line that are settings of these classes."""
    return [
        f"--{about.option}"
        for kind in kinds
        for about in settings_of(kind)
        if str(context.get_parameter_source(about.parameter)).endswith("COMMANDLINE")
    ]


Model = Annotated[Path, argument("The model.safetensors file from a finished run.")]
