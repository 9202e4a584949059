"""A thread that goes on in spite of errors, and says how it is."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

import structlog

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0

_log = structlog.get_logger(__name__)


class SupervisedThread:
    """Runs ``work`` until it returns. What it raises is logged and told to ``failed``, and it is begun again after a
    pause: twice as long after each failure, and short again once ``well`` was called.

    closing   set by ``close``; ``work`` looks at it, and returns
    failed    e.g. Statistics.failed

    ``work`` is not interrupted: whoever closes has it return, and waits for it.
    """

    def __init__(self, name: str, work: Callable[[], None], failed: Callable[[BaseException], None]) -> None:
        self._name = name
        self._work = work
        self._failed = failed
        self._pause_s = _FIRST_PAUSE_S
        self.closing = Event()
        self.restarts = 0
        self.failure = ""
        self._thread: Thread | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether it has done well since its last failure. A thread that was never needed is."""
        return not self.failure and (self._thread is None or self._thread.is_alive() or self.closing.is_set())

    def start(self) -> None:
        """Once; further calls do nothing. Not from several threads at a time."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def well(self) -> None:
        """Called by ``work`` when it has done something."""
        self._pause_s, self.failure = _FIRST_PAUSE_S, ""

    def close(self, timeout_s: float | None = 5.0) -> None:
        self.closing.set()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self.closing.is_set():
            try:
                self._work()
                return
            except Exception as error:  # noqa: BLE001 - whatever it is: a thread that is gone would be seen by nobody
                self.restarts += 1
                self.failure = f"{type(error).__name__}: {error}"
                _log.exception("dictionary.thread_failed", thread=self._name, restarts=self.restarts)
                self._failed(error)
            self.closing.wait(self._pause_s)
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
