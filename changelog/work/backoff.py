"""How long to wait before something that has failed is tried again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

_DOUBLINGS = 60
"""More of them make no pause that anybody waits for, and an overflow in the end."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off: each pause is twice as long as the one before, up to ``longest_s``.

    Only the lengths: who waits has his own clock, chance and end of patience.
    """

    first_s: float
    longest_s: float

    def pause_s(self, failures: int) -> float:
        """After so many failures on end; ``first_s`` after the first."""
        return float(min(self.longest_s, self.first_s * 2 ** min(max(failures - 1, 0), _DOUBLINGS)))

    def pauses(self) -> Iterator[float]:
        """After the first failure, the second, .."""
        return map(self.pause_s, count(1))
