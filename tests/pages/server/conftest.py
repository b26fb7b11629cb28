"""A folder with a table, two runs and a model, and an HTTP client in place of a browser."""

import contextlib
import shutil
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest
import uvicorn

from rindices.cli.console_and_exits import on_command_line
from rindices.cli.results import _PROGRAM as PROGRAM
from rindices.pages.server.addresses import make_app
from tests import longevity
from tests.pages.conftest import browser  # noqa: F401 (a fixture)

TOKEN = "a-token"
PATIENCE = 300  # seconds; a busy machine should not fail the tests
HERE = Path(longevity.__file__).parent


@pytest.fixture
def folder(tmp_path):
    """Return a folder such as a user would have."""
    folder = tmp_path / "study"
    folder.mkdir()
    for name in ("finished", "interrupted"):
        shutil.copytree(HERE / "runs" / name, folder / name)
    shutil.copy(HERE / "cohort.csv", folder)
    shutil.copy(HERE / "people.csv", folder / "new.csv")
    shutil.copy(HERE / "frozen" / "linear" / "model.safetensors", folder / "three.safetensors")
    (tmp_path / "secret.csv").write_text("participant_id\nsub-1\n")
    return folder


class Browser(httpx.Client):
    """A client that retries while a page is being prepared, as a browser does."""

    def get(self, *args, **options):
        while (answer := super().get(*args, **options)).status_code == 202:
            assert "Reading and drawing" in answer.text
            time.sleep(0.05)
        return answer


@pytest.fixture
def client_of():
    """Return a function that serves a folder to a client, which is logged in unless it is a stranger."""
    with contextlib.ExitStack() as ends:

        def opened(folder, program=PROGRAM, *, stranger=False):
            listening = ends.enter_context(socket.create_server(("127.0.0.1", 0)))
            port = listening.getsockname()[1]
            app = make_app(folder, port, TOKEN, wording=on_command_line, program=program)
            server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
            thread = threading.Thread(target=server.run, args=[[listening]])
            thread.start()
            ends.callback(thread.join)
            ends.callback(setattr, server, "should_exit", True)
            while not server.started:
                time.sleep(0.01)
            own = {"base_url": f"http://127.0.0.1:{port}", "headers": {"origin": f"http://127.0.0.1:{port}"}}
            client = ends.enter_context(Browser(**own, follow_redirects=True, timeout=PATIENCE))
            if not stranger:
                client.get("/enter", params={"token": TOKEN}).raise_for_status()
            return client

        yield opened


@pytest.fixture
def client(client_of, folder):
    """Return a client that is logged in."""
    return client_of(folder)
