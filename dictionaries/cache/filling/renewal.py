"""Renewing entries behind the lookups: those near their expiry, and those served after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Condition, Thread

import structlog

from changelog.errors import DovetailError
from changelog.lookup import Key
from dictionaries.cache.flights.flight import Layer
from dictionaries.cache.flights.flights import Flights

_MOST_WAITING = 100_000

_log = structlog.get_logger(__name__)


class Renewal:
    """Asks for keys whose entries expire soon, or have expired, unless somebody else does already.

    ahead_ms  so long an entry must still live to be left alone
    layers    from the single flight down
    """

    def __init__(self, flights: Flights, ahead_ms: int, clock: Callable[[], int], layers: Layer) -> None:
        self._flights = flights
        self._ahead_ms = ahead_ms
        self._clock = clock
        self._layers = layers

    def renew(self, keys: Sequence[Key]) -> None:
        """Raises the error of the source."""
        now_ms = self._clock()
        flight = self._flights.open(keys, now_ms, fresh_after_ms=now_ms + self._ahead_ms)
        with self._flights.flying(flight):
            unanswered = self._layers.answer(flight, keys)
        if unanswered is not None:
            raise unanswered.error


class BackgroundRenewal:
    """One thread that renews keys; those asked for while it works are renewed together afterwards.

    At most 100,000 keys wait: further ones are not renewed ahead, and are asked for when they have expired.
    """

    def __init__(self, name: str, renew: Callable[[Sequence[Key]], None]) -> None:
        self._name = name
        self._renew = renew
        self._waiting: dict[Key, None] = {}
        self._changed = Condition()
        self._closing = False
        self._thread: Thread | None = None

    def ask(self, keys: Iterable[Key]) -> None:
        with self._changed:
            if len(self._waiting) < _MOST_WAITING:
                self._waiting.update(dict.fromkeys(keys))
            if self._thread is None:
                self._thread = Thread(target=self._run, name=f"renew {self._name}", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        while keys := self._take():
            try:
                self._renew(keys)
            except DovetailError as error:
                _log.warning("dictionary.renewal_failed", dictionary=self._name, error=str(error))

    def _take(self) -> list[Key]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            keys = [] if self._closing else list(self._waiting)
            self._waiting.clear()
            return keys
