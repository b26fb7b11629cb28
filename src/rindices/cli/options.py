"""What `rindices fit` was asked to do: numbers, ranges, and a `run.toml` to run again."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rindices.errors import InputError, listed, shown

if TYPE_CHECKING:
    from rindices.settings import Correction

_WITH_CONFIG = {"config", "table", "out", "workers", "dask", "models_per_chunk", "report"} | {
    "overwrite",
    "quiet",
    "log_json",
    "subgroup_limits",
    "show_ids",
    "figures",
    "bids",
}
_MOST_PATTERNS = 20
CORRECTION = ("smooth", "interactions", "proportion")
# What settings are where a run.toml does not say.
_TABLE_DEFAULTS: dict[str, Any] = {
    "id": "participant_id",
    "diagnosis": "diagnosis",
    "features": None,
    "control": None,
    "patients": None,
    "covariates": (),
    "exclude": (),
    "unit": None,
    "site": None,
    "small_sites": "refuse",
    "visit": None,
    "clinical": (),
    "join": (),
    "dictionary": None,
    "drop_missing": False,
    "drop_outliers": False,
    "smooth": (),
    "interactions": (),
    "proportion": None,
}
_TRAINING_DEFAULTS: dict[str, Any] = {
    "orthogonality": None,
    "exhaustive": False,
    "n_null": 0,
    "preset": "fast",
    "max_steps": None,
    "latent": None,
}
_TRAINING_EXAMPLES: dict[str, Any] = {"n_patterns": [2, 3], "n_repetitions": 10, "random_state": 0}
_GIVE_SETTINGS = "Give the run.toml that a run left in its folder."


def replayed(
    context: typer.Context, config: Path, table: Path | None, models_per_chunk: int | None
) -> tuple[dict[str, Any], dict[str, Any], int | None]:
    """Return table, options and plan that a `run.toml` says; options that would change them are refused."""
    from rindices.cohort.workbooks import file_and_sheet
    from rindices.run.folder import read_settings

    given = [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    others = [f"--{name.replace('_', '-')}" for name in given if name not in _WITH_CONFIG]
    if others:
        raise InputError(
            f"--config runs the same again, so it does not go with {', '.join(others)}.\nLeave out either."
        )
    settings = read_settings(config)
    try:
        source, options = dict(settings["table"]), _TRAINING_DEFAULTS | dict(settings["training"])
        path = Path(source["path"]) if table is None else table
        source = _TABLE_DEFAULTS | source | {"path": str(path)}
        plan = settings.get("plan", {}).get("models_per_chunk")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        lacking = f": {error} is missing" if isinstance(error, KeyError) else ""
        raise InputError(f"{config} is not the run.toml of a run{lacking}.\n{_GIVE_SETTINGS}") from error
    _check_settings(config, source, options)
    if table is None and not file_and_sheet(path)[0].exists():
        raise InputError(
            f"There is no {path}, which {config} names as the table of its run.\n"
            f"Say where the table is now: rindices fit TABLE --config {config} --out FOLDER."
        )
    return source, options, models_per_chunk or plan


def _check_settings(config: Path, source: dict[str, Any], options: dict[str, Any]) -> None:
    """Refuse a `run.toml` that somebody changed, or that another version wrote."""
    unknown = sorted(
        {*source} - {"path", "sha256", *_TABLE_DEFAULTS} | {*options} - {*_TRAINING_EXAMPLES, *_TRAINING_DEFAULTS}
    )
    if unknown:
        raise InputError(
            f"{config} has settings that this version does not know: {', '.join(unknown)}.\n"
            "Use the version that is told under [versions] there, or take them out."
        )
    missing = sorted({*_TRAINING_EXAMPLES} - {*options})
    if missing:
        raise InputError(f"{config} does not say {listed(missing, joiner=' and ')}.\n{_GIVE_SETTINGS}")
    for name, example in (_TRAINING_EXAMPLES | {"n_null": 0, "preset": "fast"}).items():
        if type(options[name]) is not type(example):
            raise InputError(
                f"In {config}, {name} should be like {example!r}, found {options[name]!r}.\n"
                "Correct it, or give the run.toml as the run left it."
            )


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
        turned = ",".join("-".join(reversed(part.strip().split("-"))) for part in text.split(","))
        raise InputError(f"{option} {text!r} holds no number: the smaller one comes first, as in {turned}.")
    return list(dict.fromkeys(found))


def names_of(text: str) -> list[str]:
    """Read names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def clinical_columns(clinical: str, join: list[str], id: str, roles: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the clinical columns and the tables to join; of a table of scores all columns without another role."""
    from rindices.cohort import read_table
    from rindices.cohort.columns import NON_REGION_NAMES, wanted_names
    from rindices.cohort.workbooks import file_and_sheet

    file = file_and_sheet(clinical)[0].name.casefold().removesuffix(".gz")
    if not file.endswith((".csv", ".tsv", ".xlsx", ".xlsm", ".parquet")):
        return list(wanted_names(clinical)), join
    columns = [str(name) for name in read_table(clinical, text_columns=(id,))]
    scores = [name for name in columns if name not in roles and name.casefold() not in NON_REGION_NAMES]
    if not scores:
        raise InputError(f"{clinical} has no clinical scores: all its columns have another role.")
    return scores, [*join, clinical]


def limits_of(text: str) -> tuple[float, float]:
    """Read the two limits of the subgroups."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(f"--subgroup-limits should be two numbers such as 0.4,0.7, found {text!r}.") from error
    if not 0 < low < high < float("inf"):
        raise InputError(f"--subgroup-limits should rise from above 0, such as 0.4,0.7, found {text!r}.")
    return low, high


def corrected(source: dict[str, Any]) -> Correction | None:
    """Return how covariates and sites are to be corrected; nothing where it is by lines alone."""
    from rindices.settings import Correction

    correction = Correction(
        smooth=tuple(source["smooth"]),
        interactions=_pairs(source["interactions"]),
        proportion=source["proportion"],
        site=source["site"],
    )
    return None if correction == Correction() else correction


def covariates_of(source: dict[str, Any]) -> list[str]:
    """Return the covariates, and those that only the correction names."""
    from rindices.cohort.columns import wanted_names

    head_size = [] if source["proportion"] is None else [source["proportion"]]
    pairs = [name for pair in _pairs(source["interactions"]) for name in pair]
    return list(dict.fromkeys([*wanted_names(source["covariates"]), *source["smooth"], *pairs, *head_size]))


def _pairs(interactions: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = [tuple(name.strip() for name in text.split(":")) for text in interactions]
    for text, pair in zip(interactions, pairs, strict=True):
        if len(pair) != 2 or not all(pair) or pair[0] == pair[1]:
            raise InputError(f"--interactions should be pairs of covariates such as age:sex, found {text!r}.")
    return tuple((pair[0], pair[1]) for pair in pairs)


def check_options(options: dict[str, Any]) -> None:
    """Refuse what cannot be trained."""
    from rindices.settings import LATENTS, PRESETS

    if options["preset"] not in PRESETS:
        raise InputError(f"There is no preset {options['preset']!r}.\nChoose one of: {', '.join(PRESETS)}.")
    if options["latent"] not in (None, *LATENTS):
        raise InputError(f"--latent should be one of {', '.join(LATENTS)}, found {options['latent']!r}.")
    beyond = [
        number for number in options["n_patterns"] if not isinstance(number, int) or not 1 <= number <= _MOST_PATTERNS
    ]
    if beyond:
        raise InputError(f"--patterns should be from 1 to {_MOST_PATTERNS}, found {listed(beyond)}.")
    negative = [weight for weight in options["orthogonality"] or [] if not 0 <= weight < float("inf")]
    if negative:
        raise InputError(f"--orthogonality should be from 0 on, found {listed(map(shown, negative))}.")
    if options["n_null"] < 0 or 0 < options["n_null"] < 19:
        raise InputError(
            f"--null should be 0 or at least 19, found {options['n_null']}: with fewer, p never reaches 0.05."
        )
