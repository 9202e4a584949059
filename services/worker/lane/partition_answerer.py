"""What answers the batches of a partition: the flow, once its tables have caught up, with the partition's memo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.names import memo_topic
from dovetail.broker.reader import TopicReader
from dovetail.broker.registry.client import schemas_of
from dovetail.changelog.encodings.message_sizes import MESSAGE_BYTES
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.lookup import Lookup
from dovetail.enrichment.enricher import AnsweredBatch, Enricher
from dovetail.enrichment.memo.memo import Memo
from dovetail.enrichment.memo.memo_store import MemoStore, Update
from dovetail.joins.dataflow.lookup import Access, LookupFlow
from dovetail.joins.dataflow.ports import Ingest


@dataclass(frozen=True)
class QueryAnswers:
    """What the partitions of a query share. ``catch_up`` is called before each batch."""

    flow: LookupFlow
    lookups: Mapping[Access, Lookup]
    snapshots: Mapping[str, pa.Table]
    catch_up: Callable[[], None]
    brokers: BrokerAddress
    query: str
    identity: str
    folder: Path
    memo_ttl_s: float = 0.0
    largest_bytes: int = MESSAGE_BYTES

    def for_partition(self, partition: int) -> PartitionAnswerer:
        return PartitionAnswerer(self, partition)


class PartitionAnswerer:
    """Answers the batches of one partition, on one thread: a ``BatchAnswerer``."""

    def __init__(self, answers: QueryAnswers, partition: int) -> None:
        self._answers = answers
        self._partition = partition
        self._store: MemoStore | None = None
        memo = None
        if answers.flow.ingest is not Ingest.APPEND:
            path = answers.folder / f"memo-{partition}.db"
            self._store = MemoStore(path, answers.identity)
            memo = Memo(self._store, answers.flow.ingest)
        self._enricher = Enricher(
            answers.flow,
            answers.lookups,
            memo,
            answers.snapshots,
            memo_ttl_ms=round(answers.memo_ttl_s * 1000),
            largest_bytes=answers.largest_bytes,
            schemas=schemas_of(answers.brokers),
        )

    @property
    def headed(self) -> bool:
        return self._answers.flow.scan.headed

    def restore(self) -> None:
        """Read what others have committed to the memo's topic since this process last had the partition."""
        if self._store is None:
            return
        topic, partition = memo_topic(self._answers.query), self._partition
        end = topics.ends(clients.admin(self._answers.brokers), {topic: [partition]})[topic][partition]
        start = self._store.offset
        if start > end:
            # The topic is the one that it was, by its id: its broker has lost records, or finds its end step by step.
            raise ServiceUnavailable(
                f"{topic}[{partition}], the memo, ends at offset {end}, and was read up to {start}",
                where=str(self._answers.brokers),
                fix="the query waits for it; if it has lost records, drop the query and create it again",
            )
        for records in TopicReader(self._answers.brokers, topic, {partition: start}).until({partition: end}):
            updates = zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True)
            written_ms = pc.max(records["timestamp"]).cast(pa.int64()).as_py()
            self._store.apply([(key, value) for key, value in updates if key is not None], written_ms=written_ms or 0)
        self._store.apply((), max(start, end))

    def step(self, records: pa.RecordBatch, now_ms: int) -> AnsweredBatch:
        self._answers.catch_up()
        return self._enricher.step(records, now_ms)

    def confirm(self, updates: Sequence[Update], memo_end: int | None) -> None:
        self._enricher.confirm(updates, memo_end)

    def discard(self) -> None:
        self._enricher.discard()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
