"""The inputs of a view as a trace reads them: topics from their first record to their end, and what is looked up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dovetail.broker.reader import TopicReader
from dovetail.broker.registry.client import schemas_of
from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.decode import Decoder
from dovetail.changelog.schema import Kind
from dovetail.changelog.wording import counted
from dovetail.dictionaries.open import open_source
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.joins.dataflow.lookup import LookupTarget
from dovetail.services.session.contents import relation_rows
from dovetail.services.session.context import Context
from dovetail.services.session.dictionaries.sources import resources
from dovetail.services.session.why.cached_misses import cached_misses
from dovetail.services.session.why.uncounted import Uncounted
from dovetail.sql.plan.nodes import LookupTable, Scan
from dovetail.sql.planner import stream_of
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.statements import CreateDictionary
from dovetail.sql.trace.demand import Values
from dovetail.sql.trace.inputs import Batch

_SAY_EVERY_S = 5.0


@dataclass
class TopicInputs:
    """The topics, each read up to where it ended when it was first asked for.

    columns    topic → the columns that the view reads; of other topics, those looked up in, all are read
    since_ms   of an append stream the records that were written before are passed over, from its first record to the
               first one that was not: of other streams an old record may be the one that stands. None: none are
    absent     whether it is asked why there is no row: then workers are asked for what they have cached
    """

    context: Context
    columns: Mapping[str, tuple[str, ...]]
    uncounted: Uncounted
    since_ms: int | None = None
    absent: bool = False
    notes: list[str] = field(default_factory=list)
    """What the answers rest on: which records were passed over."""
    _begins: dict[str, PartitionOffsets] = field(default_factory=dict)
    _ends: dict[str, PartitionOffsets] = field(default_factory=dict)
    _known_keys: dict[str, set[Any]] = field(default_factory=dict)

    def batches(self, scan: Scan) -> Iterator[Batch]:
        topic, schema = scan.topic, scan.records or scan.stream
        own = tuple(name for _, name in scan.columns)
        wanted = tuple(dict.fromkeys((*self.columns.get(topic, own), *_needed(scan))))
        decoder = Decoder(schema, wanted, schemas_of(self.context.brokers))
        ends = self._ends.setdefault(topic, self.context.topics.ends(topic))
        begins = self._begun(scan)
        total = sum(max(0, end - begins.get(partition, 0)) for partition, end in ends.items())
        count, said = 0, time.monotonic()

        def unused(partitions: np.ndarray, offsets: np.ndarray) -> pa.Array:
            return self.uncounted.reasons(topic, partitions, offsets)

        for records in TopicReader(self.context.brokers, topic, begins, headed=decoder.headed).until(ends):
            yield Batch.of(decoder, records, unused)
            count += records.num_rows
            if time.monotonic() - said > _SAY_EVERY_S:
                said = time.monotonic()
                self.context.say(f"{topic}: {count:,} of at most {counted(total, 'record')} read")

    def _begun(self, scan: Scan) -> PartitionOffsets:
        """Where the partitions of a topic are read from, if not from their first records."""
        topic = scan.topic
        if self.since_ms is None or scan.stream.kind is not Kind.APPEND or scan.records is not None:
            return {}
        if topic not in self._begins:
            self._begins[topic] = self.context.topics.since(topic, self.since_ms)
            moment = pa.scalar(self.since_ms, pa.timestamp("ms")).cast(pa.string())
            self.notes.append(f"{topic}: what was written before {moment} (UTC) was not looked at")
        return self._begins[topic]

    def late(self, scan: Scan) -> pa.Table | None:
        return self.uncounted.late.get(scan.stream.name)

    def relation(self, name: str) -> pa.Table:
        return relation_rows(self.context, name)

    def stream(self, name: str) -> Stream:
        return stream_of(self.context.catalog, name)

    def looked_up(self, table: LookupTable, by: Sequence[str], keys: Sequence[Values]) -> pa.Table:
        definition = self.context.catalog.get(table.name).definition
        assert isinstance(definition, CreateDictionary)
        wanted = [key[0] if len(by) == 1 else key for key in keys]
        with closing(open_source(definition_of(definition), resources(self.context))) as source:
            found = source.fetch(by, wanted) if wanted else {}
        if self.absent and table.target is LookupTarget.DICTIONARY and tuple(by) == table.primary_key:
            self._note_misses(table.name, list(found))
        rows = [row for rows in found.values() for row in rows]
        columns = list(zip(*rows, strict=True)) or [()] * len(table.declared)
        arrays = [pa.array(values, column.type) for values, column in zip(columns, table.declared, strict=True)]
        return pa.table(arrays, names=[column.name for column in table.declared])

    def _note_misses(self, dictionary: str, keys: Sequence[Any]) -> None:
        """Of keys that are there now: what a worker has cached of the others is so."""
        known = self._known_keys.setdefault(dictionary, set())
        new = [key for key in keys if key not in known]
        known.update(new)
        self.notes += cached_misses(self.context, dictionary, new)


def _needed(scan: Scan) -> tuple[str, ...]:
    """What tells which records stand, beside the columns that are read."""
    return tuple(name for name in (*scan.stream.primary_key, scan.stream.version) if name)
