"""The client against the registry of the stack, and against servers that are away, or give nonsense."""

from __future__ import annotations

import gzip
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from dovetail.broker.address import RegistryAddress
from dovetail.broker.registry.client import SchemaRegistryReader
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.errors import ServiceUnavailable, SourceRefused
from tests.servers.schema_registry import address, schema_registry

AVRO = SchemaDefinition("AVRO", '{"type":"record","name":"r","fields":[{"name":"a","type":"long"}]}')
_MORE = ',{"name":"%s","type":["null","long"],"default":null}'
LATER = SchemaDefinition("AVRO", AVRO.text.replace("}]", "}" + _MORE % "b" + "]"))
LAST = SchemaDefinition("AVRO", LATER.text.replace("}]", "}" + _MORE % "c" + "]"))
OTHER = SchemaDefinition("AVRO", '{"type":"record","name":"r","fields":[{"name":"b","type":"long"}]}')


@contextmanager
def served(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[SchemaRegistryReader]:
    """A client of a server that gives this to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        client = SchemaRegistryReader(RegistryAddress(f"http://127.0.0.1:{server.server_port}", "ann", "s3cret"))
        try:
            yield client
        finally:
            client.close()
            server.shutdown()
            thread.join()


@contextmanager
def answering(status: int, body: bytes, seen: list[str] | None = None) -> Iterator[SchemaRegistryReader]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        if seen is not None:
            seen.append(str(handler.headers.get("Authorization")))
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with served(answer) as client:
        yield client


@pytest.mark.services
def test_a_schema_is_registered_found_and_kept(tmp_path: Path) -> None:
    with schema_registry(tmp_path) as server, ExitStack() as stack:
        client = stack.enter_context(closing(SchemaRegistryReader(RegistryAddress(address(server)))))
        made = client.registered("s-value", AVRO)
        assert client.registered("s-value", AVRO) == made
        assert client.newest("s-value") == made
        assert client.newest("none-value") is None
        assert client.definition(99) is None
        assert client.definition(made) == AVRO
        with pytest.raises(SourceRefused, match=r"does not take the schema: .*cannot read"):
            client.registered("s-value", OTHER)
        # What this process registers is the newest at once; of another's it hears when it asks anew.
        later = client.registered("s-value", LATER)
        assert client.newest("s-value") == later
        with closing(SchemaRegistryReader(client.address)) as other:
            last = other.registered("s-value", LAST)
        assert client.newest("s-value") == later
        assert client.latest("s-value") == client.newest("s-value") == last
        again = stack.enter_context(closing(pickle.loads(pickle.dumps(client))))
        assert again.definition(made) == AVRO
        server.stop()
        # What is known needs no registry; what is not waits for it.
        assert client.definition(made) == AVRO
        with pytest.raises(ServiceUnavailable, match="does not answer: ConnectError"):
            client.definition(2)
        server.start()
        assert client.definition(2) is None


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>", "status 200 and no JSON object"),
        (200, b"[]", "status 200 and no JSON object"),
        (200, b"{}", "no schema"),
        (200, b'{"schema":5}', "no schema"),
        (200, b'{"schema":"x","references":[{}]}', "a reference without name"),
        (404, b"<html>", "status 404 and no JSON object"),
        (404, b"{}", "status 404"),
        (500, b'{"error_code":50001,"message":"x"}', "status 500"),
        (200, b"[" * 100_000, "no JSON object"),
    ],
)
def test_nonsense_is_waited_for(status: int, body: bytes, said: str) -> None:
    with answering(status, body) as client:
        with pytest.raises(ServiceUnavailable, match=said) as caught:
            client.definition(1)
        assert caught.value.retry


def test_a_schema_that_is_not_there_is_an_answer() -> None:
    with answering(404, b'{"error_code":40403,"message":"Schema 1 not found"}') as client:
        assert client.definition(1) is None


def test_an_answer_is_read_no_further_than_its_bound() -> None:
    """By its bytes as they come: the head of this one promises a thousand times as many."""
    sent: list[int] = []

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(16 << 30))
        handler.end_headers()
        with suppress(OSError):
            while True:
                sent.append(handler.wfile.write(b" " * (1 << 20)))

    with served(endless) as client, pytest.raises(ServiceUnavailable, match="more than 16,777,216 bytes"):
        client.definition(1)
    assert sum(sent) < 64 << 20


def test_what_is_packed_is_not_unpacked() -> None:
    def packed(handler: BaseHTTPRequestHandler) -> None:
        assert handler.headers["Accept-Encoding"] == "identity"
        text = gzip.compress(b'{"schema":"' + b" " * (64 << 20) + b'"}')
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    with served(packed) as client, pytest.raises(ServiceUnavailable, match="status 200 and no JSON object"):
        client.definition(1)


def test_a_registry_sends_nobody_elsewhere() -> None:
    paths: list[str] = []

    def redirect(handler: BaseHTTPRequestHandler) -> None:
        paths.append(handler.path)
        handler.send_response(307)
        handler.send_header("Location", f"http://localhost:{handler.server.server_port}/secret")  # type: ignore[attr-defined]
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with served(redirect) as client, pytest.raises(ServiceUnavailable, match="status 307"):
        client.definition(1)
    assert paths == ["/schemas/ids/1"]


def test_references_that_multiply_are_values_that_are_rejected() -> None:
    """Each schema refers to the next one twice: 2^50 of them, were they all asked for."""
    paths: list[str] = []

    def multiplying(handler: BaseHTTPRequestHandler) -> None:
        paths.append(handler.path)
        refers = [{"name": name, "subject": "s", "version": len(paths)} for name in ("a", "b")]
        text = json.dumps({"schema": '"int"', "references": refers}).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    with served(multiplying) as client:
        assert client.definition(1) == SchemaDefinition("AVRO", "")
        first = len(paths)
        assert client.definition(1) == SchemaDefinition("AVRO", "")
    assert len(paths) == first <= 1001


def test_who_may_not_ask_is_told_and_the_password_is_not() -> None:
    seen: list[str] = []
    with answering(401, b'{"error_code":401}', seen) as client:
        with pytest.raises(SourceRefused, match="refuses who asks: 401") as caught:
            client.definition(1)
        assert seen == ["Basic YW5uOnMzY3JldA=="]
        assert "s3cret" not in f"{caught.value}{client.address!r}"
        assert caught.value.retry
