"""The settings of a run and the versions of the software, as far as ``summary.json`` knows them."""

from typing import Any

from rindices.report.pieces import duration, joined


def settings(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and values of the settings."""
    weights = summary.get("weights") or {}
    done = summary["status"] == "done"
    rows = [
        ("Table", summary.get("source")),
        ("Table's SHA-256", summary.get("input_sha256")),
        # A finished run has these in its headline.
        ("Controls", None if done else summary.get("n_controls")),
        ("Patients", None if done else summary.get("n_patients")),
        ("Regions", None if done else summary.get("n_features")),
        ("Labels of controls", joined(summary.get("control_labels"))),
        ("Labels of patients", joined(summary.get("patient_labels"))),
        ("Covariates removed", joined(summary.get("covariates")) or ("none" if done else None)),
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


def versions(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and versions of the software."""
    return sorted((summary.get("versions") or {}).items())
