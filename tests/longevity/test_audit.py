"""No answer about vulnerabilities is not a good answer."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parent.parent.parent / "tools" / "audit.py"
SOUND = {"name": "numpy", "version": "2.0.0", "vulns": []}
FLAW = {"id": "CVE-1", "fix_versions": ["3.1.6"], "aliases": [], "description": ""}
AFFECTED = {"name": "jinja2", "version": "3.1.4", "vulns": [FLAW]}
UNKNOWN = {"name": "jax", "skip_reason": "Dependency not found on PyPI and could not be audited: jax (0.8.0)"}
OURS = {"name": "rindices", "skip_reason": "distribution marked as editable"}


@pytest.fixture(scope="module")
def audit():
    spec = importlib.util.spec_from_file_location("audit", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("packages", "code", "words"),
    [
        ([SOUND, OURS], 0, "1 packages checked, 0 affected."),
        ([SOUND, AFFECTED], 1, "jinja2 3.1.4: CVE-1, mended in 3.1.6"),
        ([SOUND, UNKNOWN], 2, "NOT CHECKED: nothing could be learned about 1 packages: jax."),
        ([AFFECTED, UNKNOWN], 1, "NOT CHECKED"),
        ([OURS], 2, "0 packages checked"),
    ],
)
def test_only_a_full_answer_is_a_good_one(audit, packages, code, words):
    found, told = audit.verdict({"dependencies": packages})
    assert found == code
    assert words in told


def test_a_service_that_does_not_answer_is_told(audit, monkeypatch, capsys):
    monkeypatch.setattr(audit, "COMMAND", ["-c", "raise SystemExit('ConnectionError: no route')"])
    monkeypatch.setattr("sys.argv", ["audit.py"])
    assert audit.main() == 2
    assert "could not be asked.\nConnectionError: no route" in capsys.readouterr().out
