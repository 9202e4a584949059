"""A child process of the worker: how it is started, asked, watched and ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import httpx

from runtime.packages import PACKAGE_ROOT
from services.commands.command_codec import Command, Outcome, command_bytes, outcome_of

_LINES = 20
_ASK_S = 5.0


class Child:
    """The process of one query. It answers on a port that is bound here, so the worker knows it from the start."""

    def __init__(self, name: str, worker: str, files: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.started_s = time.monotonic()
        self._last: deque[str] = deque(maxlen=_LINES)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            options = ["--worker", worker, "--files", str(files), "--listen", str(listener.fileno())]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "services.worker.query.child", name, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[listener.fileno()],
                cwd=PACKAGE_ROOT,
                env=os.environ | dict(environment),
                text=True,
                errors="replace",
            )
        self._reader = threading.Thread(target=self._forward, name=f"log-{name}", daemon=True)
        self._reader.start()
        self._stopping = False
        self._stop_before_s = 0.0

    @property
    def pid(self) -> int:
        return self._process.pid

    def _forward(self) -> None:
        """Its log lines into the worker's log."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._last.append(line)
                sys.stderr.write(line)
                sys.stderr.flush()

    def ended(self) -> int | None:
        """The end code; None while it runs."""
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def last_words(self) -> str:
        """The end of its log."""
        self._reader.join(1)
        return "".join(self._last).rstrip()

    def stop(self, timeout_s: float) -> bool:
        """Ask it to finish and leave, once; kill it when it takes too long. Whether it has ended."""
        if not self._stopping:
            self._stopping = True
            self._stop_before_s = time.monotonic() + timeout_s
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
        if self.ended() is None and time.monotonic() > self._stop_before_s:
            self._process.kill()
            self._process.wait()
        return self.ended() is not None

    # -- asked by HTTP

    def ready(self) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self._address}/readyz", timeout=_ASK_S).is_success
        return False

    def metrics(self) -> str:
        """'' where it does not answer."""
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self._address}/metrics", timeout=_ASK_S).text
        return ""

    def execute(self, command: Command) -> Outcome:
        """What came of it there, or why there is no answer."""
        try:
            asked = httpx.post(f"{self._address}/commands", content=command_bytes(command), timeout=_ASK_S)
            return outcome_of(asked.content)
        except (httpx.HTTPError, ValueError) as failure:
            return Outcome.failed(f'query "{self.name}" does not answer: {failure}')
