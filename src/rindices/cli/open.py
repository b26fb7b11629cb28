"""`rindices open`: the same work in the browser, on this machine only."""

from __future__ import annotations

import sys
import threading
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from rindices.cli.console import console, on_command_line
from rindices.cli.options import command, option
from rindices.problems import InputError

_PROGRAM = (sys.executable, "-c", "from rindices.cli import app; app()")


@command("open")
def open_folder(
    folder: Annotated[Path, typer.Argument(help="Folder of tables and runs.", show_default="this one")] = Path(),
    port: Annotated[int | None, option("Port of this machine.", "a free one", min=1, max=65535)] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Work in the browser, on this machine only.

    Check tables, train, look at results and people, and score new ones; runs are kept in the folder. Prints an address
    that works for one browser. Ctrl-C stops the page, but not a running training.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InputError(f'The page needs {" and ".join(missing)}.\nInstall them with: pip install "rindices[app]"')
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.\nGive the folder of your tables and runs.")
    from rindices.pages.server.addresses import serve

    def ready(address: str) -> None:
        console.print(f"Serving {folder.resolve()} to this machine only (127.0.0.1). Ctrl-C stops.")
        console.print(address, style="bold")
        console.print("The address works once, for one browser: do not pass it on.")
        if browser:
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()

    try:
        serve(folder, port, ready=ready, wording=on_command_line, program=_PROGRAM)
    except KeyboardInterrupt:
        console.print("Stopped. Running trainings continue; rindices open shows them again.")
