"""Renewing entries behind the lookups: those near their expiry, and those served after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from threading import Condition

import structlog

from dovetail.changelog.errors import DovetailError
from dovetail.changelog.lookup import Key
from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.dictionaries.cache.cache_settings import DEFAULT_WAITING
from dovetail.dictionaries.cache.flights.flight import Layer
from dovetail.dictionaries.cache.flights.flights import Flights

_log = structlog.get_logger(__name__)


class Renewal:
    """Asks for keys whose entries expire soon, or have expired, unless somebody else does already.

    ahead   the last share of an entry's life, in which it is not left alone
    layers  from the single flight down
    """

    def __init__(self, flights: Flights, ahead: float, clock: Callable[[], int], layers: Layer) -> None:
        self._flights = flights
        self._ahead = ahead
        self._clock = clock
        self._layers = layers

    def renew(self, keys: Sequence[Key]) -> None:
        """Raises the error of the source."""
        flight = self._flights.open(keys, self._clock(), self._ahead)
        with self._flights.flying(flight):
            unanswered = self._layers.answer(flight, keys)
        if unanswered is not None:
            raise unanswered.error


class BackgroundRenewal:
    """One thread that renews keys; those asked for while it works are renewed together afterwards.

    At most ``most_waiting`` keys wait: further ones are not renewed ahead, and are asked for when they have expired.
    """

    def __init__(
        self,
        name: str,
        renew: Callable[[Sequence[Key]], None],
        failed: Callable[[BaseException], None],
        most_waiting: int = DEFAULT_WAITING,
    ) -> None:
        self._name = name
        self._renew = renew
        self._most_waiting = most_waiting
        self._waiting: dict[Key, None] = {}
        self._changed = Condition()
        self.thread = SupervisedThread(f"renew {name}", self._run, failed)

    def ask(self, keys: Iterable[Key]) -> None:
        with self._changed:
            free = self._most_waiting - len(self._waiting)
            self._waiting.update(dict.fromkeys(islice(keys, max(0, free))))
            self.thread.start()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self.thread.closing.set()
            self._changed.notify()
        self.thread.close(10)

    def _run(self) -> None:
        while keys := self._take():
            try:
                self._renew(keys)
                self.thread.mark_healthy()
            except DovetailError as error:
                _log.warning("dictionary.renewal_failed", dictionary=self._name, error=str(error))

    def _take(self) -> list[Key]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.thread.closing.is_set())
            keys = [] if self.thread.closing.is_set() else list(self._waiting)
            self._waiting.clear()
            return keys
