"""The memory host: the plan and the operators of every other host, in this process; topics are lists."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from changelog.decode import Decoder
from changelog.encode import encode
from changelog.errors import InternalError
from joins.dataflow import Sink
from joins.local import LocalQuery
from tests.conformance.host import Launch
from tests.conformance.records import Record
from tests.conformance.topics import Topic, as_batch

BUCKETS = 2


@dataclass
class _Running:
    """A query, how far it has read the topic of each scan, and where it writes."""

    query: LocalQuery
    launch: Launch
    decoders: list[Decoder]
    positions: list[int]

    def advance(self, topics: Mapping[str, Topic], limit: int | None) -> bool:
        """Take in one batch: at most ``limit`` records of each topic. False if there is none left."""
        batch = {}
        for index, scan in enumerate(self.launch.dataflow.scans):
            records = as_batch(topics[scan.topic].records, self.positions[index]).slice(0, limit)
            self.positions[index] += records.num_rows
            if records.num_rows:
                batch[index] = _decoded(self.decoders[index], records)
        rows = self.query.feed(batch) if batch else None
        if rows is not None:
            topics[self.launch.topic].append(_records(rows, self.launch.dataflow.sink))
        return bool(batch)


@dataclass
class MemoryHost:
    """Queries run in the order in which they were started, so a view is filled before those that read it.

    A step is one batch, or with ``batch_records`` as many as it takes. History is one batch in any case.
    """

    batch_records: int | None = None
    topics: dict[str, Topic] = field(default_factory=dict)
    running: dict[str, _Running] = field(default_factory=dict)

    def create_topic(self, topic: str) -> None:
        self.topics.setdefault(topic, Topic())

    def send(self, topic: str, records: Iterable[Record]) -> None:
        self.topics[topic].append(records)

    def records(self, topic: str) -> Sequence[Record]:
        return self.topics[topic].records

    def launch(self, query: Launch) -> None:
        scans = query.dataflow.scans
        self.running[query.name] = _Running(
            LocalQuery(query.dataflow, BUCKETS, query.snapshots),
            query,
            [Decoder(scan.stream, scan.columns) for scan in scans],
            [self.topics[scan.topic].start_of(scan) for scan in scans],
        )
        self.running[query.name].advance(self.topics, None)

    def settle(self) -> None:
        for running in self.running.values():
            while running.advance(self.topics, self.batch_records):
                pass

    def restart(self, name: str) -> None:
        self.running[name].query.restart()

    def close(self) -> None:
        self.running.clear()


def _decoded(decoder: Decoder, records: pa.Table) -> pa.Table:
    decoded = decoder.decode(records)
    if decoded.rejected.num_rows:
        first = decoded.rejected.to_pylist()[0]
        raise InternalError(f"a record of {decoder.schema.name} is rejected: {first['reason']}: {first['value']!r}")
    return decoded.rows


def _records(rows: pa.Table, sink: Sink) -> list[Record]:
    key = tuple(zip(sink.key, sink.key_names, strict=True))
    encoded = encode(rows, sink.columns, key, sink.updating, sink.format)
    now_ms = time.time_ns() // 1_000_000
    return [Record(key, value, now_ms) for key, value in zip(encoded.keys, encoded.values, strict=True)]
