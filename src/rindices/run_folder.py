"""The folder that a run leaves behind: written beside, and put in place only when complete."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rindices.errors import InputError, listed
from rindices.files import check_writable

_MARK = "summary.json"
# All that a run leaves in its folder; whatever else is there belongs to the user.
_OURS = frozenset(
    {"model.safetensors", "r_indices.csv", "r_indices.png", "patterns.csv", "selection.csv", "run.toml", "report.html"}
    | {"truth.csv", _MARK}
)


def check_free(out: Path, *, overwrite: bool = False) -> None:
    """Refuse, before any work is done, a folder that cannot be written or that holds something else."""
    if out.is_file():
        raise InputError(f"{out} is a file, but a folder is needed.\nChoose another folder with --out.")
    strangers = sorted(path.name for path in out.iterdir() if path.name not in _OURS) if out.is_dir() else []
    if strangers:
        raise InputError(
            f"The folder {out} already holds other files: {listed(strangers)}.\nChoose another folder with --out."
        )
    if (out / _MARK).is_file() and not overwrite:
        raise InputError(
            f"The folder {out} already holds a run.\nChoose another folder with --out, or replace it with --overwrite."
        )
    check_writable(out / _MARK)


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Give a folder to write into; it becomes `out`, replacing an earlier run, only if nothing went wrong."""
    out = out.absolute()
    beside = out.with_name(f".{out.name}.{os.getpid()}.partial")
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    beside.mkdir(parents=True)
    try:
        yield beside
        if out.exists():
            out.rename(old)
        try:
            beside.rename(out)
        except OSError:
            if old.exists():
                old.rename(out)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write JSON that every reader accepts: what is not a number becomes null."""
    path.write_text(json.dumps(_plain(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def toml_text(sections: dict[str, dict[str, Any]]) -> str:
    """Return tables of plain values as TOML; missing values become comments.

    Examples
    --------
    >>> print(toml_text({"training": {"seed": 0, "covariates": ["age"], "steps": None}}))
    [training]
    seed = 0
    covariates = ["age"]
    # steps: not given
    <BLANKLINE>
    """
    lines = []
    for section, values in sections.items():
        lines.append(f"[{section}]")
        for name, value in values.items():
            # A TOML string, number, truth value or list of them is written as in JSON.
            written = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
            lines.append(f"# {name}: not given" if value is None else f"{name} = {written}")
        lines.append("")
    return "\n".join(lines)
