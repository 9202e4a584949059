"""Processes forked from one that has imported already what they need: the side of whoever asks for them.

``Forked`` is a process that a server (``runtime.processes.fork_server``) has forked on request. A request goes over a
connection of its own, which stays open as long as the process lives:

    server → client   GREETING. Descriptors on their way to one that stands still would stay open
    client → server   length, JSON of the ``Request``; standard input, output, error and further descriptors
    server → client   pid
    client → server   the number of a signal, as often as wanted; the end of the connection stands for SIGTERM
    server → client   end code, as ``subprocess`` gives it
"""

from __future__ import annotations

import json
import select
import signal
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

LENGTH = struct.Struct("!I")
NUMBER = struct.Struct("!i")
MOST_DESCRIPTORS = 8
GREETING = b"!"
READY = "ready"
"""The file beside the socket of a server that has imported what it is to import."""
LOST = -signal.SIGKILL
"""The end code of a process whose server has ended before it could tell: unless detached, it ends as well."""


@dataclass(frozen=True)
class Request:
    """What ``python -m module arguments`` would be, in this folder and with this environment.

    descriptors   the numbers that the sent descriptors are to have in the process, standard input first
    detached      it leads a session of its own, takes no signals of its client, and goes on when that or the server
                  has ended
    shown         variables of the server's own environment that others read of the process as ``environment`` has them;
                  their values are as long as the server's
    """

    module: str
    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    descriptors: tuple[int, ...] = (0, 1, 2)
    detached: bool = False
    shown: tuple[str, ...] = ()

    def packed(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def unpacked(message: bytes) -> Request:
        fields = json.loads(message)
        fields |= {name: tuple(fields[name]) for name in ("arguments", "descriptors", "shown")}
        return Request(**fields)


class Forked:
    """A process of a fork server. Raises OSError where the server does not answer; each time within ``answer_s``, if
    that is given: it may fork the process all the same.
    """

    def __init__(
        self, address: str, request: Request, descriptors: Sequence[int], answer_s: float | None = None
    ) -> None:
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._code: int | None = None
        self._lock = threading.Lock()
        try:
            self._connection.settimeout(answer_s)
            self._connection.connect(address)
            received(self._connection, len(GREETING))
            message = request.packed()
            socket.send_fds(self._connection, [LENGTH.pack(len(message))], list(descriptors))
            self._connection.sendall(message)
            self.pid: int = NUMBER.unpack(received(self._connection, NUMBER.size))[0]
            self._connection.settimeout(None)
        except BaseException:
            self._connection.close()
            raise

    def poll(self) -> int | None:
        """The end code; None while it runs."""
        return self.wait(0.0)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """The end code; None if it still runs after the time."""
        with self._lock:
            if self._code is None and self._answers(timeout_s):
                try:
                    self._code = NUMBER.unpack(received(self._connection, NUMBER.size))[0]
                except OSError:
                    self._code = LOST
                self._connection.close()
            return self._code

    def _answers(self, timeout_s: float | None) -> bool:
        waiting = select.poll()
        waiting.register(self._connection, select.POLLIN)
        return bool(waiting.poll(None if timeout_s is None else timeout_s * 1000))

    def send_signal(self, number: int) -> None:
        """Nothing happens if it has ended: its server knows, so that no other process is ever meant."""
        if self._code is None:
            with suppress(OSError):
                self._connection.sendall(bytes([number]))

    def close(self) -> None:
        """Ask for it no longer: if it has not ended, it is told to."""
        self._connection.close()


def received(connection: socket.socket, size: int) -> bytes:
    """Raises ConnectionError if the connection ends before."""
    parts = b""
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("the other side has closed the connection")
        parts += part
    return parts
