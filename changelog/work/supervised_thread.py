"""Threads that go on in spite of errors, and say how they are."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

from dovetail.changelog.errors import DovetailError
from dovetail.changelog.work.backoff import Backoff

_LOG = logging.getLogger("dovetail.threads")
_PAUSES = Backoff(first_s=0.05, longest_s=5.0)


class SupervisedThread:
    """Runs ``work`` until it returns. What it raises is told to ``failed``, and ``work`` is begun again after a pause:
    twice as long after each failure, and short again once ``well`` was called. An error is logged where none of its
    class was since then.

    closing   set by ``close``; ``work`` looks at it, and returns
    failure   what it raised last; '' once it has done well since

    ``work`` is not interrupted: whoever closes has it return, and waits for it. It is a context too: within it runs.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], None],
        failed: Callable[[Exception], None] | None = None,
        pauses: Backoff = _PAUSES,
    ) -> None:
        self._name = name
        self._work = work
        self._failed = failed
        self._pauses = pauses
        self._failures = 0
        self._said: set[type[Exception]] = set()
        self.closing = Event()
        self.restarts = 0
        self.failure = ""
        self._thread: Thread | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether it has done well since its last failure. A thread that was never needed is."""
        return not self.failure and (not self.has_ended or self.closing.is_set())

    @property
    def has_ended(self) -> bool:
        """Whether ``work`` was begun, and has returned."""
        return self._thread is not None and not self._thread.is_alive()

    def start(self) -> None:
        """Once; further calls do nothing. Not from several threads at a time."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def mark_healthy(self) -> None:
        """Called by ``work`` when it has done something."""
        if self.failure:
            self._failures, self.failure = 0, ""
            self._said.clear()

    def await_end(self, timeout_s: float | None = None) -> None:
        """Wait until ``work`` returns by itself."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def close(self, timeout_s: float | None = 5.0) -> None:
        """``timeout_s``: how long to wait for ``work``; None: until it has returned."""
        self.closing.set()
        self.await_end(timeout_s)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close(None)

    def _run(self) -> None:
        while not self.closing.is_set():
            try:
                self._work()
                return
            except Exception as error:  # noqa: BLE001 - whatever it is: a thread that is gone would be seen by nobody
                self._note(error)
            self.closing.wait(self._pauses.pause_s(self._failures))

    def _note(self, error: Exception) -> None:
        self._failures += 1
        self.restarts += 1
        self.failure = f"{type(error).__name__}: {error}"
        if type(error) not in self._said:
            self._said.add(type(error))
            trace = None if isinstance(error, DovetailError) else error
            _LOG.warning("thread %s: %s; it is tried again", self._name, self.failure, exc_info=trace)
        if self._failed is not None:
            self._failed(error)


class PeriodicThread(SupervisedThread):
    """Calls ``look`` at once, and every ``every_s`` from then on; after a failure as soon as that, or sooner."""

    def __init__(
        self, name: str, every_s: float, look: Callable[[], None], failed: Callable[[Exception], None] | None = None
    ) -> None:
        super().__init__(name, self._keep, failed, Backoff(min(_PAUSES.first_s, every_s), every_s))
        self._every_s = every_s
        self._look = look

    def _keep(self) -> None:
        while not self.closing.is_set():
            self._look()
            self.mark_healthy()
            self.closing.wait(self._every_s)
