"""A level in one bucket, whose state lies in portions: they take turns in memory.

    rows ─▶ portion 0: attached, at work, put back ─▶ portion 2: attached, ..       portion 1 has no rows: it stays away

What comes of it is what the whole bucket at once would give.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.host.activity import Activity
from dovetail.joins.host.level import Arrival, Clock, Departure, LevelOutput, LevelTask
from dovetail.joins.host.portions import Cutting, residues
from dovetail.joins.inputs.watermarks import PartitionTime
from dovetail.joins.state.arrangement_stats import holdings
from dovetail.joins.state.portion import Portion, PortionStore
from dovetail.joins.state.store import RunStore


class BucketTask:
    """``level`` in ``bucket``, over ``portion_store``; the rest as in ``LevelTask``.

    A dataflow that says nothing of memory has the state in one portion, which stays open from batch to batch.
    """

    def __init__(
        self,
        dataflow: Dataflow,
        level: int,
        bucket: int,
        buckets: int,
        portion_store: PortionStore,
        snapshots: Mapping[str, pa.Table],
        clock: Clock = lambda: 0,
    ) -> None:
        self._dataflow, self._level, self._portion_store = dataflow, level, portion_store
        self._bucket, self._buckets = bucket, buckets
        self._snapshots, self._clock = snapshots, clock
        memory = dataflow.memory(level)
        self._cutting = None if memory is None else Cutting(dataflow, level, bucket, buckets, memory)
        self._open: tuple[RunStore, LevelTask] | None = None

    def on_batch(self, arrivals: Sequence[Arrival], partition_times: Sequence[PartitionTime] = ()) -> LevelOutput:
        """As that of ``LevelTask``. Partition times go to all portions."""
        dealt = self._dealt(arrivals)
        concerned = [one for one in self._portion_store.portions if partition_times or one.number in dealt]
        self._numbers = itertools.count(1 + max(one.number for one in self._portion_store.portions))
        outputs = [
            self._run(one, dealt.get(one.number, []), partition_times)
            for one in concerned or self._portion_store.portions[:1]
        ]
        return outputs[0] if len(outputs) == 1 else _together(outputs)

    def _dealt(self, arrivals: Sequence[Arrival]) -> dict[int, list[Arrival]]:
        """By number of the portion; broadcast rows go to all."""
        portions = self._portion_store.portions
        if len(portions) == 1:
            return {portions[0].number: list(arrivals)} if arrivals else {}
        found: dict[int, list[Arrival]] = defaultdict(list)
        directory = _directory(portions)
        for arrival in arrivals:
            edge = self._dataflow.edge(arrival.edge)
            if edge.broadcast:
                for portion in portions:
                    found[portion.number].append(arrival)
                continue
            depth = (len(directory) - 1).bit_length()
            numbers = directory[residues(arrival.rows, edge.keys, self._buckets, depth)]
            for number in np.unique(numbers):
                rows = arrival.rows.take(pa.array(np.flatnonzero(numbers == number)))
                found[int(number)].append(replace(arrival, rows=rows))
        return found

    def _run(
        self, portion: Portion, arrivals: Sequence[Arrival], partition_times: Sequence[PartitionTime]
    ) -> LevelOutput:
        store = self._portion_store.attach(portion)
        output = self._task(portion, store).on_batch(arrivals, partition_times)
        self._put(portion, store, output.activity)
        return output

    def _task(self, portion: Portion, store: RunStore) -> LevelTask:
        if self._open is not None and self._open[0] is store:
            return self._open[1]
        bucket = portion.bucket(self._bucket, self._buckets)
        task = LevelTask(self._dataflow, self._level, bucket, self._buckets, store, self._snapshots, self._clock)
        self._open = (store, task) if self._cutting is None else None
        return task

    def _put(self, portion: Portion, store: RunStore, activity: Activity) -> None:
        """Put back what a portion has come to, in halves where it holds too much."""
        weights = None if self._cutting is None else self._cutting.weights(portion, store)
        if self._cutting is None or weights is None:
            self._portion_store.put(portion, store)
        elif self._cutting.needs_split(portion, store, weights):
            for half, own in self._cutting.cut(portion, store, next(self._numbers)):
                self._task(half, own)  # opens it: what it holds is sorted then
                for name, held in holdings(own).items():
                    activity.held[name][half.bucket(self._bucket, self._buckets)] = held
                self._put(half, own, activity)
        else:
            self._portion_store.put(replace(portion, one_key=store.buffered_bytes), store)


def _directory(portions: Iterable[Portion]) -> npt.NDArray[np.int64]:
    """The number of the portion by the lower bits of a key: as many as the deepest one has."""
    found = list(portions)
    directory = np.zeros(1 << max(one.depth for one in found), dtype=np.int64)
    for one in found:
        directory[one.residue :: 1 << one.depth] = one.number
    return directory


def _together(outputs: Sequence[LevelOutput]) -> LevelOutput:
    """What all portions of a bucket say."""
    whole = LevelOutput(activity=Activity.of_batch(output.activity for output in outputs))
    departed: dict[tuple[int, int], list[pa.Table]] = defaultdict(list)
    for output in outputs:
        whole.late.extend(output.late)
        whole.refused.extend(output.refused)
        # Partition times go to all portions, so whoever says where the output's watermark stands says the same.
        whole.output_watermark = (
            output.output_watermark if output.output_watermark is not None else whole.output_watermark
        )
        whole.watermarks |= output.watermarks
        whole.held_by |= output.held_by
        for name, count in output.counters.items():
            whole.counters[name] = whole.counters.get(name, 0) + count
        for departure in output.departures:
            departed[departure.edge, departure.bucket].append(departure.rows)
    whole.departures = [
        Departure(edge, bucket, rows) for (edge, bucket), parts in departed.items() for rows in _met(parts)
    ]
    return whole


def _met(parts: Sequence[pa.Table]) -> list[pa.Table]:
    """The rows of several portions, without those that take each other back; none where nothing is left."""
    if len(parts) == 1:
        return list(parts)
    changes = Changes.concat([Changes(part) for part in parts])
    if not changes.only_insertions:
        changes = changes.consolidated()
    return [changes.table] if len(changes) else []
