"""Processes forked from one that has imported already what they need: the side of whoever asks for them.

``ForkServer`` starts the server (``runtime.processes.fork_server``); ``Forked`` is a process that it has forked on
request.
A request goes over a connection of its own, which stays open as long as the process lives:

    client → server   length, JSON of the ``Request``; standard input, output, error and further descriptors
    server → client   pid
    client → server   the number of a signal, as often as wanted; the end of the connection stands for SIGTERM
    server → client   end code, as ``subprocess`` gives it
"""

from __future__ import annotations

import json
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from dovetail.runtime.packages import PACKAGE_ROOT

LENGTH = struct.Struct("!I")
NUMBER = struct.Struct("!i")
MOST_DESCRIPTORS = 8
LOST = -signal.SIGKILL
"""The end code of a process whose server has ended before it could tell: such a process ends as well."""
_BACKLOG = 128


@dataclass(frozen=True)
class Request:
    """What ``python -m module arguments`` would be, in this folder and with this environment.

    descriptors   the numbers that the sent descriptors are to have in the process, standard input first
    """

    module: str
    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    descriptors: tuple[int, ...] = (0, 1, 2)

    def packed(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def unpacked(message: bytes) -> Request:
        fields = json.loads(message)
        fields["arguments"], fields["descriptors"] = tuple(fields["arguments"]), tuple(fields["descriptors"])
        return Request(**fields)


class Forked:
    """A process of a fork server. Raises OSError where the server does not answer."""

    def __init__(self, address: str, request: Request, descriptors: Sequence[int]) -> None:
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._code: int | None = None
        self._asking = threading.Lock()
        try:
            self._connection.connect(address)
            message = request.packed()
            socket.send_fds(self._connection, [LENGTH.pack(len(message))], list(descriptors))
            self._connection.sendall(message)
            self.pid: int = NUMBER.unpack(received(self._connection, NUMBER.size))[0]
        except BaseException:
            self._connection.close()
            raise

    def poll(self) -> int | None:
        """The end code; None while it runs."""
        return self.wait(0.0)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """The end code; None if it still runs after the time."""
        with self._asking:
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


class ForkServer:
    """A fork server of this process, which ends with it. ``modules`` are imported there, while this process goes on.

    folder   of its socket, and of those at which its processes are asked: only the user of this process gets there
    """

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self._modules = tuple(modules)
        self._environment = dict(environment)
        self._forking = threading.Lock()
        self.folder = Path(tempfile.mkdtemp(prefix="dovetail-fork-"))
        self.address = str(self.folder / "server")
        self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _start(self) -> None:
        Path(self.address).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(self.address)
            listener.listen(_BACKLOG)
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "dovetail.runtime.processes.fork_server",
                    str(listener.fileno()),
                    *self._modules,
                ],
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                cwd=PACKAGE_ROOT,
                # The library of linear algebra starts threads where it is loaded; no process here has a use for them.
                env={"OPENBLAS_NUM_THREADS": "1", **self._environment},
                # What a terminal sends to this process is no business of theirs.
                start_new_session=True,
            )

    def fork(self, request: Request, descriptors: Sequence[int]) -> Forked:
        """Raises OSError. A server that has ended is started again."""
        with self._forking:
            try:
                return Forked(self.address, request, descriptors)
            except ConnectionError:
                self._end()
                self._start()
            return Forked(self.address, request, descriptors)

    def close(self) -> None:
        """End the server; its processes find themselves without it."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def received(connection: socket.socket, size: int) -> bytes:
    """Raises ConnectionError if the connection ends before."""
    parts = b""
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("the other side has closed the connection")
        parts += part
    return parts
