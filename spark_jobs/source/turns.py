"""Whose turn it is to run a batch, where many queries have something to read and few cores are there to read it.

A batch costs the same whether it reads one record or thousands. Were all that have news to begin at once, they would
share the cores until all end together, each with the records of when it began. One after the other each takes its
share of the time undivided, and reads what has come until its turn:

    at once           a ▁▁▁▁▁▁▁▁ b ▁▁▁▁▁▁▁▁ c ▁▁▁▁▁▁▁▁     read at 0, 0, 0; written at 3, 3, 3
    in turns          a ███      b    ███   c       ███    read at 0, 1, 2; written at 1, 2, 3
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Turns:
    """at_once    how many batches are under way together
    longest_s  after which a batch holds up nobody any more: a large one, or one whose query has ended without a word
    """

    at_once: int
    longest_s: float
    _begun_s: dict[str, float] = field(default_factory=dict)

    def begin(self, source: str, now_s: float) -> bool:
        """Whether ``source`` may run a batch now; it has its turn then, until ``end``."""
        self._begun_s = {one: begun_s for one, begun_s in self._begun_s.items() if now_s - begun_s < self.longest_s}
        if len(self._begun_s) >= self.at_once:
            return False
        self._begun_s[source] = now_s
        return True

    def end(self, source: str) -> None:
        """It has no batch under way."""
        self._begun_s.pop(source, None)
