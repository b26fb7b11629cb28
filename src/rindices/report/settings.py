"""The settings of a run and the versions of the software, as far as ``summary.json`` knows them."""

from typing import Any

from rindices.report.pieces import duration, joined


def settings(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and values of the settings."""
    correction = summary.get("correction") or {}
    crossed = [" × ".join(str(name) for name in pair) for pair in correction.get("interactions") or []]
    weights = summary.get("weights") or {}
    done, applied = summary["status"] == "done", bool(summary.get("applied"))
    rows = [
        ("Table", summary.get("source")),
        ("Table's SHA-256", summary.get("input_sha256")),
        # A finished run has these in its headline.
        ("Controls", None if done else summary.get("n_controls")),
        ("Patients", None if done else summary.get("n_patients")),
        ("Regions", None if done else summary.get("n_features")),
        ("Labels of controls", joined(summary.get("control_labels"))),
        ("Labels of patients", joined(summary.get("patient_labels"))),
        ("Covariates removed", joined(removed_covariates(summary)) or ("none" if done and not applied else None)),
        ("Covariates with a spline", joined(correction.get("smooth"))),
        ("Interactions removed", joined(crossed)),
        ("Divided by head size", correction.get("proportion")),
        ("Harmonised over sites (ComBat)", correction.get("site")),
        ("Clinical variables", joined(summary.get("clinical"))),
        ("Unit of the measures", summary.get("unit")),
        ("Preset", summary.get("preset")),
        *((f"Weight of {name.replace('_', ' ')}", value) for name, value in weights.items()),
        ("Repetitions", summary.get("repetitions")),
        # The step is chosen by agreement: before the end there is none.
        ("Training steps", summary.get("step") if done else None),
        ("Seed", summary.get("seed")),
        ("Device", summary.get("device")),
        ("Computing time", duration(summary.get("seconds"))),
    ]
    return [(name, str(value)) for name, value in rows if value not in (None, "")]


def removed_covariates(summary: dict[str, Any]) -> list[str]:
    """Return the covariates whose effects were removed by regression: head size and site may have their own way."""
    correction = summary.get("correction") or {}
    own_way = (correction.get("proportion"), correction.get("site"))
    return [str(name) for name in summary.get("covariates") or [] if name not in own_way]


def versions(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and versions of the software."""
    return sorted((summary.get("versions") or {}).items())
