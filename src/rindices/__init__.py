"""R-indices: in how many distinct ways a disease changes the brain, and how severely each person is affected."""

from importlib import import_module
from typing import Any

__version__ = "0.3.0"

# Loaded when first used: reading and checking a table must not wait for the training engine.
_HOMES = {
    "Cohort": "rindices.cohort",
    "ContrastiveFactors": "rindices.estimator",
    "Correction": "rindices.presets",
    "InputError": "rindices.problems",
    "OutputSettings": "rindices.settings",
    "SearchSettings": "rindices.settings",
    "SurrealGAN": "rindices.estimator",
    "SurrealGANSearch": "rindices.search",
    "TableSettings": "rindices.settings",
    "fit_table": "rindices.run.fit_table",
    "load_model": "rindices.estimator",
    "make_cohort": "rindices.cohort",
    "make_report": "rindices.pages.report",
    "read_cohort": "rindices.cohort",
    "simulate_cohort": "rindices.simulate",
    "write_report": "rindices.pages.report",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rindices' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
