"""Followers: the current rows of the streams that are looked up, kept on local disk as their topics go on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient

from broker import clients, topics
from broker.address import BrokerAddress
from broker.following import following
from broker.reader import as_records
from broker.topic_writer import TopicWriter
from changelog.changes import Changes
from changelog.decode import Decoder
from changelog.encode import records_of
from changelog.errors import ServiceUnavailable
from changelog.lookup import Key, Row, Rows
from changelog.schema import StreamSchema
from enrichment.stream_rows.rows_store import RowsStore
from sql.relations import Stream
from sql.syntax.statements import Index

_LOG = logging.getLogger("dovetail.worker")
_BATCH = 20_000
_POLL_S = 0.1
_PAUSE_S = 1.0
_WAIT_S = 60.0
_WRITE_S = 30.0


class Follower:
    """Reads committed records of a stream's topic into a store, on a thread; goes on from where the store ends."""

    def __init__(self, stream: Stream, indexes: Sequence[Index], path: Path, brokers: BrokerAddress) -> None:
        self.store = RowsStore(path, stream.schema, indexes)
        self._topic = stream.topic
        self._brokers = brokers
        self._admin: AdminClient = clients.admin(brokers)
        self._decoder = Decoder(stream.schema, self.store.columns)
        self._partitions = topics.partitions(self._admin, stream.topic)
        self._begin_anew_where_the_topic_was()
        self._reached = {partition: self.store.offsets.get(partition, 0) for partition in self._partitions}
        self._moved = threading.Condition()
        self._failure: Exception | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"follower-{stream.topic}", daemon=True)
        self._thread.start()

    def await_caught_up(self) -> None:
        """Return once everything is in that the topic holds now. Raises ServiceUnavailable if that takes too long."""
        ends = self._ends()
        deadline = time.monotonic() + _WAIT_S
        with self._moved:
            while not all(self._reached[partition] >= end for partition, end in ends.items()):
                if self._failure is not None:
                    raise self._unavailable(str(self._failure)) from self._failure
                if not self._moved.wait(deadline - time.monotonic()):
                    raise self._unavailable(f"not read to its end within {_WAIT_S:g} s")

    def lag(self) -> int:
        """Offsets between what is in and the end of the topic."""
        return sum(max(0, end - self._reached[partition]) for partition, end in self._ends().items())

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()
        self.store.close()

    def _begin_anew_where_the_topic_was(self) -> None:
        """A topic that ends before what was read of it is another topic of the same name."""
        ends = self._ends()
        if any(offset > ends.get(partition, 0) for partition, offset in self.store.offsets.items()):
            self.store.clear()

    def _ends(self) -> Mapping[int, int]:
        try:
            return topics.ends(self._admin, {self._topic: self._partitions})[self._topic]
        except (KafkaException, TimeoutError) as failure:
            raise self._unavailable("the broker does not answer") from failure

    def _unavailable(self, why: str) -> ServiceUnavailable:
        return ServiceUnavailable(
            f'"{self._topic}", which is looked up, cannot be read: {why}', where=str(self._brokers)
        )

    # -- on the thread

    def _follow(self) -> None:
        while not self._stopped.is_set():
            consumer = self._consumer()
            try:
                self._read(consumer)
            except Exception as failure:  # noqa: BLE001 - told to those who wait, and tried again
                _LOG.exception("following %s", self._topic)
                with self._moved:
                    self._failure = failure
                    self._moved.notify_all()
                self._stopped.wait(_PAUSE_S)
            finally:
                consumer.close()

    def _read(self, consumer: Consumer) -> None:
        while not self._stopped.is_set():
            first = consumer.poll(_POLL_S)
            if first is not None:
                # A call that waits for a batch waits its whole time; this one takes what is there.
                self._take([first, *consumer.consume(_BATCH, 0)])

    def _take(self, messages: list[Message]) -> None:
        records, reached = [], dict[int, int]()
        for message in messages:
            partition, offset = message.partition() or 0, message.offset() or 0
            error = message.error()
            if error is None:
                records.append(message)
                reached[partition] = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                # The offsets before it may be marks of transactions, which no reader sees.
                reached[partition] = offset
            elif error.fatal() or not error.retriable():
                _LOG.warning("following %s: %s", self._topic, error.str())
        if not reached:
            return
        self._apply(records, reached)
        with self._moved:
            self._failure = None
            self._reached.update(reached)
            self._moved.notify_all()

    def _apply(self, records: list[Message], reached: Mapping[int, int]) -> None:
        if not records and all(self._reached[partition] >= offset for partition, offset in reached.items()):
            return
        decoded = self._decoder.decode(as_records(records))
        if decoded.rejected.num_rows:
            first = decoded.rejected.slice(0, 1).to_pylist()[0]
            _LOG.warning("%s: %d records left out: %s", self._topic, decoded.rejected.num_rows, first["reason"])
        self.store.apply(decoded.rows, reached)

    def _consumer(self) -> Consumer:
        reached = {partition: self._reached[partition] for partition in self._partitions}
        return following(self._brokers, self._topic, reached, group="dovetail-follower", reset="earliest")


class FollowedRows:
    """The rows of a followed stream, as dictionaries ask for them and write them."""

    def __init__(self, follower: Follower, stream: Stream, brokers: BrokerAddress) -> None:
        self._follower = follower
        self._stream = stream
        self._writer = TopicWriter(brokers, _WRITE_S)

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        return self._follower.store.fetch(by, keys)

    def load(self) -> Iterator[list[Row]]:
        self._follower.await_caught_up()
        return self._follower.store.load()

    def store(self, rows: Sequence[Row]) -> None:
        """Into the topic, from where every follower has it; into the store at once, so that the next batch does."""
        if not rows:
            return
        schema: StreamSchema = self._stream.schema
        arrays = [pa.array([row[place] for row in rows], column.type) for place, column in enumerate(schema.columns)]
        table = pa.Table.from_arrays(arrays, names=[column.name for column in schema.columns])
        self._writer.write(self._stream.topic, records_of(schema, Changes.of(table).table))
        self._follower.store.store(rows)


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
