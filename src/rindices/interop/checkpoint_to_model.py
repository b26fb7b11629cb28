"""The authors' published checkpoints as ordinary models."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from rindices.estimator import SurrealGAN
from rindices.interop.checkpoint_contents import OfficialModel, read_checkpoint
from rindices.interop.muse import HEAD_SIZE, MUSE72, MUSE72_NAMES, UNIT, is_head_size
from rindices.judging.agreement_and_misfit import Agreement
from rindices.judging.study import check_roles
from rindices.presets import official
from rindices.problems import InputError, Remedy, counted, listed, shown
from rindices.schema import Contract, CovariateSpec
from rindices.schema.role_guesses import SEX_NAMES, kind_of
from rindices.scoring.intervals import fit_curves
from rindices.scoring.severity_and_reference import SeverityScale
from rindices.value_kinds import Names, wanted_names

_OLDEST = 130  # years
_HEADS = ((500.0, 3000.0), (5e5, 3e6))  # mL and mm³
# Regions whose controls lie this many sd above 0 are sizes, so that their medians can reveal another unit.
_SIZE_FROM_SD = 3


def import_official(
    path: str | Path, features: Names, covariates: Names = None, entry: int | None = None
) -> SurrealGAN:
    """Return a checkpoint of the authors' package as a fitted model. Nothing in the file is run.

    Parameters
    ----------
    path
        The checkpoint.
    features
        Names of the regions in the checkpoint's order: names, comma-separated text, a file with one name per line, or
        ``"muse72"`` for the published models (see `rindices.interop.muse`).
    covariates
        Names of the covariates in the checkpoint's order. If not given, they are inferred from their ranges if
        possible: sex, age and the intracranial volume (``MUSE_Volume_702``).
    entry
        Number of the entry; may be omitted if there is only one.

    Returns
    -------
    SurrealGAN
        A fitted model with one repetition. Its patterns stay in the checkpoint's order, except in the published model
        of brain ageing, whose patterns are numbered as in its publication.

    Raises
    ------
    InputError
        If the file cannot be used, or the names do not fit it.
    """
    source = read_checkpoint(path, entry).as_published()
    contract = _contract(source, features, wanted_names(covariates))
    preset = replace(official(), name=f"official, imported entry {source.entry}")
    model = SurrealGAN(source.n_patterns, n_repetitions=1, preset=preset)
    # At the average control: the authors' controls are not in the file, and neither are other repetitions.
    with np.errstate(all="ignore"):
        curves = fit_curves(source.models, np.ones((1, source.n_regions)))
    if not np.isfinite(curves).all():
        raise InputError(
            f"The model in {path} gives R-indices that are either the same at all severities or not finite, so it "
            "cannot be used to score people.\n"
            "Choose another entry or checkpoint."
        )
    fitted = {
        "preset": preset,
        "contract": contract,
        "models": source.models,
        "preprocessing": source.preprocessing(tuple(spec.name for spec in contract.covariates)),
        "members": [0],
        "left_out": {},
        "agreement": Agreement(np.nan, np.nan, np.nan),
        "correlation": source.correlation,
        "step": source.n_updates or source.entry,
        "verdict": (None, origin(source)),
        "n_supported": None,
        "scale": SeverityScale(curves),
        "familiar": None,
        "maps": {},
        "seed": None,  # the authors' seed is not known
        "n_features_in": source.n_regions,
        "feature_names_in": np.array(contract.features, dtype=object),
    }
    for name, value in fitted.items():
        setattr(model, f"{name}_", value)
    return model


def _contract(source: OfficialModel, features: Names, covariates: tuple[str, ...]) -> Contract:
    is_muse = isinstance(features, str) and features.strip().casefold() == MUSE72
    regions = MUSE72_NAMES if is_muse else wanted_names(features)
    if len(regions) != source.n_regions:
        raise InputError(
            f"The checkpoint has {counted(source.n_regions, 'region')}, but {counted(len(regions), 'distinct name')} "
            f"{'was' if len(regions) == 1 else 'were'} given: {listed(regions) or 'none'}.\n"
            f"Name all regions in the checkpoint's order with ",
            Remedy("features"),
            ", or use ",
            Remedy("features", MUSE72),
            " for the authors' published models.",
        )
    check_roles(regions, [*covariates, Contract.id_column, Contract.diagnosis_column])
    # An average control whose covariates are in the middle of their ranges.
    typical = source.scaler.mean + source.effects.sum(axis=0) / 2
    is_size = (source.scaler.mean > _SIZE_FROM_SD * source.scaler.sd) & (typical > 0)
    # The training data are not in the file, so their ranges are not known.
    unknown = (None,) * len(regions)
    return Contract(
        features=regions,
        feature_minimum=unknown,
        feature_median=tuple(value if size else None for value, size in zip(typical.tolist(), is_size, strict=True)),
        feature_maximum=unknown,
        covariates=_covariates(source, covariates),
        unit=UNIT if is_muse else None,
    )


def origin(source: OfficialModel) -> str:
    """Return a note on which published model it is and how its patterns are numbered; "" for others."""
    if source.published is None:
        return ""
    order = source.published.order
    moved = ", ".join(f"r{new} is pattern {old + 1}" for new, old in enumerate(order, start=1) if old + 1 != new)
    numbered = f" Patterns are numbered as in the publication; in the file, {moved}." if moved else ""
    return f"The model was published by the authors of the method ({source.published.title}).{numbered}"


def _covariates(source: OfficialModel, names: tuple[str, ...]) -> tuple[CovariateSpec, ...]:
    ranges = source.covariate_ranges.tolist()
    spans = ", ".join(f"{shown(low)} to {shown(high)}" for low, high in ranges)
    by_range = [_role_of_range(low, high) for low, high in ranges]
    usual = ",".join({"sex": "sex", "age": "age", "head size": HEAD_SIZE}.get(role, "") for role in by_range)
    is_clear = len(set(by_range)) == len(by_range) and "" not in by_range
    names = tuple(usual.split(",")) if is_clear and ranges and not names else names
    in_order = Remedy("covariates", usual) if is_clear else Remedy("covariates")
    if len(names) != len(ranges):
        expected = f"{counted(len(ranges), 'covariate')} (with the ranges {spans})" if ranges else "no covariates"
        raise InputError(
            f"The model was trained on data corrected for {expected}, but {len(names) or 'none'} "
            f"{'was' if len(names) == 1 else 'were'} named.\n",
            *(("Name them in the checkpoint's order with ", in_order) if ranges else ("Omit ", Remedy("covariates"))),
            ".",
        )
    described = [*zip(names, map(_role_of_name, names), ranges, by_range, strict=True)]
    for name, meant, (low, high), role in described:
        if meant and role != meant:
            raise InputError(
                f"Covariate {name!r} cannot range from {shown(low)} to {shown(high)}: these values do not look like "
                f"{_IN_WORDS[meant]}.\n"
                f"The ranges in the checkpoint are {spans}. Name the covariates in this order with ",
                in_order,
                ".",
            )
    return tuple(
        CovariateSpec(name, minimum=low, maximum=high, codes=(low, high) if meant == "sex" else None)
        for name, meant, (low, high), _ in described
    )


_IN_WORDS = {"sex": "two codes", "age": "years", "head size": "a head size"}


def _role_of_range(low: float, high: float) -> str:
    if high - low <= 1:
        return "sex"
    if low >= 0 and high <= _OLDEST:
        return "age"
    return "head size" if any(least <= low and high <= most for least, most in _HEADS) else ""


def _role_of_name(name: str) -> str:
    if name.casefold() in SEX_NAMES:
        return "sex"
    if is_head_size(name) or kind_of(name).suspicion == "head size":
        return "head size"
    return "age" if name.casefold() == "age" else ""
