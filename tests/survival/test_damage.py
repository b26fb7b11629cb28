"""Chunk files that were cut or changed between two runs are found, named and trained again."""

import json
import signal

import pytest

from tests.survival.conftest import FINISHED, assert_same, ended, finished_chunks, held, send


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    """Change one bit in the last array of the file."""
    contents = bytearray(path.read_bytes())
    contents[-5] ^= 1
    path.write_bytes(contents)


def empty(path):
    path.write_bytes(b"")


@pytest.fixture
def interrupted(start, tmp_path):
    """Return the folder of a run that was stopped with two chunks finished, and some on their way."""
    out = tmp_path / "run"
    process = held(start("--no-report", hold=(FINISHED, 2)))
    assert len(finished_chunks(out)) >= 2
    send(process, signal.SIGTERM)
    assert ended(process)[0] == 143
    return out


def test_damaged_chunks_are_trained_again_and_named(start, interrupted, undisturbed):
    chunks = sorted((interrupted / "journal").glob("*.safetensors"))
    cut(chunks[0])
    flip(chunks[1])
    for path in (interrupted / "journal").glob("*.unfinished"):
        empty(path)
    code, said, _ = ended(start("--no-report"))
    assert code == 0
    assert_same(interrupted, undisturbed)
    warnings = json.loads((interrupted / "summary.json").read_text())["warnings"]
    for chunk in chunks[:2]:
        assert f"{chunk.name} in the journal was damaged and trained again." in warnings
        assert f"{chunk.name} in the journal was damaged and trained again." in said


def test_a_lost_plan_and_a_damaged_summary_do_not_matter(start, interrupted, undisturbed):
    (interrupted / "journal" / "plan.json").write_text('{"run": ')
    cut(interrupted / "summary.json")
    assert ended(start("--no-report"))[0] == 0
    assert_same(interrupted, undisturbed)
