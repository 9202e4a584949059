"""Whether a query that runs stands still: it holds partitions, there is more in them, and nothing of it is answered.

What waits for something says so and goes on by itself: a source, a broker, a rebalance. This looks for what nobody has
thought of, in clients that were written by others: a process that says that it runs would else stand forever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.runtime.staleness import Staleness


class Standstill:
    """``look`` is to be called again and again.

    ends       where partitions end now; may raise what a lost broker raises
    patience_s longer than anything is waited for where there is a reason
    let_go_s   the same, for a partition whose lane has ended and which the group has not given to anybody since
    """

    def __init__(
        self,
        ends: Callable[[Collection[int]], PartitionOffsets],
        *,
        patience_s: float,
        let_go_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ends = ends
        self._patience_s = patience_s
        self._let_go_s = let_go_s
        self._behind = Staleness(clock)
        self._idle = Staleness(clock)

    def look(self, reached: Mapping[int, int], let_go: Collection[int]) -> str:
        """Why it is taken to stand still; '' if it is not.

        reached  partition → where its answers end, of those that are assigned to this process
        let_go   those of them that nobody works on
        """
        for partition, silent_s in self._idle.all_seconds(dict.fromkeys(let_go)).items():
            if silent_s >= self._let_go_s:
                return f"partition {partition} was let go {silent_s:.0f} s ago, and the group has not assigned it since"
        try:
            ends = self._ends(reached.keys())
        except ServiceUnavailable:
            ends = {}  # a reason to wait, so none is behind
        behind = {partition: reached[partition] for partition, end in ends.items() if reached[partition] < end}
        for partition, silent_s in self._behind.all_seconds(behind).items():
            if silent_s >= self._patience_s:
                return (
                    f"partition {partition} is answered up to {reached[partition]} of {ends[partition]} for"
                    f" {silent_s:.0f} s"
                )
        return ""
