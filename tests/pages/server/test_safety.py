"""Only the user is served, nothing outside the folder can be reached, and no name is run as code."""

import contextlib
import socket
from operator import length_hint

import httpx
import pytest

from rindices.pages.server import addresses, page
from tests.pages.page import missing
from tests.pages.server.conftest import TOKEN


def test_nothing_is_served_without_the_token(client_of, folder):
    stranger = client_of(folder, stranger=True)
    asked = ("/", "/table?table=cohort.csv", "/files/cohort.csv", "/static/page.js", "/enter", "/enter?token=x")
    answers = {path: stranger.get(path) for path in asked} | {"put": stranger.put("/upload?name=x.csv", content=b"a")}
    assert {path: answer.status_code for path, answer in answers.items() if answer.status_code != 403} == {}
    assert not (folder / "x.csv").exists()


def test_token_works_once_and_becomes_a_strict_cookie(client_of, folder):
    first = client_of(folder, stranger=True)
    enter = f"/enter?token={TOKEN}"
    cookie = first.get(enter).headers["set-cookie"].lower()
    assert not missing(cookie, "httponly", "samesite=strict", "max-age=")  # the login survives closing the browser
    assert [first.get(path).status_code for path in ("/", enter)] == [200, 200]  # the same browser again
    first.cookies.clear()
    assert first.get(enter).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}"])
def test_other_names_of_this_machine_are_refused(client, host):
    assert client.get("/", headers={"host": host.format(port=client.base_url.port)}).status_code == 403
    assert client.get("/", headers={"host": f"localhost:{client.base_url.port}"}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
def test_other_sites_cannot_change_anything(client, folder, origin):
    for method, path in (("PUT", "/upload?name=x.csv"), ("POST", "/stop?run=finished"), ("POST", "/train?out=x")):
        assert client.request(method, path, headers={"origin": origin}).status_code == 403
    assert not (folder / "x.csv").exists()


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.csv", "..%2Fsecret.csv", "%2Fetc%2Fpasswd", "finished/../../secret.csv", "link.csv", ".", ""),
        ".hidden.csv",
    ],
)
def test_nothing_hidden_or_outside_the_folder_is_reached(client, folder, name):
    (folder / ".hidden.csv").write_text("participant_id\nsub-1\n")
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    asked = ["/files/", "/report/", "/table/checked?table=", "/run?run=", "/scored?model=", "/people?run="]
    asked.append("/person?model=")
    if name:
        asked += ["/apply?model=three.safetensors&table=", "/apply?model=", "/table/checked?table=cohort.csv&join="]
    answers = {address: client.get(address + name) for address in asked}
    assert {address for address, answer in answers.items() if answer.status_code not in (400, 404, 405)} == set()
    assert {address for address, answer in answers.items() if "sub-1" in answer.text} == set()


def test_uploads_are_streamed_and_replace_nothing(client, folder):
    def put(name, content=b"x"):
        return client.put("/upload", params={"name": name}, content=content)

    for name, content, kept in (
        ("a.csv", b"x,y\n1,2\n", "a.csv"),
        ("a.csv", b"x,y\n1,2\n", "a.csv"),
        ("a.csv", b"x,y\n3,4\n", "a-2.csv"),
        ("../../b.csv", b"x", "b.csv"),
    ):
        assert put(name, content).json() == {"name": kept}
    assert (folder / "a.csv").read_bytes() == b"x,y\n1,2\n"
    assert not [above for above in folder.parents if (above / "b.csv").exists()]
    long = [f"{'x' * 252}.csv", f"{'é' * 126}.csv"]
    refused = [put(name) for name in ("page.html", "run.sh", "", "summary.json", *long)]
    empty = ["empty.csv", "empty.xlsx", "empty.safetensors"]  # no page could read them
    assert {answer.status_code for answer in [*refused, *(put(name, b"") for name in empty)]} == {400}
    assert ["is too long" in answer.json()["refused"] for answer in refused] == [False] * 4 + [True] * 2
    assert [path for path in folder.iterdir() if path.name.startswith((".", "empty"))] == []


def test_an_internal_error_has_a_page_that_says_so(client_of, folder, monkeypatch):
    monkeypatch.setitem(addresses._PAGES, "/table", lambda desk, request: 1 / 0)
    answer = client_of(folder).get("/table")
    assert (answer.status_code, "Internal error in rindices: ZeroDivisionError" in answer.text) == (500, True)


def test_too_large_uploads_are_cut_off(client, folder, monkeypatch):
    port, cookie = client.base_url.port, "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    head = f"PUT /upload?name=big.csv HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
    with socket.create_connection(("127.0.0.1", port)) as said:  # 2 GB are announced, of which not a byte is read
        said.sendall(f"{head}Cookie: {cookie}\r\nContent-Length: {2 * 2**30}\r\n\r\n".encode())
        assert said.recv(1000).startswith(b"HTTP/1.1 400")
    monkeypatch.setattr(page, "MOST_BYTES", 2**20)
    content = iter([bytes(2**20)] * 2048)  # 2 GB, if all of it were read
    with contextlib.suppress(httpx.TransportError):  # a client that is cut off may not get the response
        assert client.put("/upload?name=big.csv", content=content).status_code == 400
    assert 2048 - length_hint(content) < 128
    assert [path for path in folder.iterdir() if "big" in path.name or path.name.startswith(".")] == []
