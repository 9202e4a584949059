"""A process that imports once what others need, and forks them: ``python -m`` without the seconds of imports.

    python -m dovetail.runtime.processes.fork_server LISTENER MODULE...

LISTENER is the descriptor of a listening Unix socket; what is said over it stands in ``runtime.processes.forked``. The
server ends when its standard input does, which its owner holds.

A fork copies the locks of all threads and only the thread that forks, so the server has no other one that could hold a
lock then: what it imports opens no client and starts no work.
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from dovetail.runtime.processes.forked import GREETING, LENGTH, MOST_DESCRIPTORS, NUMBER, READY, Request, received
from dovetail.runtime.processes.shown import show_command, show_variable

_OWNER = 0
_REQUEST_S = 5.0
"""Who connects sends its request at once; one that does not must not hold up the others."""


class _Child(Exception):
    """Raised in a process that was just forked: it is to do this."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.request = request


class _Server:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._ended, self._wakeup = socket.socketpair()
        self._clients: dict[int, socket.socket] = {}
        self._waiting = selectors.DefaultSelector()

    def serve(self) -> None:
        """Until the owner is gone. Raises _Child in every process that is forked."""
        self._ended.setblocking(False)
        self._wakeup.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakeup.fileno())
        for source in (_OWNER, self._listener, self._ended):
            self._waiting.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self._waiting.select():
                if key.fileobj == _OWNER:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._ended:
                    self._reap()
                else:
                    self._signal(key.data)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        try:
            connection.settimeout(_REQUEST_S)
            connection.sendall(GREETING)
            length, descriptors, _, _ = socket.recv_fds(connection, LENGTH.size, MOST_DESCRIPTORS)
            request = Request.unpacked(received(connection, *LENGTH.unpack(length)))
        except (OSError, ValueError):
            traceback.print_exc()
            connection.close()
            return
        self._fork(connection, request, descriptors)

    def _fork(self, connection: socket.socket, request: Request, descriptors: Sequence[int]) -> None:
        pid = os.fork()
        if pid == 0:
            connection.close()
            self._leave()
            _place(descriptors, request.descriptors)
            raise _Child(request)
        for descriptor in descriptors:
            os.close(descriptor)
        self._clients[pid] = connection
        if not request.detached:
            self._waiting.register(connection, selectors.EVENT_READ, pid)
        with suppress(OSError):
            connection.sendall(NUMBER.pack(pid))

    def _leave(self) -> None:
        """In a child: what belongs to the server is closed, or a client would not see the end of the server."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._waiting.close()
        for opened in (self._listener, self._ended, self._wakeup, *self._clients.values()):
            opened.close()

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            while self._ended.recv(1024):
                pass
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                pid, status = ended
                connection = self._clients.pop(pid)
                with suppress(KeyError):
                    self._waiting.unregister(connection)
                with suppress(OSError):
                    connection.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))
                connection.close()

    def _signal(self, pid: int) -> None:
        """Pass a client's signal on. Only this process reaps, so ``pid`` is no other process by now."""
        connection = self._clients.get(pid)
        if connection is None:
            return
        try:
            numbers = connection.recv(64)
        except OSError:
            numbers = b""
        for number in numbers or (signal.SIGTERM,):
            os.kill(pid, number)
        if not numbers:
            self._waiting.unregister(connection)


def _place(descriptors: Sequence[int], wanted: Sequence[int]) -> None:
    """Give each descriptor its number. They are copied out of the way first: one's number may be another's place."""
    high = [os.dup(descriptor) for descriptor in descriptors]
    while any(copy in wanted for copy in high):
        high = [os.dup(copy) if copy in wanted else copy for copy in high]
    for copy, number in zip(high, wanted, strict=True):
        os.dup2(copy, number)
    for spare in {*descriptors, *high} - {*wanted}:
        os.close(spare)


def _show(request: Request) -> None:
    """In process lists: the first argument, up to 15 letters, as its name, and the command that it stands for."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text((request.arguments or (request.module,))[0])
    show_command([sys.executable, "-m", request.module.removesuffix(".__main__"), *request.arguments])
    for name in request.shown:
        show_variable(name, request.environment[name])


def _run(request: Request) -> NoReturn:
    """As ``python -m`` runs the module, and ends."""
    code: object = 0
    try:
        if request.detached:
            os.setsid()
        _show(request)
        os.environ.clear()
        os.environ.update(request.environment)
        os.chdir(request.folder)
        sys.argv = [request.module, *request.arguments]
        # It is executed anew, under the name __main__; what it imports is there.
        sys.modules.pop(request.module, None)
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as the interpreter tells it
        traceback.print_exc()
        code = 1
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit((code or 0) & 0xFF)


def serve(listener: socket.socket, modules: Sequence[str]) -> NoReturn:
    """Fork what is asked for at ``listener`` from here on, with ``modules`` imported, until the owner is gone."""
    for module in modules:
        importlib.import_module(module)
    # What is there now lives as long as the process: a collection in a child need not touch, and copy, its pages.
    gc.collect()
    gc.freeze()
    Path(listener.getsockname()).with_name(READY).touch()
    try:
        _Server(listener).serve()
    except _Child as child:
        request = child.request
    else:
        shutil.rmtree(Path(listener.getsockname()).parent, ignore_errors=True)
        os._exit(0)
    _run(request)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
