"""Whether a query that runs stands still: it holds partitions, there is more in them, and nothing of it is answered.

What waits for something says so and goes on by itself: a source, a broker, a rebalance. This looks for what nobody has
thought of, in clients that were written by others: a process that says that it runs would else stand for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from confluent_kafka import KafkaException

from broker.topics import PartitionOffsets
from changelog.errors import ServiceUnavailable

_LOOK_S = 5.0


class Standstill:
    """``look`` is to be called again and again.

    ends       where partitions end now; asked every few seconds, and may raise what a lost broker raises
    patience_s longer than anything is waited for where there is a reason
    let_go_s   the same, for a partition whose lane has ended and which the group has not given to anybody since
    """

    def __init__(
        self, ends: Callable[[Collection[int]], PartitionOffsets], *, patience_s: float, let_go_s: float
    ) -> None:
        self._ends = ends
        self._patience_s = patience_s
        self._let_go_s = let_go_s
        self._due_s = 0.0
        self._behind_since_s: dict[int, float] = {}
        self._idle_since_s: dict[int, float] = {}
        self._reached: PartitionOffsets = {}

    def look(self, reached: Mapping[int, int], let_go: Collection[int], now_s: float) -> str:
        """Why it is taken to stand still; '' if it is not.

        reached  partition → where its answers end, of those that are assigned to this process
        let_go   those of them that nobody works on
        """
        if now_s < self._due_s:
            return ""
        self._due_s = now_s + _LOOK_S
        self._idle_since_s = _since(self._idle_since_s, let_go, now_s)
        for partition, since_s in self._idle_since_s.items():
            if now_s - since_s >= self._let_go_s:
                return f"partition {partition} was let go {now_s - since_s:.0f} s ago, and the group gives it to nobody"
        try:
            ends = self._ends(reached.keys())
        except (ServiceUnavailable, KafkaException, TimeoutError):
            self._behind_since_s = {}
            return ""
        behind = [one for one, end in ends.items() if reached[one] < end and self._reached.get(one) == reached[one]]
        self._reached = dict(reached)
        self._behind_since_s = _since(self._behind_since_s, behind, now_s)
        for partition, since_s in self._behind_since_s.items():
            if now_s - since_s >= self._patience_s:
                return (
                    f"partition {partition} is answered up to {reached[partition]} of {ends[partition]} for"
                    f" {now_s - since_s:.0f} s"
                )
        return ""


def _since(before: Mapping[int, float], partitions: Collection[int], now_s: float) -> dict[int, float]:
    return {partition: before.get(partition, now_s) for partition in partitions}
