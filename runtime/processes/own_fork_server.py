"""A fork server that belongs to this process: started with it, and ended by its end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dovetail.runtime.packages import PACKAGE_ROOT
from dovetail.runtime.processes.fork_server import serve
from dovetail.runtime.processes.forked import READY, Forked, Request
from dovetail.runtime.processes.shown import show_command

_BACKLOG = 128


@dataclass(frozen=True)
class _ServerProcess:
    """The process of a server, which ends when ``owner``, its standard input, is closed."""

    pid: int
    owner: IO[bytes]
    wait: Callable[[], object]
    ended: Callable[[], bool]


class ForkServer:
    """A fork server of this process, which ends with it. ``modules`` are imported there, while this process goes on.

    from_here   fork the server itself from this process, so that what is imported here is neither imported nor kept
                again: for a process that has just begun, with no thread and no client yet. One that has to be started
                later, since the first has ended, is an interpreter of its own in any case.
    folder      of its socket, and of those at which its processes are asked: only the user of this process gets there
    """

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str], *, from_here: bool = False) -> None:
        self._modules = tuple(modules)
        self._environment = dict(environment)
        self._forking = threading.Lock()
        self.folder = Path(tempfile.mkdtemp(prefix="dovetail-fork-"))
        self.address = str(self.folder / "server")
        self._start(_fork if from_here else self._launch)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        """Whether ``fork`` does not wait: all is imported, or it has ended and says so."""
        return (self.folder / READY).exists() or self._process.ended()

    def _start(self, start: Callable[[socket.socket, Sequence[str]], _ServerProcess]) -> None:
        for file in (self.address, self.folder / READY):
            Path(file).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(self.address)
            listener.listen(_BACKLOG)
            self._process = start(listener, self._modules)

    def _launch(self, listener: socket.socket, modules: Sequence[str]) -> _ServerProcess:
        process = subprocess.Popen(
            [sys.executable, "-m", "dovetail.runtime.processes.fork_server", str(listener.fileno()), *modules],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            cwd=PACKAGE_ROOT,
            # The library of linear algebra starts threads where it is loaded; no process here has a use for them.
            env={"OPENBLAS_NUM_THREADS": "1", **self._environment},
            # What a terminal sends to this process is no business of theirs.
            start_new_session=True,
        )
        assert process.stdin is not None
        return _ServerProcess(process.pid, process.stdin, process.wait, lambda: process.poll() is not None)

    def fork(self, request: Request, descriptors: Sequence[int]) -> Forked:
        """Raises OSError. A server that has ended is started again."""
        with self._forking:
            try:
                return Forked(self.address, request, descriptors)
            except ConnectionError:
                self._end()
                self._start(self._launch)
            return Forked(self.address, request, descriptors)

    def close(self) -> None:
        """End the server; its processes find themselves without it."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        self._process.owner.close()
        self._process.wait()


def _fork(listener: socket.socket, modules: Sequence[str]) -> _ServerProcess:
    """A copy of this process that serves."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.dup2(reading, 0)
            os.close(reading)
            os.close(writing)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            show_command([sys.executable, "-m", "dovetail.runtime.processes.fork_server"])
            serve(listener, modules)
        except BaseException:  # noqa: BLE001 - a copy never goes on with what its original was about to do
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(reading)
    return _ServerProcess(pid, os.fdopen(writing, "wb"), lambda: os.waitpid(pid, 0), lambda: _has_ended(pid))


def _has_ended(pid: int) -> bool:
    """Whether a child has, which is not reaped by asking."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
