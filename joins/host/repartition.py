"""The state of a level, cut into another number of buckets.

A bucket holds the rows of its keys, and nothing of other keys. So the same rows, sent to buckets by the same hash of
the same columns, are the state that as many buckets would have come to:

    2 buckets    0: a c e    1: b d f
    3 buckets    0: a f      1: b c      2: d e

Rows that each bucket holds, those of a broadcast edge, are taken from the first one, and there from the first
portion; of other rows a portion is as good as a bucket. The numbers beside the rows are
not of keys: how far time has come is the same in all buckets, since partition times go to each of them; the running
numbers of arrivals go on after the greatest, since they are compared within a key only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.host.exchange import KEYLESS, bucket_of, cut
from dovetail.joins.inputs.arrival import ARRIVALS
from dovetail.joins.state.partitioned_by import PartitionedBy
from dovetail.joins.state.store import NEXT_ID, RunEntry, RunStore


def partitionings_of(dataflow: Dataflow, level: int) -> dict[str, PartitionedBy]:
    """By arrangement of ``level``, how its rows came into their bucket."""
    found: dict[str, PartitionedBy] = {}
    for index, node in enumerate(dataflow.nodes):
        if node.level == level:
            store = RunStore()
            node.operator.open(store, str(index))
            keyed = any(port.keys for port in node.operator.ports)
            found |= {
                name: by if keyed or by.everywhere else PartitionedBy(()) for name, by in store.partitioned_by.items()
            }
    return found


class Repartition:
    """``level`` of ``dataflow``, from ``before`` buckets to ``after``."""

    def __init__(self, dataflow: Dataflow, level: int, before: int, after: int) -> None:
        self._level, self._before, self._after = level, before, after
        self._partitioned_by = partitionings_of(dataflow, level)

    def parts(self, bucket: int, entry: RunEntry, portion: int = 0) -> Iterator[tuple[int, RunEntry]]:
        """What each new bucket gets of an entry of the former ``bucket``, of the portion of that number."""
        if (partitioned_by := self._partitioned_by.get(entry.arrangement)) is None:
            raise InternalError(f'level {self._level} keeps nothing under "{entry.arrangement}"')
        if partitioned_by.everywhere:
            yield from ((target, entry) for target in range(self._after) if bucket == KEYLESS and portion == 0)
            return
        for rows, keys in partitioned_by.parted(entry.table):
            if (bucket_of(rows, keys, self._before) != bucket).any():
                raise InternalError(
                    f"bucket {bucket} of {self._before} holds rows of other buckets",
                    where=f'level {self._level}, arrangement "{entry.arrangement}", keys {", ".join(keys)}',
                )
            for target, part in cut(rows, keys, self._after):
                yield target, RunEntry(entry.arrangement, part)

    def scalars(self, of_buckets: Iterable[Mapping[str, int]]) -> dict[str, int]:
        """The numbers of each new bucket, from those of the former ones that have seen a batch."""
        common: dict[str, int] | None = None
        arrivals: dict[str, int] = {}
        for scalars in of_buckets:
            times = {}
            for name, value in scalars.items():
                if name.startswith(ARRIVALS):
                    arrivals[name] = max(value, arrivals.get(name, value))
                elif name != NEXT_ID:
                    times[name] = value
            if common is not None and common != times:
                differing = sorted(name for name, _ in common.items() ^ times.items())
                raise InternalError(f"the buckets of level {self._level} do not agree in {', '.join(differing)}")
            common = times
        return {**(common or {}), **arrivals}
