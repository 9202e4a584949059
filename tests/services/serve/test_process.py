"""The process itself: real connections, TLS, large bodies, slow clients, signals."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import orjson
import pytest

from dovetail.runtime.packages import PACKAGE_ROOT
from dovetail.services.role import Role
from dovetail.services.serve.connections import MOST_WAITING
from dovetail.services.serve.security_middleware import PAGE_HEADER
from tests.servers.certificates import write_certificates
from tests.services.serve.world import PLAIN, World, error_of, lines_of

LARGE = 100 << 20


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_100_mb_of_sql_are_refused_before_they_are_read(world: World) -> None:
    with world.listening() as address, httpx.Client(base_url=address, timeout=60) as client:
        declared = client.post("/v1/sql", content=b"x" * LARGE, headers=PLAIN)
        pieces = client.post("/v1/sql", content=(b"SELECT 1; " * 6554 for _ in range(LARGE >> 16)), headers=PLAIN)
        for response in (declared, pieces):
            assert response.status_code == 413
            assert "DOVETAIL_SERVE_BODY_BYTES" in error_of(response)["fix"]
        assert client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN).status_code == 200


def test_curl(world: World, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    assert curl, "the test needs curl"
    with world.listening() as address:

        def run(*arguments: str) -> str:
            command = [curl, "--silent", *arguments, f"{address}/v1/sql"]
            return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

        found = run("--header", "Content-Type: text/plain", "--data-binary", "SELECT 1 AS a")
        assert found.splitlines()[1] == '{"row":{"a":1}}'
        (tmp_path / "large.sql").write_bytes(b"x" * LARGE)
        assert "DOVETAIL_SERVE_BODY_BYTES" in run(
            "-H", "Content-Type: text/plain", "-T", str(tmp_path / "large.sql"), "-X", "POST"
        )
        assert run("--data", "SELECT 1 AS a") == found


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with World(tmp_path, serve_body_s=0.2).listening() as address, connected(address) as client:
        client.sendall(request(f"Content-Length: 10\r\n{CONTENT}") + b"SEL")
        assert client.recv(100).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("body", [b"Content-Length: 100000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
def test_the_rest_of_a_refused_body_is_not_waited_for(tmp_path: Path, body: bytes) -> None:
    with World(tmp_path, serve_body_s=0.3).listening() as address, connected(address) as client:
        client.sendall(b"POST /health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + body)
        assert client.recv(100).startswith(b"HTTP/1.1 405 ")
        assert ends(client, dripping=b"1\r\nx\r\n")


def test_headers_that_do_not_come_are_not_waited_for(tmp_path: Path) -> None:
    with World(tmp_path, serve_body_s=0.3).listening() as address:
        with connected(address) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: 127")
            answer = client.recv(4096)
            assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
            assert b"DOVETAIL_SERVE_BODY_S" in answer
            assert client.recv(1) == b""
        with connected(address) as silent:
            assert silent.recv(1) == b""
        with connected(address) as second:
            second.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert second.recv(4096).startswith(b"HTTP/1.1 200 ")
            assert ends(second, dripping=b"G")


def ended(client: socket.socket) -> bool:
    """Whether the server has closed it; with a reset where something it had sent was not read yet."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def ends(client: socket.socket, dripping: bytes) -> bool:
    """Whether the connection ends though something comes again and again."""
    client.settimeout(0.1)
    for _ in range(100):
        try:
            client.sendall(dripping)
            if client.recv(4096) == b"":
                return True
        except TimeoutError:
            continue
        except ConnectionError:
            return True
    return False


def test_who_asks_nothing_shuts_nobody_out(tmp_path: Path) -> None:
    with World(tmp_path, serve_tails=1).listening() as address, ExitStack() as opened:
        idle = [opened.enter_context(connected(address)) for _ in range(3 * MOST_WAITING)]
        for one in idle:
            one.sendall(b"GET /health")
        assert httpx.get(f"{address}/health", timeout=30).status_code == 200
        assert ended(idle[0])
        idle[-1].sendall(b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert idle[-1].recv(100).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    ],
    ids=["TLS", "no host", "two lengths", "a length below 0"],
)
def test_what_is_no_request_is_told_so(world: World, sent: bytes) -> None:
    with world.listening() as address, connected(address) as client:
        client.sendall(sent)
        head, _, body = b"".join(iter(lambda: client.recv(65_536), b"")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert {*orjson.loads(body)["error"]} >= {"what", "where", "fix"}


CONTENT = "Content-Type: text/plain\r\n"


def request(headers: str) -> bytes:
    return f"POST /v1/sql HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n".encode()


def connected(address: str) -> socket.socket:
    url = httpx.URL(address)
    client = socket.create_connection((url.host, url.port or 0))
    client.settimeout(30)
    return client


def test_a_slow_reader_slows_nobody_and_is_cut_off(tmp_path: Path) -> None:
    world = World(tmp_path, serve_rows=10_000_000, serve_send_s=4, serve_statements=1)
    text = b"SELECT x, 'a text that makes the row longer' AS t FROM (SELECT 1 AS a) ARRAY JOIN range(400000) AS x"
    with world.listening() as address, connected(address) as slow, httpx.Client(base_url=address, timeout=30) as client:
        slow.sendall(request(f"Content-Length: {len(text)}\r\n{CONTENT}") + text)
        assert slow.recv(10)
        # Its place is free once its rows are there, long before it has taken them or is cut off.
        sent_s = time.monotonic()
        while client.post("/v1/sql", content="SHOW VIEWS", headers=PLAIN).status_code != 200:
            assert time.monotonic() - sent_s < 3
            time.sleep(0.02)
        time.sleep(6)  # longer than it may take nothing
        assert client.get("/health").json() == {"healthy": True}
        size = 0
        try:
            while chunk := slow.recv(1 << 20):
                size += len(chunk)
        except ConnectionResetError:
            pass
        assert size < 400_000 * len(text) // 4


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The service as a process of its own, with TLS and a broker that is away."""
    write_certificates(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    given = {
        "DOVETAIL_DATA_DIR": str(tmp_path),
        "DOVETAIL_BROKERS": "127.0.0.1:1",
        "DOVETAIL_BROKER_TIMEOUT_S": "0.5",
        "DOVETAIL_SERVE_PORT": str(port),
        "DOVETAIL_SERVE_TLS_CERTIFICATE": str(tmp_path / "server.pem"),
        "DOVETAIL_SERVE_TLS_KEY": str(tmp_path / "server.key"),
    }
    command = [sys.executable, "-m", "dovetail.services.serve"]
    with subprocess.Popen(
        command, cwd=PACKAGE_ROOT, env=os.environ | given, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "listening at" in line:
                break
        yield process, port
        process.kill()


def test_tls_and_an_orderly_end(started: tuple[subprocess.Popen[str], int], world: World, tmp_path: Path) -> None:
    process, port = started
    trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    header = world.token("ann", Role.READER)
    address = f"https://127.0.0.1:{port}"
    with httpx.Client(base_url=address, verify=trusted, timeout=30) as client:
        found = client.post("/v1/sql", content="SELECT 1 AS a", headers=PLAIN | header)
        assert lines_of(found)[1] == {"row": {"a": 1}}
        assert client.get("/health").status_code == 200
        ready = client.get("/ready")
        assert (ready.status_code, ready.json()) == (503, {"ready": False})
        own = {"Origin": address, "Content-Type": "application/sql", PAGE_HEADER: "1"}
        assert client.post("/v1/sql", content="SELECT 1", headers=header | own).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/health", verify=ssl.create_default_context(cafile=str(tmp_path / "unknown.pem")))
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"http://127.0.0.1:{port}/health")
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
