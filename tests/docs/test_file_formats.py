"""The page on file formats says all that a run writes, and nothing that it does not."""

import json
import re
import tomllib

import pandas as pd
import pytest
from safetensors import safe_open

from tests.docs.given import REGIONS
from tests.docs.pages import text_of

PAGE = "docs/reference/file-formats.md"
# Tables in which a user's own names are columns, too.
_OWN = {"z_scores.csv": set(REGIONS), "analysis/flow.csv": {"impossible value"}}
# Columns that need three repetitions.
_MORE = {"r_indices.csv": {"strangeness"} | {f"severity{k}_{end}" for k in "1M" for end in ("low", "high")}}
_SOMETIMES = {"failure", "recovery"}  # keys of failed runs and of demonstrations


def section(title):
    """Return the lines of the page below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", text_of(PAGE), re.MULTILINE | re.DOTALL)
    return found[1].splitlines()


def named(title):
    """Return the names before the colon in the list of a section."""
    rows = [line for line in section(title) if line.startswith("- `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.partition(": ")[0])}


def _general(columns):
    """Name the scores of the last pattern as the page does."""
    return {re.sub(r"^(r|severity|centile)[2-9](?=$|_)", r"\1M", str(column)) for column in columns}


@pytest.fixture(scope="module")
def tables(finished_run):
    found = {path.relative_to(finished_run).as_posix(): path for path in sorted(finished_run.rglob("*.csv"))}
    return {name: pd.read_csv(path) for name, path in found.items()}


def test_every_table_and_column_is_told(tables):
    assert len(tables) > 12
    for name, table in tables.items():
        own = set(table) - {"participant_id", "visit"} if name == "variables.csv" else _OWN.get(name, set())
        assert _general(set(table) - own) | _MORE.get(name, set()) == named(f"`{name}`"), name


def test_every_file_is_told(finished_run):
    told = named("The run folder")
    written = {path.name + "/" * path.is_dir() for path in finished_run.iterdir()}
    assert written <= told
    assert told - written == {"truth.csv", "figures/", "brain/", "voxelwise/", "journal/"}


def test_every_key_of_the_summary_is_told(finished_run):
    summary = json.loads((finished_run / "summary.json").read_text())
    assert named("`summary.json`") - _SOMETIMES == set(summary)
    told = " ".join(section("`summary.json`"))
    assert all(f"`{key}`" in told for key in summary["evidence"])


def test_every_section_of_the_settings_is_told(finished_run):
    settings = tomllib.loads((finished_run / "run.toml").read_text())
    assert set(re.findall(r"`\[(\w+)\]`", " ".join(section("`run.toml`")))) == set(settings)


def test_every_key_of_a_model_file_is_told(finished_run):
    words = " ".join(section("`model.safetensors`"))
    with safe_open(finished_run / "model.safetensors", framework="numpy") as file:
        metadata, arrays = file.metadata(), list(file.keys())
    assert all(f"`{key}`" in words for key in metadata)
    header = json.loads(metadata["header"])
    assert named("`model.safetensors`") == set(header)
    assert all(f"`{array.partition('.')[0]}.*`" in words for array in arrays)
    assert f"| {metadata['format_version']} |" in words
