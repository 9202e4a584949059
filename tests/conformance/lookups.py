"""Lookup fragments in this process: the enricher, dictionaries and row stores that every worker has, no Kafka."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.decode import Decoder
from dovetail.changelog.errors import InternalError
from dovetail.changelog.lookup import Row
from dovetail.changelog.schema import StreamSchema
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.resources import Resources
from dovetail.enrichment.enricher import Enricher
from dovetail.enrichment.memo.memo import Memo, MemoStore
from dovetail.enrichment.stream_rows.rows_store import RowsStore
from dovetail.joins.dataflow.ports import Ingest
from dovetail.services.worker.tables.followers import FollowedRows, Follower, Followers, written_rows
from dovetail.services.worker.tables.lookup_tables import Tables
from dovetail.sql.catalog import Catalog
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.statements import Index
from tests.conformance.host import Clock, Launch
from tests.conformance.records import Record
from tests.conformance.topics import Topic, as_batch


@dataclass
class Looking:
    """A lookup fragment, and how far it has read its topic."""

    launch: Launch
    topics: Mapping[str, Topic]
    enricher: Enricher
    lookups: Lookups
    clock: Clock
    position: int

    @staticmethod
    def of(launch: Launch, topics: Mapping[str, Topic], lookups: Lookups, clock: Clock) -> Looking:
        flow = launch.fragment.lookup_flow
        memo = None if flow.ingest is Ingest.APPEND else Memo(MemoStore(":memory:"), flow.ingest)
        enricher = Enricher(flow, lookups.open(flow.accesses), memo, launch.snapshots)
        return Looking(launch, topics, enricher, lookups, clock, topics[flow.scan.topic].start_of(flow.scan))

    def advance(self, limit: int | None) -> bool:
        scan = self.launch.fragment.lookup_flow.scan
        records = as_batch(self.topics[scan.topic].records, self.position).slice(0, limit)
        if not records.num_rows:
            return False
        self.lookups.catch_up()
        now_ms = self.clock.now_ms
        step = self.enricher.step(records, now_ms)
        if step.rejected.num_rows:
            first = step.rejected.to_pylist()[0]
            raise InternalError(f"a record of {scan.stream.name} is rejected: {first['reason']}: {first['value']!r}")
        messages = zip(step.messages.keys, step.messages.values, strict=True)
        self.topics[self.launch.topic].append(Record(key, value, now_ms) for key, value in messages)
        self.enricher.confirm(step.updates)
        self.position += records.num_rows
        return True

    def restart(self) -> None:
        """What was confirmed is all that a restart knows."""
        self.enricher.discard()


NO_BROKERS = BrokerAddress("")


class Lookups(Tables):
    """What the queries of a case look up, opened as a worker opens it, but that the topics are in this process."""

    def __init__(self, topics: Mapping[str, Topic], catalog: Catalog, folder: Path) -> None:
        self._topics = topics
        super().__init__(catalog, NO_BROKERS, None, Outside(folder), folder)

    def __post_init__(self) -> None:
        self.followers = TopicFollowers(self._stream, self.folder, self._topics)
        self._resources = Resources(None, self.outside, self.followers.rows, self.folder, self.followers.rows)

    def reload(self, name: str | None) -> None:
        for held, layout in self.layouts.items():
            if name in (None, held):
                layout.invalidate()


class TopicFollower(Follower):
    """The current rows of a keyed stream, brought up to the end of its topic when somebody is about to look."""

    def __init__(self, stream: Stream, indexes: Sequence[Index], path: Path, topic: Topic) -> None:
        self.store = RowsStore(path, stream.schema, indexes)
        self._decoder = Decoder(stream.schema, self.store.columns)
        self._watches = []
        self._watching = threading.Lock()
        self._records = topic

    def await_caught_up(self) -> None:
        start = self.store.offsets.get(0, 0)
        if start < self._records.end:
            records = as_batch(self._records.records, start)
            self._taken(self._decoder.decode(records).rows, {0: self._records.end})

    def close(self) -> None:
        self.store.close()


class TopicRows(FollowedRows):
    """Rows that a dictionary writes go through the topic, as every other change of the stream."""

    def __init__(self, follower: TopicFollower, schema: StreamSchema, topic: Topic) -> None:
        self._follower = follower
        self._schema = schema
        self._records = topic

    def write(self, rows: Sequence[Row], deleted: Sequence[Row] = ()) -> None:
        if not rows and not deleted:
            return
        written = written_rows(self._schema, rows, deleted)
        now_ms = time.time_ns() // 1_000_000
        self._records.append(
            Record(key, value, now_ms) for key, value in zip(written.keys, written.values, strict=True)
        )
        self._follower.await_caught_up()


class TopicFollowers(Followers):
    """Followers of topics in this process."""

    def __init__(
        self,
        stream_of: Callable[[str], tuple[Stream, Sequence[Index]]],
        folder: Path,
        topics: Mapping[str, Topic],
    ) -> None:
        super().__init__(stream_of, folder, NO_BROKERS)
        self._topics = topics

    def follower(self, name: str) -> Follower:
        if name not in self._followers:
            stream, indexes = self._stream_of(name)
            self._streams[name] = stream
            self._followers[name] = TopicFollower(
                stream, indexes, self._folder / f"{name}.rows", self._topics[stream.topic]
            )
        return self._followers[name]

    def rows(self, name: str) -> FollowedRows:
        follower = self.follower(name)
        assert isinstance(follower, TopicFollower)
        stream = self._streams[name]
        return TopicRows(follower, stream.schema, self._topics[stream.topic])
