"""A TCP proxy that makes a server slow, far away, or gone, while the server itself runs on."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_PIECE = 65536
_POLL_S = 0.05


@dataclass
class Proxy:
    """Listens on ``port`` of the loopback interface and passes bytes on to ``target``.

    latency_s    how long each piece of an answer is held back; may be changed at any time
    connections  how many were taken so far
    """

    target: tuple[str, int]
    latency_s: float = 0.0
    connections: int = 0
    host: str = "127.0.0.1"
    _listener: socket.socket | None = None
    _pairs: set[socket.socket] = field(default_factory=set)
    _port: int = 0
    _closed: bool = False

    @property
    def port(self) -> int:
        return self._port

    def open(self) -> None:
        """Take connections, on the same port as before."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.host, self._port))
        listener.listen()
        self._port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Break every connection that stands; new ones are taken."""
        for pair in list(self._pairs):
            with suppress(OSError):
                pair.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Break every connection, and refuse new ones until ``open``."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def _accept(self, listener: socket.socket) -> None:
        while self._listener is listener:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client:
            try:
                server = socket.create_connection(self.target, timeout=5)
            except OSError:
                return
            with server, selectors.DefaultSelector() as ready:
                self._pairs |= {client, server}
                ready.register(client, selectors.EVENT_READ, server)
                ready.register(server, selectors.EVENT_READ, client)
                with suppress(OSError):
                    while self._pass_once(ready, server):
                        pass
                self._pairs -= {client, server}

    def _pass_once(self, ready: selectors.BaseSelector, server: socket.socket) -> bool:
        for key, _ in ready.select(_POLL_S):
            source: socket.socket = key.fileobj  # type: ignore[assignment]
            piece = source.recv(_PIECE)
            if not piece:
                return False
            if source is server and self.latency_s:
                time.sleep(self.latency_s)
            key.data.sendall(piece)
        return True


@contextmanager
def proxy(host: str, port: int, latency_s: float = 0.0) -> Iterator[Proxy]:
    """An open proxy before a server."""
    made = Proxy((host, port), latency_s)
    made.open()
    try:
        yield made
    finally:
        made.close()
