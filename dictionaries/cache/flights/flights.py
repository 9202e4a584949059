"""Single flight: within a process, one thread asks for a key and the others wait for its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.flights.flight import Flight


class Flights:
    """The flights under way, by key. Thread-safe.

    Whoever leads finishes the own flight before waiting for another, so no two threads wait for each other.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_key: dict[Key, Flight] = {}
        self._open: set[Flight] = set()

    def open(self, keys: Sequence[Key], now_ms: int, ahead: float = 0.0) -> Flight:
        """A flight that leads no key yet."""
        flight = Flight(keys, now_ms, ahead)
        with self._lock:
            self._open.add(flight)
        return flight

    def lead(self, flight: Flight, keys: Sequence[Key]) -> dict[Flight, list[Key]]:
        """Makes ``flight`` lead the keys that nobody leads; the others' flights with the rest of them."""
        joined: dict[Flight, list[Key]] = {}
        with self._lock:
            by_key = self._by_key
            taken = by_key.keys() & keys if by_key else set()
            flight.led = [key for key in keys if key not in taken] if taken else keys
            for key in taken:
                joined.setdefault(by_key[key], []).append(key)
            # What is spoiled already must not be given to those who come after the invalidation.
            clean = flight.led if not flight.spoiled else [key for key in flight.led if key not in flight.spoiled]
            by_key.update(dict.fromkeys(clean, flight))
        return joined

    @contextmanager
    def flying(self, flight: Flight) -> Iterator[None]:
        """The block finds the answers of ``flight``; those who wait get what it found, and no error of its."""
        try:
            yield
        finally:
            self._land(flight)

    def _land(self, flight: Flight) -> None:
        with self._lock:
            self._open.discard(flight)
            # Only a key that was spoiled may be another flight's by now.
            still = flight.led if not flight.spoiled else [key for key in flight.led if self._is_of(key, flight)]
            for key in still:
                del self._by_key[key]
        flight.land()

    def spoil(self, concerns: Callable[[Iterable[Key]], Iterable[Key]]) -> None:
        """An invalidation came: nobody joins a flight anymore for those of its keys that ``concerns`` gives."""
        with self._lock:
            for flight in self._open:
                spoiled = set(concerns(flight.keys))
                flight.spoiled |= spoiled
                for key in spoiled:
                    if self._is_of(key, flight):
                        del self._by_key[key]

    def _is_of(self, key: Key, flight: Flight) -> bool:
        return self._by_key.get(key) is flight
