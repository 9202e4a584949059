"""A flight: a lookup of keys that the hot tier does not hold, on its way through the layers below.

    metered ─▶ hot ─▶ flight ─▶ cold ─▶ kept ─▶ stale ─▶ on error ─▶ single flight ─▶ second look ─▶ locks ─▶ source

From the flight on each layer has the same face, ``Layer.answer``: what it finds it puts into the flight, and for the
rest it asks the layer below. ``layouts/`` compose them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from threading import Condition
from typing import Protocol

from dovetail.changelog.errors import DovetailError
from dovetail.changelog.lookup import Key, Rows
from dovetail.dictionaries.cache.cache_entry import CacheEntry


class Flight:
    """A lookup under way.

    keys            those that it asks for, and whose entries it may store
    now_ms          the moment that it answers for
    ahead           an entry answers until this last share of its life: for a renewal; 0 for a lookup: until its end
    answers         the rows found
    expired         entries past their time, which may be served where nothing newer comes
    led, joined     the keys that it alone asks for, and the flights that lead the others; set by ``Flights.lead``

    An invalidation that comes meanwhile spoils keys of it: their answers may be older than the invalidation, so they
    are given to those who already wait, and are not stored.
    """

    def __init__(self, keys: Sequence[Key], now_ms: int, ahead: float = 0.0) -> None:
        self.keys = keys
        self.now_ms = now_ms
        self.ahead = ahead
        self.answers: dict[Key, Rows] = {}
        self.expired: dict[Key, CacheEntry] = {}
        self.led: Sequence[Key] = ()
        self.joined: Mapping[Flight, Sequence[Key]] = {}
        self.spoiled: set[Key] = set()
        self._landed = False
        self._changed = Condition()

    def is_fresh(self, entry: CacheEntry) -> bool:
        """Whether the entry answers."""
        return entry.soon_ms(self.ahead) > self.now_ms

    def unanswered(self, keys: Sequence[Key]) -> list[Key]:
        return [key for key in keys if key not in self.answers]

    def answer(self, rows: Mapping[Key, Rows]) -> None:
        """Some keys are answered: whoever waits for them, and for no others, goes on."""
        if rows:
            with self._changed:
                self.answers.update(rows)
                self._changed.notify_all()

    def land(self) -> None:
        with self._changed:
            self._landed = True
            self._changed.notify_all()

    def wait(self, keys: Collection[Key]) -> dict[Key, Rows]:
        """The answers to some of the keys that it leads, once they are there; what it has not found by its end has to
        be asked for again.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._landed or all(key in self.answers for key in keys))
            return {key: self.answers[key] for key in keys if key in self.answers}

    def answers_with_joined(self) -> dict[Key, Rows]:
        """Its answers and those of the flights that lead the rest of its keys; to be asked for once it has landed."""
        answers = dict(self.answers)
        for other, wanted in self.joined.items():
            answers |= other.wait(wanted)
        return answers


@dataclass(frozen=True)
class Unanswered:
    """Keys that the source was asked for in vain, and why."""

    keys: Sequence[Key]
    error: DovetailError


def all_unanswered(failures: Sequence[Unanswered]) -> Unanswered | None:
    """Several failures as one; None: there are none. Its error is the first, or the first that may mend itself."""
    if not failures:
        return None
    error = next((failure.error for failure in failures if failure.error.retry), failures[0].error)
    return Unanswered([key for failure in failures for key in failure.keys], error)


class Layer(Protocol):
    """A part of the way from a miss to its answer. Thread-safe."""

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        """Gives the rows under some of the flight's keys, distinct and not answered yet, to ``flight.answer``.

        What comes back are keys that the source did not answer; a key that is neither there nor answered is left to
        another flight or worker. Not called without keys.
        """
        ...


def stacked(*layers: Callable[[Layer], Layer], lowest: Layer) -> Layer:
    """The layers as one, the first on top; each is made over the one below it."""
    for layer in reversed(layers):
        lowest = layer(lowest)
    return lowest
