"""The in-process host: a dataflow run in memory, for tests and for trying a query out."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.event_times import greatest_ms
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.ports import transformed
from dovetail.joins.host.activity import Activity, NodeWork
from dovetail.joins.host.bucket import BucketTask
from dovetail.joins.host.exchange import dealt
from dovetail.joins.host.level import HERE, Arrival, Departure, Late, LevelOutput, Refused
from dovetail.joins.host.memory_portion_store import MemoryPortionStore
from dovetail.joins.host.repartition import Repartition
from dovetail.joins.inputs.watermarks import PartitionTime
from dovetail.joins.state.portion import portion_of
from dovetail.joins.state.store import RunEntry, RunStore


class LocalQuery:
    """A dataflow with its state in memory, cut into buckets as in the other hosts."""

    def __init__(self, dataflow: Dataflow, buckets: int = 2, snapshots: Mapping[str, pa.Table] | None = None) -> None:
        self._dataflow = dataflow
        self._buckets = buckets
        self._snapshots = dict(snapshots or {})
        self._portion_stores = {
            (level, bucket): MemoryPortionStore() for level in self._levels for bucket in range(buckets)
        }
        self._open()

    @property
    def _levels(self) -> range:
        return range(1, self._dataflow.levels + 1)

    def _open(self) -> None:
        for portion_store in self._portion_stores.values():
            portion_store.restart()
        self._tasks = {
            (level, bucket): BucketTask(self._dataflow, level, bucket, self._buckets, portion_store, self._snapshots)
            for (level, bucket), portion_store in self._portion_stores.items()
        }
        self._transforms = [
            tuple(step.bound(self._snapshots) for step in scan.transforms) for scan in self._dataflow.scans
        ]
        self.counters: dict[str, int] = defaultdict(int)
        self.late: list[Late] = []
        self.refused: list[Refused] = []
        self.output_watermark: int | None = None
        self.activity = Activity()

    def restart(self) -> None:
        """Lose all that is in memory, and go on from the durable copy."""
        self._open()

    def rescale(self, buckets: int) -> None:
        """As ``restart``, with the state cut into ``buckets``."""
        portion_stores: dict[tuple[int, int], MemoryPortionStore] = {}
        for level in self._levels:
            repartition = Repartition(self._dataflow, level, self._buckets, buckets)
            pieces: dict[int, list[RunEntry]] = defaultdict(list)
            for bucket in range(self._buckets):
                for entry_id, entry in self._portion_stores[level, bucket].entries:
                    for target, piece in repartition.parts(bucket, entry, portion_of(entry_id)):
                        pieces[target].append(piece)
            former = (self._portion_stores[level, bucket].scalars for bucket in range(self._buckets))
            scalars = repartition.scalars(itertools.chain.from_iterable(former))
            for bucket in range(buckets):
                portion_stores[level, bucket] = MemoryPortionStore(RunStore.seeded(pieces[bucket], scalars))
        self._portion_stores, self._buckets = portion_stores, buckets
        self._open()

    @property
    def stores(self) -> Iterator[RunStore]:
        """The state of all levels and buckets, by portion."""
        return (store for portion_store in self._portion_stores.values() for store in portion_store.stores)

    def feed(self, decoded: Mapping[int, pa.Table], partition_times: Iterable[PartitionTime] = ()) -> pa.Table | None:
        """One batch: decoded rows by index of scan. The rows that reach the sink, None if there are none.

        Rows of one key come in the order in which they have to be written: retractions before insertions.
        ``partition_times``, of the edges of scans, come besides those that the rows make: heartbeats, idle partitions.
        Where the watermark of the output has advanced, ``output_watermark`` is where it stands now.
        """
        scanned = Activity()
        waiting = self._scanned(decoded, scanned)
        shown = self._on_every_edge([*self._partition_times(decoded), *partition_times])
        done = [scanned]
        self.output_watermark = None
        for level in self._levels:
            arrived, waiting = self._split(waiting, level)
            for bucket in range(self._buckets):
                output = self._run(level, bucket, arrived[bucket], shown)
                waiting.extend(output.departures)
                self.output_watermark = (
                    output.output_watermark if output.output_watermark is not None else self.output_watermark
                )
                done.append(output.activity)
        self.activity.add(Activity.of_batch(done))
        return self._sunk(waiting)

    def _scanned(self, decoded: Mapping[int, pa.Table], activity: Activity) -> list[Departure]:
        departures: list[Departure] = []
        for index, rows in decoded.items():
            edge = self._dataflow.edge(self._dataflow.scans[index].edge)
            sent = transformed(rows, self._transforms[index])
            activity.scans[index] = NodeWork((rows.num_rows,), rows.num_rows, sent.num_rows, 0)
            departures.extend(Departure(edge.id, bucket, part) for bucket, part in dealt(sent, edge, self._buckets))
        return departures

    def _partition_times(self, decoded: Mapping[int, pa.Table]) -> list[PartitionTime]:
        partition_times = []
        for index, rows in decoded.items():
            scan = self._dataflow.scans[index]
            watermark = scan.watermark
            event_ms = (
                None if watermark is None or watermark.from_heartbeats else greatest_ms(rows.column(watermark.column))
            )
            if event_ms is not None:
                partition_times.append(PartitionTime(scan.edge, 0, event_ms))
        return partition_times

    def _on_every_edge(self, partition_times: Iterable[PartitionTime]) -> list[PartitionTime]:
        """The partition times of scans, for each edge that has them."""
        edges = {scan.edge: self._dataflow.beyond(scan.edge) for scan in self._dataflow.scans}
        return [replace(one, edge=edge) for one in partition_times for edge in edges[one.edge]]

    def _split(self, waiting: list[Departure], level: int) -> tuple[dict[int, list[Arrival]], list[Departure]]:
        """What ``level`` takes in, by bucket, and what travels on."""
        arrived: dict[int, list[Arrival]] = defaultdict(list)
        passing = []
        for departure in waiting:
            if self._dataflow.edge(departure.edge).level == level:
                arrived[departure.bucket].append(Arrival(departure.edge, departure.rows))
            else:
                passing.append(departure)
        return arrived, passing

    def _run(
        self, level: int, bucket: int, arrivals: list[Arrival], partition_times: list[PartitionTime]
    ) -> LevelOutput:
        place = (level, bucket)
        levels = {one.edge: self._dataflow.listening(one.edge) for one in partition_times}
        output = self._tasks[place].on_batch(arrivals, [one for one in partition_times if level in levels[one.edge]])
        for name, count in output.counters.items():
            self.counters[name] += count
        self.late.extend(output.late)
        self.refused.extend(output.refused)
        return output

    def _sunk(self, waiting: list[Departure]) -> pa.Table | None:
        by_bucket: dict[int, list[pa.Table]] = defaultdict(list)
        for departure in waiting:
            by_bucket[departure.bucket].append(departure.rows)
        parts = []
        for bucket in sorted(by_bucket):
            changes = Changes(pa.concat_tables(by_bucket[bucket]).combine_chunks())
            if bucket != HERE and not changes.only_insertions:
                changes = changes.consolidated()
            parts.append(changes.table.sort_by(DELTA))
        return pa.concat_tables(parts).combine_chunks() if parts else None
