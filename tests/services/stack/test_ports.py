"""Every port that a running stack listens on: none answers what was sent to another name, or by another site's page."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import httpx
import psutil
import pytest

from dovetail.services.stack import Stack
from tests.services.serve.page.shop import opened_shop

pytestmark = pytest.mark.services
PATHS = ("/", "/health", "/healthz", "/readyz", "/metrics", "/subjects", "/openapi.json", "/jobs/")
COMMANDS = ("/commands", "/v1/sql", "/subjects/s/versions")
_PATIENCE_S = 5.0
_LOOK_S = 0.2


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """With a lookup query at work, which has a process of its own."""
    with opened_shop(tmp_path_factory.mktemp("ports")) as shop:
        while not httpx.get(f"{shop.stack.endpoint('worker')}/readyz").json().get("queries"):
            time.sleep(_LOOK_S)
        yield shop.stack


def listening(stack: Stack) -> set[tuple[str, int]]:
    """Addresses of all processes of the stack, and of those that they have started."""
    roots = [psutil.Process(one.pid) for one in stack.status() if one.pid is not None]
    processes = [one for root in roots for one in (root, *root.children(recursive=True))]
    return {
        (found.laddr.ip, found.laddr.port)
        for one in processes
        for found in one.net_connections(kind="inet")
        if found.status == psutil.CONN_LISTEN
    }


def answer(address: tuple[str, int], method: str, path: str, *headers: str) -> str:
    """The first line; '' where what listens there speaks no HTTP, or does not answer."""
    head = "\r\n".join((f"{method} {path} HTTP/1.1", *headers, "Connection: close", "Content-Length: 0", "", ""))
    host = {"::": "::1", "0.0.0.0": "127.0.0.1"}.get(address[0], address[0])
    try:
        with socket.create_connection((host, address[1]), _PATIENCE_S) as connection:
            connection.sendall(head.encode())
            return connection.recv(1024).partition(b"\r\n")[0].decode(errors="replace")
    except OSError:
        return ""


def served(line: str) -> bool:
    return line.startswith("HTTP/1") and line.split()[1][0] == "2"


def test_no_port_answers_what_another_site_has_sent(whole: Stack) -> None:
    ports = listening(whole)
    own = {port for port in ports if any(served(answer(port, "GET", path, f"Host: {port[0]}")) for path in PATHS)}
    http = {whole.endpoint(name).rpartition(":")[2] for name in ("spark", "worker", "serve", "registry")}
    assert {str(port) for _, port in own} == http
    foreign = [
        ("Host: evil.example",),
        ("Host: 127.0.0.1", "Origin: http://evil.example"),
        ("Host: 127.0.0.1", "Sec-Fetch-Site: cross-site"),
    ]
    for port in ports:
        speaks_http = port in own
        for headers in foreign:
            for method, paths in (("GET", PATHS), ("POST", COMMANDS)):
                # What does not speak HTTP is asked once by each method: it keeps who asks waiting.
                for path in paths if speaks_http else paths[:1]:
                    assert not served(answer(port, method, path, *headers)), (port, headers, method, path)


def test_the_processes_of_lookup_queries_listen_at_no_port(whole: Stack) -> None:
    [pid] = [one.pid for one in whole.status() if one.name == "worker"]
    assert pid is not None
    below = psutil.Process(pid).children(recursive=True)
    assert len(below) > 1
    assert [found for one in below for found in one.net_connections("inet") if found.status == psutil.CONN_LISTEN] == []
