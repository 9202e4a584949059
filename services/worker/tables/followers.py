"""Followers: the current rows of the streams that are looked up, kept on local disk as their topics go on."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.errors import BrokerError
from dovetail.broker.following import TakenRecords, TopicFollower
from dovetail.broker.registry.client import schemas_of
from dovetail.broker.topic_writer import TopicWriter
from dovetail.changelog.changes import Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import Encoded, records_of
from dovetail.changelog.encodings.interface import SchemaSource
from dovetail.changelog.errors import ServiceUnavailable, UnknownName
from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.changelog.schema import StreamSchema
from dovetail.dictionaries.resources import Watch
from dovetail.enrichment.stream_rows.rows_store import RowsStore
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.statements import Index

_LOG = logging.getLogger("dovetail.worker")
_BATCH = 20_000
_WRITE_S = 30.0
_LOOK_S = 5.0
"""Between two looks whether the topic is still the one that is followed."""


@dataclass(eq=False)
class KeyWatch:
    """How many records of ``keys``, over the columns ``by``, were taken in: a ``Watch``."""

    by: tuple[str, ...]
    keys: frozenset[Key]
    count: Counter[Key] = field(default_factory=Counter)

    def see(self, rows: pa.Table) -> None:
        columns = [rows.column(name).to_pylist() for name in self.by]
        found = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        self.count.update(filter(self.keys.__contains__, found))


class Follower:
    """Reads committed records of a stream's topic into a store, on a thread; goes on from where the store ends.

    A topic that is deleted and made again is read from its beginning, into an empty store. Until that is so, nobody is
    told that the store has caught up.
    """

    def __init__(self, stream: Stream, indexes: Sequence[Index], path: Path, brokers: BrokerAddress) -> None:
        self.store = RowsStore(path, stream.schema, indexes)
        self._watches: list[KeyWatch] = []
        self._watching = threading.Lock()
        self._topic = stream.topic
        self._brokers = brokers
        self._admin = clients.admin(brokers)
        self._decoder = Decoder(stream.schema, self.store.columns, schemas_of(brokers))
        self._partitions = topics.partitions(self._admin, stream.topic)
        self._next_look_s = 0.0
        self._made_again = threading.Event()
        self._follower = TopicFollower(
            brokers, stream.topic, self, group="dovetail-follower", reset="earliest", batch=_BATCH
        )
        if self._is_another():
            self.store.clear(self._topic_id())
        self._follower.place({partition: self.store.offsets.get(partition, 0) for partition in self._partitions})
        self._follower.start()

    def await_caught_up(self) -> None:
        """Return once everything is in that the topic holds now.

        Raises ServiceUnavailable if that takes too long, or if the topic has just been made again.
        """
        ends = self._ends()
        if self._made_again.is_set() or self._is_another(ends):
            self._made_again.set()
            raise self.unavailable("it was deleted and made again, and is about to be read from its beginning")
        self._follower.await_reached(ends)

    def lag(self) -> int:
        """Offsets between what is in and the end of the topic."""
        reached = self._follower.reached
        return sum(max(0, end - reached[partition]) for partition, end in self._ends().items())

    def close(self) -> None:
        self._follower.close()
        self.store.close()

    def _is_another(self, ends: Mapping[int, int] | None = None) -> bool:
        """Whether the store holds the rows of another topic of this name. Asked anew every so often, and at once where
        the topic ends before what was read of it.
        """
        ends = self._ends() if ends is None else ends
        backwards = any(offset > ends.get(partition, 0) for partition, offset in self.store.offsets.items())
        now_s = time.monotonic()
        if not backwards and now_s < self._next_look_s:
            return False
        self._next_look_s = now_s + _LOOK_S
        return backwards or self.store.topic_id != self._topic_id()

    def _topic_id(self) -> str:
        try:
            return topics.ids(self._admin, [self._topic])[self._topic]
        except (ServiceUnavailable, UnknownName) as failure:
            raise self.unavailable(str(failure)) from failure

    def _ends(self) -> Mapping[int, int]:
        try:
            return topics.ends(self._admin, {self._topic: self._partitions})[self._topic]
        except BrokerError as failure:
            raise self.unavailable(failure.reason) from failure

    @contextmanager
    def watched(self, by: Sequence[str], keys: Sequence[Key]) -> Iterator[KeyWatch]:
        """Counts the records of some keys that are taken in within the block."""
        watch = KeyWatch(tuple(by), frozenset(keys))
        with self._watching:
            self._watches.append(watch)
        try:
            yield watch
        finally:
            with self._watching:
                self._watches.remove(watch)

    # -- on the thread

    def take(self, records: TakenRecords, ended: Mapping[int, int]) -> None:
        reached = {**ended, **{partition: max(end, ended.get(partition, 0)) for partition, end in records.ends.items()}}
        self._apply(records, reached)
        self._follower.move(reached)

    def _apply(self, records: TakenRecords, reached: Mapping[int, int]) -> None:
        before = self._follower.reached
        if not records and all(before[partition] >= offset for partition, offset in reached.items()):
            return
        decoded = self._decoder.decode(records.table(headed=self._decoder.headed))
        if decoded.rejected.num_rows:
            first = decoded.rejected.slice(0, 1).to_pylist()[0]
            _LOG.warning("%s: %d records left out: %s", self._topic, decoded.rejected.num_rows, first["reason"])
        self._taken(decoded.rows, reached)

    def _taken(self, rows: pa.Table, reached: Mapping[int, int]) -> None:
        self.store.apply(rows, reached)
        with self._watching:
            for watch in self._watches:
                watch.see(rows)

    def after_poll(self) -> bool:
        if not self._made_again.is_set():
            return False
        self.store.clear(self._topic_id())
        self._partitions = topics.partitions(self._admin, self._topic)
        self._follower.place(dict.fromkeys(self._partitions, 0))
        self._made_again.clear()
        return True

    def missed(self) -> None:
        """Goes on from the earliest record that is there."""

    def unavailable(self, why: str) -> ServiceUnavailable:
        return ServiceUnavailable(
            f'"{self._topic}", which is looked up, cannot be read: {why}', where=str(self._brokers)
        )


class FollowedRows:
    """The rows of a followed stream, as dictionaries ask for them and write them."""

    def __init__(self, follower: Follower, stream: Stream, brokers: BrokerAddress) -> None:
        self._follower = follower
        self._stream = stream
        self._writer = TopicWriter(brokers, _WRITE_S)
        self._schemas = schemas_of(brokers)

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        return self._follower.store.fetch(by, keys)

    def load(self) -> Iterator[list[Row]]:
        self._follower.await_caught_up()
        return self._follower.store.load()

    def watched(self, by: Sequence[str], keys: Sequence[Key]) -> AbstractContextManager[Watch]:
        return self._follower.watched(by, keys)

    def write(self, rows: Sequence[Row], deleted: Sequence[Row] = ()) -> None:
        """Into the topic alone: from there the store has them in the order in which everybody else does."""
        if not rows and not deleted:
            return
        self._writer.write(self._stream.topic, written_rows(self._stream.schema, rows, deleted, self._schemas))
        self._follower.await_caught_up()


def written_rows(
    schema: StreamSchema, rows: Sequence[Row], deleted: Sequence[Row], schemas: SchemaSource | None = None
) -> Encoded:
    """The records that put rows, and delete others, of which the key counts."""
    arrays = [
        pa.array([row[place] for row in (*rows, *deleted)], column.type) for place, column in enumerate(schema.columns)
    ]
    table = pa.Table.from_arrays(arrays, names=[column.name for column in schema.columns])
    deltas = np.array([1] * len(rows) + [-1] * len(deleted))
    return records_of(schema, Changes.with_deltas(table, deltas).table, schemas)


class Followers:
    """One follower for each stream that is asked for, started when it is first asked for."""

    def __init__(
        self, stream_of: Callable[[str], tuple[Stream, Sequence[Index]]], folder: Path, brokers: BrokerAddress
    ) -> None:
        self._stream_of = stream_of
        self._folder = folder
        self._brokers = brokers
        self._followers: dict[str, Follower] = {}
        self._streams: dict[str, Stream] = {}
        self._opening = threading.Lock()

    def follower(self, name: str) -> Follower:
        with self._opening:
            if name not in self._followers:
                stream, indexes = self._stream_of(name)
                path = self._folder / f"rows-{name}.db"
                self._followers[name] = Follower(stream, indexes, path, self._brokers)
                self._streams[name] = stream
            return self._followers[name]

    def rows(self, name: str) -> FollowedRows:
        follower = self.follower(name)
        return FollowedRows(follower, self._streams[name], self._brokers)

    def await_caught_up(self) -> None:
        for follower in list(self._followers.values()):
            follower.await_caught_up()

    def lags(self) -> dict[str, int]:
        found = {}
        for name, follower in list(self._followers.items()):
            with suppress(ServiceUnavailable):
                found[name] = follower.lag()
        return found

    def close(self) -> None:
        for follower in self._followers.values():
            follower.close()
