"""Loading again, behind the lookups, within LIFETIME(MIN .. MAX ..)."""

from __future__ import annotations

import random
from collections.abc import Callable

import structlog

from dovetail.changelog.errors import DovetailError
from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.dictionaries.definition.definition import Definition

_FIRST_RETRY_S = 1.0

_log = structlog.get_logger(__name__)


class Reloader:
    """A thread that calls ``reload`` at a random time within the lifetime after the last one; never without a lifetime.

    What fails is tried again after a second, or earlier where the lifetime is shorter.
    """

    def __init__(
        self, definition: Definition, reload: Callable[[], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._name = definition.name
        self._lifetime_s = definition.lifetime_s
        self._reload = reload
        self._pause_s = random.uniform(*definition.lifetime_s)
        self.thread = SupervisedThread(f"load {definition.name}", self._run, failed)

    def start(self) -> None:
        if self._lifetime_s[1] > 0:
            self.thread.start()

    def close(self) -> None:
        self.thread.close(10)

    def _run(self) -> None:
        while not self.thread.closing.wait(self._pause_s):
            self._pause_s = min(_FIRST_RETRY_S, self._lifetime_s[1])
            try:
                self._reload()
                self._pause_s = random.uniform(*self._lifetime_s)
                self.thread.mark_healthy()
            except DovetailError as error:
                _log.warning("dictionary.reload_failed", dictionary=self._name, error=str(error))
