"""From a checkpoint of the authors' package to a model file of ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rindices.cohort import wanted_names
from rindices.errors import InputError, counted, listed, shown
from rindices.estimator import SurrealGAN
from rindices.files import check_writable, refuse_same
from rindices.interop.muse import MUSE72, MUSE72_NAMES, UNIT
from rindices.interop.official import OfficialModel, read_checkpoint
from rindices.judging.agreement import Agreement
from rindices.model.inputs import check_roles
from rindices.schema.contract import Contract, CovariateSpec
from rindices.settings import Names, official

__all__ = ["Imported", "import_command", "import_official"]

_TWO_CODES = frozenset({"sex", "gender"})
# Regions whose controls lie this many sd above 0 are sizes, so that another unit can be told by their medians.
_SIZE_FROM_SD = 3


@dataclass(frozen=True)
class Imported:
    """What `import_command` did.

    Attributes
    ----------
    path
        The model file.
    entry, entries
        The entry that was taken, and all there are.
    n_regions, n_patterns
        Of the model.
    covariates
        Names and ranges, such as ``age (59.76 to 90.06)``.
    unit
        Unit of the regions, if known.
    """

    path: Path
    entry: int
    entries: tuple[int, ...]
    n_regions: int
    n_patterns: int
    covariates: tuple[str, ...]
    unit: str | None


def import_command(
    file: str | Path, out: str | Path, *, features: Names, covariates: Names = None, entry: int | None = None
) -> Imported:
    """Import a checkpoint and write the model file; see `import_official`.

    Parameters
    ----------
    file
        The checkpoint.
    out
        The model file to write.
    features, covariates, entry
        As in `import_official`.

    Returns
    -------
    Imported
        What there is to tell the user.
    """
    file, out = Path(file), Path(out)
    check_writable(out)
    refuse_same(out, file)
    source = read_checkpoint(file, entry)
    model = _as_model(source, features, covariates)
    contract = model.contract_
    return Imported(
        path=model.save(out),
        entry=source.entry,
        entries=source.entries,
        n_regions=source.n_regions,
        n_patterns=source.n_patterns,
        covariates=tuple(
            f"{spec.name} ({shown(spec.minimum)} to {shown(spec.maximum)})" for spec in contract.covariates
        ),
        unit=contract.unit,
    )


def import_official(
    path: str | Path, features: Names, covariates: Names = None, entry: int | None = None
) -> SurrealGAN:
    """Return a checkpoint of the authors' package as a fitted model. Nothing in the file is run.

    Parameters
    ----------
    path
        The checkpoint.
    features
        Names of the regions in the checkpoint's order: names, comma-separated text, a file with one name a line, or
        ``"muse72"`` for the published models (see `rindices.interop.muse`).
    covariates
        Names of the covariates in the checkpoint's order; for the published models ``sex,age``.
    entry
        Number of the entry; it may be left out if there is only one.

    Returns
    -------
    SurrealGAN
        A fitted model with one repetition. Its patterns stay in the authors' order.

    Raises
    ------
    InputError
        If the file cannot be used, or the names do not fit it.
    """
    return _as_model(read_checkpoint(path, entry), features, covariates)


def _as_model(source: OfficialModel, features: Names, covariates: Names) -> SurrealGAN:
    contract = _contract(source, features, wanted_names(covariates))
    preset = replace(official(), name=f"official, imported entry {source.entry}")
    if isinstance(rate := source.options.get("lr"), float) and 0 < rate < 1:
        preset = replace(preset, rates=preset.rates._replace(generator=rate))
    model = SurrealGAN(source.n_patterns, n_repetitions=1, preset=preset)
    fitted = {
        "preset": preset,
        "contract": contract,
        "models": source.models,
        "preprocessing": source.preprocessing(tuple(spec.name for spec in contract.covariates)),
        "members": [0],
        "left_out": {},
        "agreement": Agreement(np.nan, np.nan, np.nan),
        "correlation": source.correlation(),
        "step": source.entry if source.n_updates is None else source.n_updates,
        "reliability": (None, ""),
        "seed": None,  # the authors' random numbers are not known
        "n_features_in": source.n_regions,
        "feature_names_in": np.array(contract.features, dtype=object),
    }
    for name, value in fitted.items():
        setattr(model, f"{name}_", value)
    return model


def _contract(source: OfficialModel, features: Names, covariates: tuple[str, ...]) -> Contract:
    regions, unit = _regions(source, features)
    specs = _covariates(source, covariates)
    check_roles(regions, [*covariates, Contract.id_column, Contract.diagnosis_column])
    typical = source.typical
    is_size = (source.scaler.mean > _SIZE_FROM_SD * source.scaler.sd) & (typical > 0)
    # The training people are not in the file, so their ranges are not known.
    unknown = (None,) * len(regions)
    return Contract(
        features=regions,
        feature_minimum=unknown,
        feature_median=tuple(value if size else None for value, size in zip(typical.tolist(), is_size, strict=True)),
        feature_maximum=unknown,
        covariates=specs,
        unit=unit,
    )


def _regions(source: OfficialModel, features: Names) -> tuple[tuple[str, ...], str | None]:
    is_muse = isinstance(features, str) and features.strip().casefold() == MUSE72
    names = MUSE72_NAMES if is_muse else wanted_names(features)
    if len(names) != source.n_regions:
        raise InputError(
            f"The checkpoint has {counted(source.n_regions, 'region')}, but {counted(len(names), 'different name')} "
            f"{'was' if len(names) == 1 else 'were'} given: {listed(names) or 'none'}.\n"
            "Name all regions in the checkpoint's order with --features, or give --features muse72 for the authors' "
            "published models."
        )
    return names, UNIT if is_muse else None


def _covariates(source: OfficialModel, names: tuple[str, ...]) -> tuple[CovariateSpec, ...]:
    ranges = list(zip(source.covariate_minimum.tolist(), source.covariate_maximum.tolist(), strict=True))
    told = ", ".join(f"{shown(low)} to {shown(high)}" for low, high in ranges)
    if len(names) != len(ranges):
        expected = f"{counted(len(ranges), 'covariate')} (with the ranges {told})" if ranges else "no covariates"
        raise InputError(
            f"The checkpoint was corrected for {expected}, but {len(names) or 'none'} "
            f"{'was' if len(names) == 1 else 'were'} named.\n"
            + ("Name them in the checkpoint's order with --covariates." if ranges else "Leave out --covariates.")
        )
    specs = []
    for name, (low, high) in zip(names, ranges, strict=True):
        coded, is_age = name.casefold() in _TWO_CODES, name.casefold() == "age"
        if (is_age and high <= 1) or (coded and high - low > 1):
            raise InputError(
                f"{name!r} cannot have the range {shown(low)} to {shown(high)}: the names are in another order than in "
                f"the checkpoint.\nThe ranges there are {told}. Change the order in --covariates."
            )
        specs.append(CovariateSpec(name, minimum=low, maximum=high, codes=(low, high) if coded else None))
    return tuple(specs)
