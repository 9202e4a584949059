"""A child process of the worker: how it is started, asked, watched and ended."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TextIO

import httpx

from dovetail.changelog.errors import EnvironmentFault
from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.dictionaries.open import ON_DEMAND
from dovetail.runtime.logs.process_log import Unfailing
from dovetail.runtime.packages import PACKAGE_ROOT
from dovetail.runtime.processes.forked import Forked, Request
from dovetail.runtime.processes.own_fork_server import ForkServer
from dovetail.services.commands.command_codec import Command, Outcome, command_bytes, outcome_of
from dovetail.services.worker.query.pulse import PulseListener

MODULE = "dovetail.services.worker.query.child"
PRELOADED = (MODULE, *ON_DEMAND, "dovetail.services.worker.query.warm_up")
_LISTENER = 100
"""The number of the listening socket in the child, out of the way of those that the child opens."""
_PULSE = 101
_LINES = 20
_BACKLOG = 128
_ASK_S = 5.0


def fork_server(environment: Mapping[str, str], *, from_here: bool = False) -> ForkServer:
    """Where children come from: what each of them needs, and takes seconds to import, is imported once.

    from_here   as of ForkServer
    """
    return ForkServer(PRELOADED, os.environ | dict(environment), from_here=from_here)


class Child:
    """The process of one query. It answers at a Unix socket that is bound here, so the worker knows it from the start.

    At no port: what a page, or another user of the machine, can reach would have to ask who sends a command.
    """

    def __init__(self, name: str, worker: str, files: Path, environment: Mapping[str, str], server: ForkServer) -> None:
        self.name = name
        self.started_s = time.monotonic()
        self._last: deque[str] = deque(maxlen=_LINES)
        self.killed_for = ""
        self._socket = server.folder / secrets.token_hex(8)
        self._process, lines, self._pulse = self._forked(worker, files, environment, server)
        self._reader = SupervisedThread(f"log-{name}", partial(self._forward, lines))
        self._reader.start()
        self._stopping = False
        self._stop_before_s = 0.0

    def _forked(
        self, worker: str, files: Path, environment: Mapping[str, str], server: ForkServer
    ) -> tuple[Forked, TextIO, PulseListener]:
        """The process, what it writes, and its sign of life."""
        options = ("--worker", worker, "--files", str(files), "--listen", str(_LISTENER), "--pulse", str(_PULSE))
        descriptors = (0, 1, 2, _LISTENER, _PULSE)
        request = Request(MODULE, (self.name, *options), str(PACKAGE_ROOT), os.environ | dict(environment), descriptors)
        read, write = os.pipe()
        lines = os.fdopen(read, errors="replace")
        read, beat = os.pipe()
        pulse = PulseListener(read)
        try:
            with Path(os.devnull).open() as nothing, socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(self._socket))
                listener.listen(_BACKLOG)
                given = (nothing.fileno(), write, write, listener.fileno(), beat)
                return server.fork(request, given), lines, pulse
        except OSError as failure:
            lines.close()
            pulse.close()
            self._socket.unlink(missing_ok=True)
            raise EnvironmentFault(
                f"no process could be started: {failure}",
                where=f'query "{self.name}"',
                fix="it is tried again; if that goes on, dovetail logs worker has the reason",
            ) from failure
        finally:
            os.close(write)
            os.close(beat)

    @property
    def pid(self) -> int:
        return self._process.pid

    def _forward(self, lines: TextIO) -> None:
        """Its log lines into the worker's log."""
        log = Unfailing(sys.stderr)
        for line in lines:
            self._last.append(line)
            log.write(line)
            log.flush()
        lines.close()

    def ended(self) -> int | None:
        """The end code; None while it runs."""
        code = self._process.poll()
        if code is not None:
            self._pulse.close()
            self._socket.unlink(missing_ok=True)
        return code

    def kill_if_silent(self, longest_s: float) -> None:
        """Kill it where it has given no sign of life for so long; it is not known to have ended yet."""
        silent_s = 0.0 if self.killed_for else self._pulse.silent_s()
        if silent_s > longest_s:
            self.killed_for = f"the process of the query gave no sign of life for {silent_s:.0f} s, and was killed"
            self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def last_words(self) -> str:
        """The end of its log."""
        self._reader.await_end(1)
        return "".join(self._last).rstrip()

    def stop(self, timeout_s: float) -> bool:
        """Ask it to finish and leave, once; kill it when it takes too long. Whether it has ended."""
        if not self._stopping:
            self._stopping = True
            self._stop_before_s = time.monotonic() + timeout_s
            self._process.send_signal(signal.SIGTERM)
        if self.ended() is None and time.monotonic() > self._stop_before_s:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        return self.ended() is not None

    # -- asked by HTTP

    def _ask(self, method: str, path: str, body: bytes | None = None) -> httpx.Response:
        transport = httpx.HTTPTransport(uds=str(self._socket), verify=False)  # no TLS: certificates are not even read
        with httpx.Client(transport=transport, timeout=_ASK_S, trust_env=False) as client:
            return client.request(method, f"http://localhost{path}", content=body)

    def ready(self) -> bool:
        with suppress(httpx.HTTPError):
            return self._ask("GET", "/readyz").is_success
        return False

    def metrics(self) -> str:
        """'' where it does not answer."""
        with suppress(httpx.HTTPError):
            return self._ask("GET", "/metrics").text
        return ""

    def execute(self, command: Command) -> Outcome:
        """What came of it there, or why there is no answer."""
        try:
            return outcome_of(self._ask("POST", "/commands", command_bytes(command)).content)
        except (httpx.HTTPError, ValueError) as failure:
            return Outcome.failed(f'query "{self.name}" does not answer: {failure}')
