"""Loading again, behind the lookups, within LIFETIME(MIN .. MAX ..)."""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Event, Thread

import structlog

from changelog.errors import DovetailError
from dictionaries.definition.definition import Definition

_FIRST_RETRY_S = 1.0

_log = structlog.get_logger(__name__)


class Reloader:
    """A thread that calls ``reload`` at a random time within the lifetime after the last one; never without a lifetime.

    What fails is tried again after a second, or earlier where the lifetime is shorter.
    """

    def __init__(self, definition: Definition, reload: Callable[[], None]) -> None:
        self._name = definition.name
        self._lifetime_s = definition.lifetime_s
        self._reload = reload
        self._closing = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        if self._lifetime_s[1] > 0 and self._thread is None:
            self._thread = Thread(target=self._run, name=f"load {self._name}", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        least_s, greatest_s = self._lifetime_s
        pause_s = random.uniform(least_s, greatest_s)
        while not self._closing.wait(pause_s):
            try:
                self._reload()
                pause_s = random.uniform(least_s, greatest_s)
            except DovetailError as error:
                _log.warning("dictionary.reload_failed", dictionary=self._name, error=str(error))
                pause_s = min(_FIRST_RETRY_S, greatest_s)
