"""What relations hold now, for queries that are answered at once."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from changelog.errors import Unsupported
from services.session.context import Context
from spark_jobs.reading import read_topic
from spark_jobs.topics import PartitionOffsets
from sql.catalog import Catalog
from sql.query import plan_query
from sql.relations import Stream
from sql.snapshot import Snapshot
from sql.statements import CreateStream, CreateView

Offsets = Mapping[str, PartitionOffsets]
"""Topic → partition → offset."""


def stream_of(catalog: Catalog, name: str) -> Stream:
    """The topic behind a stream or a materialized view, and its schema."""
    definition = catalog.get(name).definition
    match definition:
        case CreateStream():
            return Stream.declared(definition)
        case CreateView() if definition.materialized:
            return plan_query(name, definition, catalog).stream()
    raise Unsupported(
        f'"{name}" is no stream: it has no topic', fix="SHOW STREAMS and SHOW VIEWS list those that have one"
    )


def answer(context: Context, query: Snapshot, starts: Offsets | None = None, ends: Offsets | None = None) -> pa.Table:
    """The answer of a bounded query over its relations between two places; by default all they hold now."""
    return query.run({name: _rows(context, name, starts or {}, ends or {}) for name in query.relations})


def _rows(context: Context, name: str, starts: Offsets, ends: Offsets) -> pa.Table:
    stream = stream_of(context.catalog, name)
    end = ends.get(stream.topic) or context.topics.ends(stream.topic)
    found = read_topic(context.brokers, stream.schema, stream.topic, end, starts=starts.get(stream.topic))
    if found.rejected:
        context.say(
            f"{found.rejected} of {found.records} records of {stream.topic} could not be used, and were left out"
        )
    return found.rows
