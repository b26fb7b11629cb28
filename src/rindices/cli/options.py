"""What `rindices fit` was asked to do: numbers, ranges, and a `run.toml` to run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from rindices.errors import InputError, listed

_WITH_CONFIG = {"config", "table", "out", "workers", "dask", "models_per_chunk", "report"} | {
    "overwrite",
    "quiet",
    "log_json",
}
_TABLE_KEYS = {"path", "sha256", "id", "diagnosis", "control", "patients", "covariates", "features", "exclude", "unit"}
_OPTION_KEYS = {"n_patterns", "orthogonality", "n_repetitions", "exhaustive", "n_null", "preset", "max_steps"} | {
    "latent",
    "random_state",
}


def replayed(
    context: typer.Context, config: Path, table: Path | None, models_per_chunk: int | None
) -> tuple[dict[str, Any], dict[str, Any], int | None]:
    """Return table, options and plan that a `run.toml` says; options that would change them are refused."""
    from rindices.run_folder import read_settings

    given = [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    others = [f"--{name.replace('_', '-')}" for name in given if name not in _WITH_CONFIG]
    if others:
        raise InputError(
            f"--config runs the same again, so it does not go with {', '.join(others)}.\nLeave out either."
        )
    settings = read_settings(config)
    try:
        source, options = dict(settings["table"]), dict(settings["training"])
        path = Path(source["path"]) if table is None else table
        source = {"exclude": ()} | source | {"path": str(path)}
        for name in ("control", "patients", "unit"):
            source.setdefault(name, None)
        for name in ("orthogonality", "max_steps", "latent"):
            options.setdefault(name, None)
        plan = settings.get("plan", {}).get("models_per_chunk")
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{config} is not the run.toml of a run: {error} is missing.") from error
    unknown = sorted({*source} - _TABLE_KEYS | {*options} - _OPTION_KEYS)
    if unknown:
        raise InputError(f"{config} has settings that are not known: {', '.join(unknown)}.")
    return source, options, models_per_chunk or plan


def numbers(option: str, text: str, kind: type) -> list[Any]:
    """Read ``2-5`` (whole numbers) or ``0.2,0.4``."""
    found: list[Any] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        try:
            found += range(int(low), int(high) + 1) if dash and kind is int else [kind(part.strip())]
        except ValueError as error:
            example = "3, 2,3 or 2-5" if kind is int else "0.8 or 0.2,0.4,0.8"
            raise InputError(f"{option} should be like {example}, found {text!r}.") from error
    if not found:
        raise InputError(f"{option} {text!r} holds no number: the first should not exceed the last.")
    return list(dict.fromkeys(found))


def check_options(options: dict[str, Any]) -> None:
    """Refuse what cannot be trained."""
    from rindices.config import LATENTS, PRESETS

    if options["preset"] not in PRESETS:
        raise InputError(f"There is no preset {options['preset']!r}.\nChoose one of: {', '.join(PRESETS)}.")
    if options["latent"] not in (None, *LATENTS):
        raise InputError(f"--latent should be one of {', '.join(LATENTS)}, found {options['latent']!r}.")
    if not all(1 <= number <= 20 for number in options["n_patterns"]):
        raise InputError(f"--patterns should be from 1 to 20, found {listed(options['n_patterns'])}.")
    if not all(0 <= weight < float("inf") for weight in options["orthogonality"] or []):
        raise InputError(f"--orthogonality should be from 0 on, found {listed(options['orthogonality'])}.")
    if options["n_null"] < 0 or 0 < options["n_null"] < 19:
        raise InputError(
            f"--null should be 0 or at least 19, found {options['n_null']}: with fewer, p never reaches 0.05."
        )
