"""A server process that can be stopped and started again on the same port, and that no test outlives."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PASSWORD = "s3cret-of-the-tests"
_START_S = 60.0
_STOP_S = 20.0
_POLL_S = 0.05
_PR_SET_PDEATHSIG = 1
# Loaded here: a child that is forked beside other threads must not load anything.
_LIBC = ctypes.CDLL(None)


class ServerFailed(Exception):
    """A server ended, or did not answer in time; the message holds the end of its log."""


@dataclass
class Server:
    """A database server on the loopback interface.

    answers  whether it takes connections
    ask      runs one statement as an administrator, and gives its rows; of a server that takes none it is not given
    http_port  of a server that also speaks HTTP
    secure_port  of one that speaks TLS on a port of its own
    os_user  the account that runs it, where it refuses to be run by root
    """

    name: str
    argv: Sequence[str]
    folder: Path
    port: int
    user: str
    answers: Callable[[Server], bool]
    ask: Callable[[Server, str], list[tuple[object, ...]]] | None = None
    password: str = PASSWORD
    host: str = "127.0.0.1"
    os_user: str | None = None
    http_port: int = 0
    secure_port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start it, and wait until it answers; what it stored is still there."""
        log = self._log.open("ab")
        with log:
            self.process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                user=self.os_user,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - it calls the kernel and nothing else
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_S
        while not self.answers(self):
            if self.process.poll() is not None or time.monotonic() > deadline:
                log_end = self._log.read_text(errors="replace")[-2000:]
                self.kill()
                raise ServerFailed(f"{self.name} did not start\n{log_end}")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End it in good order: what it stored is kept, and its port refuses connections."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Freeze it: connections stay open, and nothing is answered."""
        self._running.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running.send_signal(signal.SIGCONT)

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.rows(statement)

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        assert self.ask is not None, f"{self.name} takes no statements"
        return self.ask(self, statement)

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None, f"{self.name} is not running"
        return self.process

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


@contextmanager
def with_shop(server: Server) -> Iterator[Server]:
    """``server``, running, with an empty database ``shop``."""
    try:
        server.start()
        server.execute("CREATE DATABASE shop")
        yield server
    finally:
        server.kill()


def die_with_parent() -> None:
    """Runs in the child before it becomes the server: the kernel kills it when its parent ends in any way.

    The parent is the thread that started it, so servers are started by the main thread.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def program(name: str, *places: str, package: str) -> str:
    """The path of a server's binary."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", *places])
    found = shutil.which(name, path=path)
    if found is None:
        raise ServerFailed(f"{name} is not installed; run: apt-get install --no-install-recommends {package}")
    return found
