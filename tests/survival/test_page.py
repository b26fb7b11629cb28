"""A training that the page in the browser started: watched, refused twice, stopped, killed, and gone on with."""

import os
import shutil
import signal
import sys
import time

from rindices.record import worker_of
from tests.pages.server.conftest import TOKEN, client_of  # noqa: F401 (a fixture)
from tests.pages.server.test_pages import watched
from tests.survival.conftest import COMMAND, PATIENCE, assert_same, finished_chunks, status


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    assert condition()


def test_training_survives_being_stopped_and_killed(client_of, table, tmp_path, undisturbed, monkeypatch):  # noqa: F811
    folder = tmp_path / "study"
    folder.mkdir()
    shutil.copy(table, folder)
    client = client_of(folder, (sys.executable, str(COMMAND)))
    client.get("/enter", params={"token": TOKEN})
    asked = {"table": table.name, "chosen": "yes", "patterns": "2-3", "repetitions": "4", "out": "run"}
    client.post("/train", params=asked, follow_redirects=False)
    run = folder / "run"
    wait_for(lambda: worker_of(run) and finished_chunks(run))
    assert "already in progress" in client.post("/train", params=asked).text
    assert "already in progress" in client.post("/continue?run=run").text

    assert "This run is not finished" in client.post("/stop?run=run").text
    assert (worker_of(run), status(run)) == (None, "unfinished")
    kept = finished_chunks(run)

    monkeypatch.setenv("RINDICES_HOLD", ".safetensors 1")
    client.post("/continue?run=run", follow_redirects=False)
    wait_for(lambda: len(finished_chunks(run)) > len(kept))
    os.kill(worker_of(run), signal.SIGKILL)
    wait_for(lambda: worker_of(run) is None)
    assert "This run is not finished" in client.get("/run?run=run").text

    monkeypatch.delenv("RINDICES_HOLD")
    client.post("/continue?run=run", follow_redirects=False)
    seen = watched(client, "run")
    assert seen[-1]["state"] == "done"
    agreed = [row for one in seen for row in one["agreed"]]
    assert max(row["n_models"] for row in agreed) >= 4  # so short a training leaves no sound ones to compare
    assert_same(run, undisturbed)
    assert 'class="verdict' in client.get("/run?run=run").text
