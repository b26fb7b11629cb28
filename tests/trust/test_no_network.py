"""Nothing asks for anything beyond this machine."""

import shutil
import socket
import subprocess
import sys

import pytest

from tests.test_cli import TINY, small_table
from tests.trust.watch import watching


def test_the_watch_closes_the_network(monkeypatch):
    with watching(monkeypatch) as watch:
        with pytest.raises(ConnectionError):
            socket.create_connection(("127.0.0.1", 9))
        with pytest.raises(ConnectionError), socket.socket() as one:
            one.bind(("0.0.0.0", 0))
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            with pytest.raises(ConnectionError):
                one.connect(("127.0.0.1", 9))
    assert [event for event, *_ in watch.connections] == ["socket.getaddrinfo", "socket.bind", "socket.connect"]


SCRIPT = """
import socket, sys
try:
    socket.create_connection(("192.0.2.1", 80), timeout=2)
except OSError as error:
    assert error.errno in (101, 113), error  # unreachable: there is no way out
else:
    raise SystemExit("this process has a network")
from rindices.cli import app
app()
"""


@pytest.mark.slow
def test_a_program_without_a_network(tmp_path):
    """What libraries ask for beneath Python is not seen by the watch: here there is nothing to be asked."""
    alone = [shutil.which("unshare") or "unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("processes without a network cannot be started here")
    small_table().to_csv(tmp_path / "table.csv", index=False)
    for command in (
        ["fit", "table.csv", "--out", "run", *TINY],
        ["apply", "run/model.safetensors", "table.csv", "--out", "new.csv", "--report", "new.html"],
        ["report", "run"],
        ["demo", "--out", "demo", "--repetitions", "2", "--steps", "10"],
    ):
        line = [*alone, sys.executable, "-c", SCRIPT, *command]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
