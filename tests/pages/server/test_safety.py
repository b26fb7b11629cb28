"""Nobody else is served, nothing outside the folder is reached, and no name runs anything."""

import contextlib
import re
import shutil
import socket

import httpx
import pytest

from rindices.pages.server import addresses, page
from tests.pages.page import missing
from tests.pages.server.conftest import TOKEN


def test_nothing_is_served_without_the_token(client_of, folder):
    stranger = client_of(folder)
    for path in ("/", "/table?table=cohort.csv", "/files/cohort.csv", "/static/page.js", "/enter", "/enter?token=x"):
        assert stranger.get(path).status_code == 403, path
    assert stranger.put("/upload?name=x.csv", content=b"a").status_code == 403
    assert not (folder / "x.csv").exists()


def test_token_works_once_and_becomes_a_strict_cookie(client_of, folder):
    first = client_of(folder)
    cookie = first.get("/enter", params={"token": TOKEN}).headers["set-cookie"].lower()
    assert not missing(cookie, "httponly", "samesite=strict")
    assert "max-age=" in cookie  # whoever closes the browser can come back
    assert first.get("/").status_code == 200
    assert first.get("/enter", params={"token": TOKEN}).status_code == 200  # the same browser again
    first.cookies.clear()
    assert first.get("/enter", params={"token": TOKEN}).status_code == 403


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
    "name", ["../secret.csv", "..%2Fsecret.csv", "%2Fetc%2Fpasswd", "finished/../../secret.csv", "link.csv", ".", ""]
)
def test_nothing_outside_the_folder_is_reached(client, folder, name):
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    addresses = [
        f"/files/{name}",
        f"/report/{name}",
        f"/table/checked?table={name}",
        f"/run?run={name}",
        f"/scored?model={name}",
        f"/people?run={name}",
        f"/person?model={name}",
    ]
    if name:
        addresses += [f"/apply?model=three.safetensors&table={name}", f"/apply?model={name}"]
        addresses += [f"/table/checked?table=cohort.csv&join={name}"]
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code in (400, 404, 405), address
        assert "sub-1" not in answer.text


def test_hidden_files_and_files_of_names_are_not_read(client, folder):
    (folder / ".hidden.csv").write_text("participant_id\nsub-1\n")
    assert client.get("/files/.hidden.csv").status_code == 400
    answer = client.get("/table/checked?table=cohort.csv&exclude=@/etc/hostname")
    assert (answer.status_code, "denotes a file" in answer.text) == (400, True)


def test_every_answer_forbids_foreign_and_inline_scripts(client):
    for path in ("/", "/table", "/run?run=finished", "/people?run=finished", "/apply", "/compare", "/nowhere"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert re.search(r"script-src 'self';", policy)
    assert "not a diagnosis" in client.get("/").text.casefold()


def test_names_are_text_wherever_they_are_shown(client, folder):
    table = (folder / "cohort.csv").read_text().splitlines()
    names = table[0].split(",")
    names[-1] = "<script>alert(1)</script>"
    bad = '"><img src=x onerror=alert(2)>.csv'.replace("/", "")
    (folder / bad).write_text("\n".join([",".join(names), *table[1:]]))
    for path in ("/table", "/train", "/apply?model=three.safetensors", "/table/checked"):
        text = client.get(path, params={"table": bad} if path != "/table" else {}).text
        assert not [part for part in ("<script>alert", "<img src") if part in text]
    assert "&lt;script&gt;alert(1)" in text


def test_files_are_not_taken_for_options(client, folder):
    name = "--overwrite --out=cohort.csv"
    shutil.copy(folder / "cohort.csv", folder / name)
    text = client.get("/train", params={"table": name, "out": "next"}).text
    assert "rindices fit &#39;./--overwrite --out=cohort.csv&#39;" in text


def test_uploads_are_streamed_and_replace_nothing(client, folder):
    assert client.put("/upload?name=a.csv", content=b"x,y\n1,2\n").json() == {"name": "a.csv"}
    assert client.put("/upload?name=a.csv", content=b"x,y\n1,2\n").json() == {"name": "a.csv"}
    assert client.put("/upload?name=a.csv", content=b"x,y\n3,4\n").json() == {"name": "a-2.csv"}
    assert (folder / "a.csv").read_bytes() == b"x,y\n1,2\n"
    assert client.put("/upload", params={"name": "../../b.csv"}, content=b"x").json() == {"name": "b.csv"}
    assert not (folder.parent / "b.csv").exists()
    for name in ("page.html", "run.sh", "", "summary.json"):
        assert client.put("/upload", params={"name": name}, content=b"x").status_code == 400
    for name in ("empty.csv", "empty.xlsx", "empty.safetensors"):  # which no page could read
        assert client.put("/upload", params={"name": name}, content=b"").status_code == 400
        assert not (folder / name).exists()
    for name in (f"{'x' * 250}.csv", f"{'é' * 126}.csv"):
        refused = client.put("/upload", params={"name": name}, content=b"x")
        assert (refused.status_code, "longer than 240 bytes" in refused.json()["refused"]) == (400, True)
    assert not list(folder.glob(".*"))


def test_an_internal_error_has_a_page_that_says_so(client_of, folder, monkeypatch):
    monkeypatch.setitem(addresses._PAGES, "/", lambda desk, request: 1 / 0)
    client = client_of(folder)
    client.get("/enter", params={"token": TOKEN})
    answer = client.get("/")
    assert (answer.status_code, "Internal error in rindices: ZeroDivisionError" in answer.text) == (500, True)


def test_too_large_uploads_are_cut_off(client, folder, monkeypatch):
    port, cookie = client.base_url.port, "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    head = f"PUT /upload?name=big.csv HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
    with socket.create_connection(("127.0.0.1", port)) as said:  # 2 GB are announced, and not a byte of them is read
        said.sendall(f"{head}Cookie: {cookie}\r\nContent-Length: {2 * 2**30}\r\n\r\n".encode())
        assert said.recv(1000).startswith(b"HTTP/1.1 413")
    monkeypatch.setattr(page, "MOST_BYTES", 2**20)
    sent = []

    def endless():
        for _ in range(2 * 1024):  # 2 GB, if anybody took it
            sent.append(2**20)
            yield bytes(2**20)

    with contextlib.suppress(httpx.TransportError):  # who is cut off may see nothing else
        assert client.put("/upload?name=big.csv", content=endless()).status_code == 413
    assert sum(sent) < 2**27
    assert not list(folder.glob("*big*"))
    assert not list(folder.glob(".*"))
