"""Writes that fail: the run ends well or says what is wrong, never says more than is there, and can go on."""

import builtins
import errno
import io
import os
from pathlib import Path

import pytest
from rindices.run.folder import status_of

from rindices import files
from tests.survival.conftest import assert_same, fit

RESULTS = ("model.safetensors", "r_indices.csv", "patterns.csv", "selection.csv", "r_indices.png", "report.html")
KINDS = ("data-*.safetensors", "data-*.unfinished", "plan.json", "run.toml", "summary.json", "holder.json", *RESULTS)
ERRORS = {"full": errno.ENOSPC, "broken": errno.EIO, "forbidden": errno.EACCES}


class Fault:
    """Makes writes of files of one kind fail when they are opened, when they are flushed, or when they are renamed."""

    def __init__(self, monkeypatch, kind, stage, number, times):
        self.kind, self.stage, self.number, self.left = kind, stage, number, times
        for module in (builtins, io):
            monkeypatch.setattr(module, "open", self._before(module.open, "open", self._writes))
        monkeypatch.setattr(files, "_flush", self._before(files._flush, "flush", self._half))
        monkeypatch.setattr(Path, "replace", self._before(Path.replace, "rename", lambda *_: True))

    def _before(self, function, stage, condition):
        def faulty(path, *args, **kwargs):
            if self.left and stage == self.stage and self._is_ours(path) and condition(path, *args, **kwargs):
                self.left -= 1
                raise OSError(self.number, os.strerror(self.number), str(path))
            return function(path, *args, **kwargs)

        return faulty

    def _is_ours(self, path):
        if not isinstance(path, str | Path):
            return False
        name = Path(path).name.removeprefix(".")
        return Path(name).match(f"{self.kind}*.partial")

    @staticmethod
    def _writes(path, mode="r", *_, **__):
        return any(letter in mode for letter in "wax+")

    @staticmethod
    def _half(path):
        os.truncate(path, path.stat().st_size // 2)
        return True


def check_agreement(outcome, out):
    """Exit code, last line, status and report say the same."""
    last = outcome.output.splitlines()[-1]
    page = (out / "report.html").read_text(encoding="utf-8") if (out / "report.html").exists() else ""
    assert "Traceback" not in outcome.output
    assert isinstance(outcome.exception, SystemExit | None)
    if outcome.exit_code == 0:
        assert (status_of(out), last[:5]) == ("done", "Done ")
        assert all((out / name).exists() for name in RESULTS)
        assert "This run failed" not in page
    else:
        assert (outcome.exit_code, last[:14]) == (3, "Failed. Repeat")
        assert status_of(out) in ("failed", "unfinished", None)
        assert not page or "This run failed" in page
        assert any(os.strerror(number) in outcome.output for number in ERRORS.values())


def check(table, out, expected, kind, stage, number, times):
    with pytest.MonkeyPatch.context() as monkeypatch:
        fault = Fault(monkeypatch, kind, stage, number, times)
        outcome = fit(table, "--out", out)
    assert fault.left < times, "nothing failed"
    check_agreement(outcome, out)
    if outcome.exit_code == 0:
        assert_same(out, expected)
    again = fit(table, "--out", out)
    check_agreement(again, out)
    assert again.exit_code == 0
    assert_same(out, expected)
    assert not list(out.rglob("*.partial"))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk(table, tmp_path, faultless, kind):
    stage = "flush" if kind != "r_indices.png" else "rename"
    check(table, tmp_path / "run", faultless, kind, stage, errno.ENOSPC, 1_000_000)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("times", [1, 1_000_000], ids=["once", "always"])
@pytest.mark.parametrize("number", ERRORS.values(), ids=ERRORS.keys())
@pytest.mark.parametrize("stage", ["open", "flush", "rename"])
@pytest.mark.parametrize("kind", KINDS)
def test_any_fault_of_any_write(table, tmp_path, faultless, kind, stage, number, times):
    if stage == "flush" and kind == "r_indices.png":
        pytest.skip("a picture is not flushed")
    check(table, tmp_path / "run", faultless, kind, stage, number, times)


@pytest.mark.usefixtures("short")
def test_a_folder_that_can_no_longer_be_flushed_is_no_reason_to_fail(table, tmp_path, faultless, monkeypatch):
    def flush(path, flush=files._flush):
        if path.is_dir():
            raise OSError(errno.EINVAL, "Invalid argument")
        flush(path)

    monkeypatch.setattr(files, "_flush", flush)
    outcome = fit(table, "--out", tmp_path / "run")
    assert outcome.exit_code == 0, outcome.output
    assert_same(tmp_path / "run", faultless)


@pytest.mark.usefixtures("short")
def test_what_was_trained_is_kept_when_the_folder_becomes_read_only(table, tmp_path, faultless, monkeypatch):
    out = tmp_path / "run"

    def access(path, mode, access=os.access):
        return not list(out.glob("journal/data-*.safetensors")) and access(path, mode)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "access", access)
        outcome = fit(table, "--out", out)
    assert outcome.exit_code == 2
    assert "cannot be written to" in outcome.output
    assert status_of(out) == "unfinished"
    assert list(out.glob("journal/data-*.safetensors"))  # the other one may have been on its way
    assert fit(table, "--out", out).exit_code == 0
    assert_same(out, faultless)
