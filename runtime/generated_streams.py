"""Writes the rows of generated streams: each is a query of the catalog, run by a thread that writes some at a time.

The number of the next row is the commit mark of the transaction that writes the rows before it, so none is written
twice or left out, whoever is killed when.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.errors import BrokerError
from dovetail.broker.names import MARKS_PARTITIONS, MARKS_TOPIC
from dovetail.broker.producer_queue import OutgoingRecords
from dovetail.broker.registry.client import schemas_of
from dovetail.broker.transactional_writer import TransactionalWriter, WriteTarget
from dovetail.changelog.changes import Changes
from dovetail.changelog.encode import records_of
from dovetail.changelog.errors import DovetailError, InternalError
from dovetail.changelog.work.backoff import Backoff
from dovetail.changelog.work.supervised_thread import PeriodicThread
from dovetail.runtime.clock import now_ms
from dovetail.runtime.faults import error_of
from dovetail.runtime.reconciler import Reconciler, Watched
from dovetail.runtime.retry_state import Failure
from dovetail.sql.catalog import Actual, Catalog, Query
from dovetail.sql.datagen.fields import Moment
from dovetail.sql.datagen.row_generator import RowGenerator
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream

_LOG = logging.getLogger("dovetail.datagen")
_PAUSES = Backoff(first_s=1.0, longest_s=15.0)
_TRANSACTION_S = 60.0
_CALL_S = 10.0
_TASKS = 4
"""Streams that are started or ended at once."""
_MOST_ROWS = 50_000
"""Of one transaction."""
_BEHIND_S = 1.0
"""Rows that were due longer ago are not made up for: a generator that was away goes on at its rate."""
_REPORTED_EVERY_S = 2.0


class GeneratedStream:
    """Writes the rows of one stream, from where the last transaction ended, until ``close``.

    written  the number of rows, from the first one on
    now_ms   the time of the last ones
    error    why it writes none now; None where it does
    """

    def __init__(self, query: Query, brokers: BrokerAddress, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises SqlError where the definition makes no rows."""
        definition = parse_one(query.sql)
        if not isinstance(definition, CreateStream):
            raise InternalError("what is to be generated is no stream", where=query.name)
        self.sql = query.sql
        self.written = int(query.progress.get("counts", {}).get("rows_out", 0))
        self.now_ms = int(query.progress.get("now_ms", 0))
        self.error: DovetailError | None = None
        self._name, self._topic, self._created_ms = query.name, query.topic, query.created_ms
        self._schema, self._generator = definition.schema, RowGenerator.of(definition)
        self._brokers, self._clock = brokers, clock
        self._target = WriteTarget(
            brokers, query.checkpoint, MARKS_TOPIC, _TRANSACTION_S, _CALL_S, epoch=uuid.uuid4().hex[:12]
        )
        self._writer: TransactionalWriter | None = None
        self._looked_s, self._owed = 0.0, 0.0
        self._thread = PeriodicThread(f"datagen {query.name}", self._generator.every_s, self._write, self._note)
        self._thread.start()

    def close(self) -> bool:
        """Begin to end it; whether it has."""
        self._thread.close(0)
        return self._thread.has_ended

    def await_end(self) -> None:
        self._thread.close(None)

    @property
    def is_writing(self) -> bool:
        return self._writer is not None and self._thread.is_healthy

    def _note(self, error: Exception) -> None:
        """Of a topic that is gone a producer says only that nothing was sent."""
        self._writer = None
        cause = error
        try:
            topics.expect_output(clients.admin(self._brokers), self._topic)
        except (BrokerError, DovetailError) as gone:
            cause = gone
        self.error = error_of(cause, f"the generated stream {self._name}")

    def _write(self) -> None:
        """The rows that are due, in one transaction."""
        writer = self._writer or self._opened()
        count = self._generator.due(self.written, self._due())
        if count:
            # Where the time of the machine is set back, that of the rows stands until it has come there again.
            self.now_ms = max(self.now_ms, now_ms())
            rows = self._generator.rows(self.written, count, Moment(self.now_ms * 1000, self._created_ms * 1000))
            records = records_of(self._schema, Changes.of(rows).table, schemas_of(self._brokers))
            writer.write(self.written + count - 1, [OutgoingRecords(self._topic, records)])
            self.written += count
        self.error = None

    def _opened(self) -> TransactionalWriter:
        """Nobody else writes from now on. Of one that has paused for a week the broker has forgotten the mark."""
        client = clients.admin(self._brokers)
        topics.expect_output(client, self._topic)
        topics.ensure(client, {MARKS_TOPIC: MARKS_PARTITIONS})
        writer = TransactionalWriter(self._target, 0)
        writer.take_over()
        self.written = max(writer.last_committed_batch + 1, self.written)
        self._looked_s, self._owed = self._clock(), 0.0
        self._writer = writer
        return writer

    def _due(self) -> int:
        now_s = self._clock()
        most = max(self._generator.rate * _BEHIND_S, 1.0)
        self._owed = min(self._owed + (now_s - self._looked_s) * self._generator.rate, most)
        self._looked_s = now_s
        count = min(int(self._owed), _MOST_ROWS)
        self._owed -= count
        return count


class GeneratedStreams:
    """The generated streams of a catalog: a ``QueryDriver``. There is one to a catalog, as there is one runner."""

    def __init__(self, catalog: Catalog, brokers: BrokerAddress) -> None:
        self._catalog = catalog
        self._brokers = brokers
        self._streams: dict[int, GeneratedStream] = {}
        self._reported: dict[int, tuple[float, int]] = {}
        """When the rows of a stream were reported, and how many."""
        self._tasks = ThreadPoolExecutor(_TASKS, thread_name_prefix="datagen")
        self._reconciler = Reconciler(catalog, Engine.DATAGEN, self, _PAUSES, _LOG, tasks=self._tasks)

    def look(self) -> None:
        self._reconciler.look()

    def stop(self) -> None:
        """End all; they go on at the next start. Once no task is left that would start one again."""
        self._tasks.shutdown(cancel_futures=True)
        for query in self._catalog.queries():
            if (stream := self._streams.pop(query.id, None)) is not None:
                stream.await_end()
                self._report(query, stream, now=True)
                self._catalog.report(query.id, now_ms=now_ms(), actual=Actual.STOPPED)

    def holds(self, query: Query) -> bool:
        return query.id in self._streams

    def start(self, query: Query) -> Failure | None:
        try:
            identity = f"dovetail.datagen.{query.name}.{uuid.uuid4().hex[:12]}"
            claimed = self._catalog.claim_checkpoint(query.id, identity)
            self._streams[query.id] = GeneratedStream(replace(query, checkpoint=claimed), self._brokers)
        except DovetailError as error:
            return Failure.of(error)
        return None

    def watch(self, query: Query) -> Watched:
        """One that has another text by now ends, and starts again with it."""
        stream = self._streams[query.id]
        if stream.error is not None and not stream.error.retry:
            stream.close()
            del self._streams[query.id]
            return Watched(failure=Failure.of(stream.error))
        if stream.sql != query.sql:
            self.end(query)
            return Watched()
        self._report(query, stream)
        return Watched(stream.is_writing, "" if stream.error is None else str(stream.error))

    def end(self, query: Query) -> bool:
        stream = self._streams.get(query.id)
        if stream is None:
            return True
        if not stream.close():
            return False
        self._report(query, stream, now=True)
        self._streams.pop(query.id)
        return True

    def discard(self, query: Query) -> bool:
        if query.checkpoint:
            topics.forget_group(clients.admin(self._brokers), query.checkpoint)
        self._reported.pop(query.id, None)
        return True

    def speaks_for(self, query: Query) -> bool:
        return True

    def _report(self, query: Query, stream: GeneratedStream, *, now: bool = False) -> None:
        """How many rows there are, every few seconds."""
        before_s, rows = self._reported.get(query.id, (0.0, -1))
        now_s = time.monotonic()
        if rows != stream.written and (now or now_s - before_s > _REPORTED_EVERY_S):
            counts = {"rows_out": stream.written}
            self._catalog.report(query.id, now_ms=now_ms(), progress={"counts": counts, "now_ms": stream.now_ms})
            self._reported[query.id] = now_s, stream.written
