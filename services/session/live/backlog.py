"""How much of its input a query has read, and how much it has not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.broker.topics import PartitionOffsets
from dovetail.services.session.input_progress import InputProgress
from dovetail.sql.catalog import Query

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


@dataclass(frozen=True)
class Backlog:
    """``read`` of ``total`` records. Marks of transactions are among them, for a broker counts both as one."""

    read: int = 0
    total: int = 0

    def __add__(self, other: Backlog) -> Backlog:
        return Backlog(self.read + other.read, self.total + other.total)

    @property
    def left(self) -> int:
        return self.total - self.read

    @property
    def percent(self) -> int:
        """Rounded down: 100 means that nothing is left."""
        return 100 if not self.left else 100 * self.read // self.total

    @staticmethod
    def of_topic(starts: PartitionOffsets, reached: PartitionOffsets, ends: PartitionOffsets) -> Backlog:
        """Of what stands between ``starts`` and ``ends``; a partition without a start begins at 0, and one of which
        nothing is reached, at its start.
        """
        found = Backlog()
        for partition, end in ends.items():
            start = min(starts.get(partition, 0), end)
            found += Backlog(min(max(reached.get(partition, start), start), end) - start, end - start)
        return found

    @staticmethod
    def of(queries: Iterable[Query], ends: Mapping[str, PartitionOffsets]) -> Backlog | None:
        """Of the fragments of a view, as their runners last told; None where it is not known of all: one has not begun,
        or the end of one of its inputs is not among ``ends``.
        """
        found = Backlog()
        for query in queries:
            progress = InputProgress.of(query)
            if not progress.first_offsets or not progress.first_offsets.keys() <= ends.keys():
                return None
            for topic, starts in progress.first_offsets.items():
                found += Backlog.of_topic(starts, progress.offsets.get(topic, {}), ends[topic])
        return found

    def seconds_left(self, working_s: float) -> float | None:
        """How long the rest takes at the rate of ``working_s``, in which what is read was; None before a record.

        A bound from above: batches that wait for nothing are larger than those of what has kept up with its input, and
        take less time for a record.
        """
        return self.left * working_s / self.read if self.read and working_s else None


def duration_text(seconds: float) -> str:
    """``12 s``, ``3 min``, ``2 h``, ``5 d``: rounded up, since what is left is bounded by it."""
    for unit_s, unit in _UNITS:
        if seconds > unit_s:
            return f"{math.ceil(seconds / unit_s):,} {unit}"
    return f"{math.ceil(seconds)} s"
