"""HTTP to one place, within bounds: where it connects to, how long it takes, and how much comes back."""

from __future__ import annotations

import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

from dovetail.changelog.errors import SourceRefused
from dovetail.dictionaries.outside.hosts import Hosts

_GZIP = zlib.MAX_WBITS | 16


class PlaceTransport(httpx.HTTPTransport):
    """Requests to one address of the web, and nowhere else, whatever an answer redirects to: only from http to https of
    the same host. Connections are made to where ``network`` allows them; no proxy stands between.
    """

    def __init__(self, url: httpx.URL, network: Hosts, where: str) -> None:
        trusting = httpx.create_ssl_context()
        super().__init__(verify=trusting)
        self._url = url
        self._where = where
        self._network = _Network(network, where)
        self._pool = httpcore.ConnectionPool(ssl_context=trusting, network_backend=self._network)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        place = (request.url.scheme, request.url.host, request.url.port)
        own = (self._url.scheme, self._url.host, self._url.port)
        if place not in (own, ("https", self._url.host, None)):
            raise SourceRefused(
                f"the service redirects to {request.url.copy_with(query=None, fragment=None, username=None)}",
                where=self._where,
                fix="name that address in URL, if the source is there",
            )
        return super().handle_request(request)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """What the block asks for on this thread, answers included, takes no longer: else httpx.TimeoutException."""
        self._network.ends.at = time.monotonic() + seconds
        try:
            yield
        finally:
            self._network.ends.at = None


class _Ends(threading.local):
    at: float | None = None

    def shortened(self, timeout: float | None) -> float | None:
        if self.at is None:
            return timeout
        left = self.at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the time for the whole answer is over")
        return left if timeout is None else min(timeout, left)


class _Network(httpcore.NetworkBackend):
    """TCP to addresses that were judged."""

    def __init__(self, network: Hosts, where: str) -> None:
        self.ends = _Ends()
        self._hosts = network
        self._where = where
        self._tcp = httpcore.SyncBackend()

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *given: Any, **named: Any
    ) -> httpcore.NetworkStream:
        try:
            addresses = self._hosts.addresses(host, port, self._where)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        *others, last = addresses
        for address in others:
            try:
                return self._connected(address, port, timeout, *given, **named)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return self._connected(last, port, timeout, *given, **named)

    def _connected(self, address: str, port: int, timeout: float | None, *given: Any, **named: Any) -> _Stream:
        return _Stream(self._tcp.connect_tcp(address, port, self.ends.shortened(timeout), *given, **named), self.ends)


class _Stream(httpcore.NetworkStream):
    """Each wait is for what is left of the time at most: bytes that drip in do not add up."""

    def __init__(self, stream: httpcore.NetworkStream, ends: _Ends) -> None:
        self._stream = stream
        self._ends = ends

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._ends.shortened(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._ends.shortened(timeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> _Stream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._ends.shortened(timeout)), self._ends)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def bounded_content(response: httpx.Response, max_bytes: int, where: str) -> bytes:
    """The whole body, unpacked; no more than ``max_bytes`` of it are ever held. Raises SourceRefused."""
    packing = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packing not in ("identity", "gzip"):
        raise SourceRefused(
            f"the service packs its answer as {packing}", where=where, fix="let it answer plain, or with gzip"
        )
    raw = response.iter_raw()
    content = bytearray()
    for piece in raw if packing == "identity" else _unpacked(raw, max_bytes, where):
        content += piece
        if len(content) > max_bytes:
            raise SourceRefused(
                f"the service answers more than {max_bytes:,} bytes",
                where=where,
                fix="METHOD 'post' asks for the keys alone; else raise DOVETAIL_SOURCE_MAX_BYTES",
            )
    return bytes(content)


def _unpacked(raw: Iterable[bytes], max_bytes: int, where: str) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        for piece in raw:
            yield unpacker.decompress(piece, max_bytes + 1)
    except zlib.error as error:
        raise SourceRefused(
            f"the packed answer cannot be read: {error}", where=where, fix="let it answer plain"
        ) from error
