"""The memory host: the plan and the operators of every other host, in this process; topics are lists."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.decode import Decoder, parted
from dovetail.changelog.encode import encode
from dovetail.changelog.errors import InternalError
from dovetail.changelog.event_times import unusable
from dovetail.changelog.schema import ARRIVAL, Kind
from dovetail.joins.dataflow.graph import Sink, TopicScan
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.joins.inputs.watermarks import PartitionTime
from dovetail.sql.catalog import Catalog
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.statements import System
from tests.conformance.external import Database, SqlDatabase
from tests.conformance.host import Clock, Launch
from tests.conformance.lookups import Looking, Lookups
from tests.conformance.records import Record
from tests.conformance.topics import Topic, as_batch

BUCKETS = 2


class _Running(Protocol):
    """A fragment that runs."""

    @property
    def launch(self) -> Launch: ...

    def advance(self, limit: int | None) -> bool:
        """Take in one batch: at most ``limit`` records of each topic. False if there is none left."""
        ...

    def restart(self) -> None: ...


@dataclass
class _Joining:
    """A dataflow, how far it has read the topic of each scan, and where it writes."""

    topics: Mapping[str, Topic]
    launch: Launch
    query: LocalQuery
    decoders: list[Decoder]
    positions: list[int]
    buckets: Iterator[int]
    opening: bool = True
    """What stands before the first record has not been asked for."""

    @staticmethod
    def of(launch: Launch, topics: Mapping[str, Topic], rescaled: Sequence[int]) -> _Joining:
        dataflow = launch.fragment.dataflow
        query = LocalQuery(dataflow, BUCKETS, launch.snapshots)
        decoders = [Decoder(scan.stream, scan.columns) for scan in dataflow.scans]
        positions = [topics[s.topic].start_of(s) for s in dataflow.scans]
        return _Joining(topics, launch, query, decoders, positions, itertools.cycle(rescaled))

    def advance(self, limit: int | None) -> bool:
        batch: dict[int, pa.Table] = {}
        marks: list[PartitionTime] = []
        for index, scan in enumerate(self.launch.fragment.dataflow.scans):
            records = as_batch(self.topics[scan.topic].records, self.positions[index]).slice(0, limit)
            self.positions[index] += records.num_rows
            if records.num_rows:
                batch[index], heard_ms = _decoded(self.decoders[index], records, scan)
                marks += [PartitionTime(scan.edge, 0, heard_ms)] if heard_ms is not None else []
        if not batch and not self.opening:
            return False
        self.opening = False
        rows, sink = self.query.feed(batch, marks), self.launch.fragment.dataflow.sink
        written = self.topics[self.launch.topic]
        if rows is not None:
            written.append(_records(_net(rows) if sink.exchanged else rows, sink))
        if self.query.output_watermark is not None:
            written.append([Record(None, None, self.query.output_watermark)])
        if batch and (buckets := next(self.buckets, None)) is not None:
            self.query.rescale(buckets)
        return bool(batch)

    def restart(self) -> None:
        self.query.restart()


@dataclass
class MemoryHost:
    """Queries run in the order in which they were started, so a view is filled before those that read it.

    A step is one batch, or with ``batch_records`` as many as it takes; history is one, or one of ``history_records``.

    rescaled   the numbers of buckets that a query has after its batches, one after the other
    """

    batch_records: int | None = None
    history_records: int | None = field(default=None, kw_only=True)
    rescaled: Sequence[int] = ()
    topics: dict[str, Topic] = field(default_factory=dict)
    running: dict[str, _Running] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    prefix: str = ""
    lookups: Lookups | None = None

    @cached_property
    def folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="conformance-"))

    @cached_property
    def databases(self) -> Mapping[str, Database]:
        """An SQLite file stands for every server."""
        file = self.folder / "source.db"
        database = SqlDatabase("sqlite", {"path": str(file)}, sa.create_engine(f"sqlite:///{file}"))
        return {"mysql": database, "clickhouse": database}

    def _tables(self, catalog: Catalog) -> Lookups:
        if self.lookups is None:
            self.lookups = Lookups(self.topics, catalog, self.folder)
        return self.lookups

    def pass_time(self, ms: int) -> None:
        self.clock.ahead_ms += ms

    def run(self, statement: System) -> None:
        if self.lookups is not None:
            self.lookups.reload(statement.name)

    def create_topic(self, topic: str) -> None:
        self.topics.setdefault(topic, Topic())

    def send(self, topic: str, records: Iterable[Record]) -> None:
        self.topics[topic].append(records)

    def records(self, topic: str) -> Sequence[Record]:
        return self.topics[topic].records

    def launch(self, query: Launch) -> None:
        if query.fragment.engine is Engine.FAUST:
            started: _Running = Looking.of(query, self.topics, self._tables(query.catalog), self.clock)
        else:
            started = _Joining.of(query, self.topics, self.rescaled)
        self.running[query.name] = started
        started.advance(self.history_records)

    def settle(self) -> None:
        for running in self.running.values():
            while running.advance(self.batch_records):
                pass

    def restart(self, name: str) -> None:
        self.running[name].restart()

    def close(self) -> None:
        self.running.clear()
        if self.lookups is not None:
            self.lookups.close()
        if "folder" in vars(self):
            shutil.rmtree(self.folder, ignore_errors=True)


def _decoded(decoder: Decoder, records: pa.Table, scan: TopicScan) -> tuple[pa.Table, int | None]:
    """The rows, and the greatest time of a heartbeat. No record of a case is to be rejected."""
    batch, heartbeats = parted(records)
    decoded = decoder.decode(batch)
    rejected = decoded.rejected
    if scan.watermark is not None and not rejected.num_rows:
        nullable = scan.stream.kind is not Kind.APPEND
        column, future_ms = scan.watermark.column, scan.watermark.max_future_ms
        _, rejected = unusable(decoded.rows, batch, column, nullable=nullable, max_future_ms=future_ms)
    if rejected.num_rows:
        first = rejected.to_pylist()[0]
        raise InternalError(f"a record of {decoder.schema.name} is rejected: {first['reason']}: {first['value']!r}")
    return decoded.rows, pc.max(heartbeats["event_ms"]).as_py() if scan.watermark is not None else None


def _net(rows: pa.Table) -> pa.Table:
    """Rows of several buckets, which meet in one: what is taken back comes before what is put in its place."""
    without_arrival = rows.drop_columns([name for name in rows.column_names if name == ARRIVAL])
    return Changes(without_arrival).consolidated().table.sort_by(DELTA)


def _records(rows: pa.Table, sink: Sink) -> list[Record]:
    key = tuple(zip(sink.key, sink.key_names, strict=True))
    encoded = encode(rows, sink.columns, key, sink.updating, sink.format)
    now_ms = time.time_ns() // 1_000_000
    return [Record(key, value, now_ms) for key, value in zip(encoded.keys, encoded.values, strict=True)]
