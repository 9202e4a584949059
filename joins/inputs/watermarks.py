"""The watermarks of an operator's inputs: how far each has come in event time, and which rows are late.

**Definition.** A *partition time* is the greatest event time that a partition of an input has shown. The watermark of
an input is the least of its partitions, less the delay: rows behind it are taken to be in. It never moves back. A
partition that nothing has been read from yet, and one that is *idle*, takes no part in the minimum. But where the
watermark is told by the query that writes the input, one that nothing has been told in yet holds it back.

An input all of whose partitions are idle takes no part in its operator: it stands where the least of the other inputs
stands, and where all are idle each stands where the furthest has come, whichever fell silent first. With ``shared`` an
input stands where the least of all does that are not idle.

                 partition 0   12:00:40               ┐
    left         partition 1   12:00:20  (the least)  ┘  less 5 s delay   12:00:15
    right        partition 0   12:00:30, idle            with left        12:00:15

Values are ms since the epoch, or the number itself for a column of whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import DELTA
from dovetail.changelog.event_times import not_behind
from dovetail.changelog.rows import Mask, numpy_column
from dovetail.joins.dataflow.graph import OperatorNode
from dovetail.joins.dataflow.ports import Port, Watermark

UNSHOWN = -(1 << 62)
"""The time of a partition that is known to be there and has shown nothing yet: it holds the watermark back."""


@dataclass(frozen=True)
class PartitionTime:
    """The greatest event time that a partition has shown; None: it has fallen silent, until a time is shown again."""

    edge: int
    partition: int
    event_ms: int | None


class Watermarks:
    """Those of one operator, kept among the ``scalars`` of its bucket.

    edges, ports   the operator's inputs; one without a watermark takes no part
    """

    def __init__(self, edges: Sequence[int], ports: Sequence[Port], scalars: MutableMapping[str, int]) -> None:
        self._ports = ports
        self._scalars = scalars
        self._inputs = [
            None if port.watermark is None else _Input.restored(edge, port.watermark, scalars)
            for edge, port in zip(edges, ports, strict=True)
        ]

    @property
    def values(self) -> tuple[int | None, ...]:
        """Where the watermark of each port stands; None: nowhere yet, or the port has none."""
        return tuple(None if one is None else self._scalars.get(one.name) for one in self._inputs)

    @property
    def held_by(self) -> tuple[int | None, ...]:
        """The partition of each port that is the furthest behind of those that are not idle; None: there is none."""
        return tuple(None if one is None else one.last for one in self._inputs)

    def late(self, index: int, rows: pa.Table) -> Mask:
        """Which insertions among ``rows`` of a port are behind its watermark.

        A retraction is never late, nor is a row whose time is NULL.
        """
        watermark, value = self._ports[index].watermark, self.values[index]
        if watermark is None or value is None or not watermark.drops_late:
            return np.zeros(rows.num_rows, dtype=np.bool_)
        times = rows.column(watermark.column)
        behind = pc.fill_null(pc.less(times, not_behind(value, times.type)), False)
        mask: Mask = behind.to_numpy() & (numpy_column(rows, DELTA) > 0)
        return mask

    def advance(self, partition_times: Iterable[PartitionTime]) -> None:
        """Take note of partition times; those of other operators' edges are passed over."""
        by_edge = {one.edge: one for one in self._inputs if one is not None}
        for partition_time in partition_times:
            if partition_time.edge in by_edge:
                by_edge[partition_time.edge].note(partition_time, self._scalars)
        for one in by_edge.values():
            reached = self._reached(one, by_edge.values())
            if reached is not None:
                self._scalars[one.name] = max(self._scalars.get(one.name, reached), reached)

    def _reached(self, one: _Input, inputs: Iterable[_Input]) -> int | None:
        active = [other for other in inputs if not other.idle]
        if one in active and not one.watermark.shared:
            return one.own
        if active:
            return _least([other.own for other in active])
        return max((other.furthest for other in inputs if other.furthest is not None), default=None)


@dataclass(frozen=True)
class Relay:
    """The watermark of what leaves an operator upstream, made anew wherever it is needed: of the same partition
    times in the same batches, so it is the same everywhere.

    clock   see ``joins.dataflow.graph.OperatorNode``
    edges   those that have this watermark
    """

    clock: tuple[int, ...]
    edges: tuple[int, ...]
    watermarks: Watermarks

    @staticmethod
    def of(
        node: OperatorNode, ports: Sequence[Port], edges: tuple[int, ...], scalars: MutableMapping[str, int]
    ) -> Relay:
        return Relay(node.clock, edges, Watermarks(node.inputs, ports, scalars))

    def times(self, partition_times: Iterable[PartitionTime]) -> list[PartitionTime]:
        """Those of its edges, when ``partition_times`` are in."""
        self.watermarks.advance(partition_times)
        reached = output_watermark(self.clock, self.watermarks.values)
        return [] if reached is None else [PartitionTime(edge, 0, reached) for edge in self.edges]


def output_watermark(clock: Sequence[int], values: Sequence[int | None]) -> int | None:
    """That of what leaves an operator whose inputs have the watermarks ``values``; None: it stands nowhere yet.

    clock   see ``joins.dataflow.graph.OperatorNode``
    """
    known = [value for value in values if value is not None]
    if len(known) < len(clock):
        return None
    return min(value + behind for value, behind in zip(known, clock, strict=True))


def next_on(grid: tuple[int, int], watermark: int) -> int:
    """The least time on ``grid``, multiples of its first number and its second one more, that is not behind the
    ``watermark``. Of rows with such times it says the same, and advances less often.
    """
    step, first = grid
    return first - (first - watermark) // step * step


def relayed(relays: Sequence[Relay], partition_times: Iterable[PartitionTime]) -> list[PartitionTime]:
    """``partition_times``, and those that the relays, upstream first, make of them."""
    every = list(partition_times)
    for relay in relays:
        every += relay.times(every)
    return every


@dataclass
class _Input:
    """What is known of one edge: the time of each partition, and which partitions are idle."""

    edge: int
    watermark: Watermark
    event_times: dict[int, int] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)

    @staticmethod
    def restored(edge: int, watermark: Watermark, scalars: MutableMapping[str, int]) -> _Input:
        one = _Input(edge, watermark)
        for name, value in scalars.items():
            kind, _, place = name.partition(".")
            if kind in ("mark", "idle") and place.startswith(f"{edge}."):
                partition = int(place.removeprefix(f"{edge}."))
                if kind == "mark":
                    one.event_times[partition] = value
                else:
                    one.silent.add(partition)
        return one

    @property
    def name(self) -> str:
        return f"watermark.{self.edge}"

    def note(self, partition_time: PartitionTime, scalars: MutableMapping[str, int]) -> None:
        place = f"{partition_time.edge}.{partition_time.partition}"
        if partition_time.event_ms is None:
            self.silent.add(partition_time.partition)
            scalars[f"idle.{place}"] = 1
            return
        if partition_time.event_ms != UNSHOWN:
            self.silent.discard(partition_time.partition)
            scalars.pop(f"idle.{place}", None)
        greatest = max(self.event_times.get(partition_time.partition, partition_time.event_ms), partition_time.event_ms)
        self.event_times[partition_time.partition] = scalars[f"mark.{place}"] = greatest

    @property
    def idle(self) -> bool:
        """Whether all partitions are that have been heard of."""
        return bool(self.silent) and self.silent.issuperset(self.event_times)

    @property
    def last(self) -> int | None:
        """The partition that is the furthest behind of those that are not idle."""
        return min(self._awake, key=self._awake.__getitem__, default=None)

    @property
    def own(self) -> int | None:
        """The least of the partitions that are not idle, less the delay."""
        event_times = self._awake.values()
        return min(event_times) - self.watermark.delay_ms if event_times and UNSHOWN not in event_times else None

    @property
    def _awake(self) -> dict[int, int]:
        return {partition: at for partition, at in self.event_times.items() if partition not in self.silent}

    @property
    def furthest(self) -> int | None:
        """The greatest partition time of all, less the delay."""
        event_times = [event_ms for event_ms in self.event_times.values() if event_ms != UNSHOWN]
        return max(event_times) - self.watermark.delay_ms if event_times else None


def _least(values: Sequence[int | None]) -> int | None:
    """None if one of them is not known."""
    known = [value for value in values if value is not None]
    return min(known) if len(known) == len(values) else None
