"""Single flight as two layers: opening a flight, and asking only for what no other thread asks for."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.changelog.lookup import Key, Rows
from dovetail.dictionaries.cache.flights.flight import Flight, Layer, Unanswered
from dovetail.dictionaries.cache.flights.flights import Flights
from dovetail.dictionaries.cache.layout_statistics import Statistics


class FlightLayer:
    """Sends keys through the layers below in a flight of their own, then waits for the flights that it joined."""

    def __init__(self, flights: Flights, statistics: Statistics, below: Layer) -> None:
        self._flights = flights
        self._statistics = statistics
        self._below = below

    def answers(self, keys: Sequence[Key], now_ms: int) -> dict[Key, Rows]:
        """The rows under distinct keys. Raises the error of the source for keys without an answer."""
        flight = self._flights.open(keys, now_ms)
        with self._flights.flying(flight):
            unanswered = self._below.answer(flight, keys)
            if unanswered is not None:
                raise unanswered.error
        if not flight.joined:
            return flight.answers
        self._statistics.count(coalesced=sum(map(len, flight.joined.values())))
        answers = flight.answers_with_joined()
        # Whoever led them failed, or left them to another worker that renews them already.
        left = [key for key in keys if key not in answers]
        return answers | self.answers(left, now_ms) if left else answers


class SingleFlightLayer:
    """Of the threads that miss a key at the same time, one goes on; for the others its flight is joined.

    Below the reading of Redis, which every thread does for itself: to wait for another's reading would take longer.
    """

    def __init__(self, flights: Flights, below: Layer) -> None:
        self._flights = flights
        self._below = below

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        flight.joined = self._flights.lead(flight, keys)
        return self._below.answer(flight, flight.led) if flight.led else None
