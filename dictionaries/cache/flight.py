"""Single flight: within a process, one thread asks for a key and the others wait for its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Lock

from dictionaries.lookup import Key, Rows


class Flight:
    """The keys that one thread is asking for.

    An invalidation that comes while it is under way spoils keys of it: their answers may be older than the
    invalidation, so they are given to those who already wait, and are not stored.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = keys
        self.answers: dict[Key, Rows] = {}
        self.spoiled: set[Key] = set()
        self.error: BaseException | None = None
        self.landed = Event()

    def wait(self, keys: Iterable[Key]) -> dict[Key, Rows]:
        """The answers of some of its keys, once there. Raises the error that it ended with."""
        self.landed.wait()
        if self.error is not None:
            raise self.error
        return {key: self.answers[key] for key in keys}


class Flights:
    """The flights under way, by key. Thread-safe.

    Whoever boards finishes the own flight before waiting for another, so no two threads wait for each other.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_key: dict[Key, Flight] = {}
        self._open: set[Flight] = set()

    def board(self, keys: Sequence[Key]) -> tuple[Flight, dict[Flight, list[Key]]]:
        """A flight for the keys that nobody asks for, and the others' flights with the rest of them."""
        joined: dict[Flight, list[Key]] = {}
        with self._lock:
            by_key = self._by_key
            taken = by_key.keys() & keys if by_key else set()
            flight = Flight([key for key in keys if key not in taken] if taken else keys)
            for key in taken:
                joined.setdefault(by_key[key], []).append(key)
            by_key.update(dict.fromkeys(flight.keys, flight))
            self._open.add(flight)
        return flight, joined

    @contextmanager
    def flying(self, flight: Flight) -> Iterator[None]:
        """The block finds the answers of ``flight``; those who wait get them, or what it raises."""
        try:
            yield
        except BaseException as error:
            flight.error = error
            raise
        finally:
            self._land(flight)

    def _land(self, flight: Flight) -> None:
        with self._lock:
            self._open.discard(flight)
            for key in flight.keys:
                if self._by_key.get(key) is flight:
                    del self._by_key[key]
        flight.landed.set()

    def spoil(self, concerns: Callable[[Iterable[Key]], Iterable[Key]]) -> None:
        """An invalidation came: nobody joins a flight anymore for those of its keys that ``concerns`` gives."""
        with self._lock:
            for flight in self._open:
                spoiled = set(concerns(flight.keys))
                flight.spoiled |= spoiled
                for key in spoiled:
                    if self._by_key.get(key) is flight:
                        del self._by_key[key]
