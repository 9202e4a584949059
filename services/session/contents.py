"""What relations hold now, for queries that are answered at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from dovetail.broker.reader import Places, all_columns
from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.dead_letter import is_dead_letter_topic
from dovetail.changelog.schema import StreamSchema
from dovetail.services.session.context import Context
from dovetail.services.session.dead_letters.dead_letter_topic import current_dead_letters
from dovetail.services.session.dictionaries.sources import dictionary_rows
from dovetail.services.session.dictionaries.system_dictionaries import statistics
from dovetail.services.session.past import past_rows
from dovetail.sql.bind.bounded.bounded_binder import content_schema
from dovetail.sql.compile.snapshot import Snapshot
from dovetail.sql.planner import stream_of
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.statements import CreateDictionary
from dovetail.sql.system_tables import SYSTEM_TABLES

Offsets = Mapping[str, PartitionOffsets]
"""Topic → partition → offset."""


@dataclass(frozen=True)
class Part:
    """The part of a topic that a query has counted.

    columns   those that it reads: in a record it looks at no other, and what is wrong with them is no matter to it
    without   records that it could not use
    """

    first_offsets: PartitionOffsets
    ends: PartitionOffsets
    columns: tuple[str, ...]
    without: Places


def answer(context: Context, query: Snapshot) -> pa.Table:
    """The answer of a bounded query over what its relations hold now."""
    return query.run({name: _rows(context, query, name) for name in query.relations})


def _rows(context: Context, query: Snapshot, name: str) -> pa.Table:
    if (past := query.past.get(name)) is not None:
        return past_rows(context, past)
    return relation_rows(context, name, reads=query.mentions)


def relation_rows(
    context: Context,
    name: str,
    parts: Mapping[str, Part] | None = None,
    reads: Callable[[str], bool] = lambda _: True,
) -> pa.Table:
    """What a relation holds now; ``parts``: of these topics only so much, other columns NULL. ``reads``: whether a
    column is wanted, which is asked of what is made of headers.
    """
    if name in SYSTEM_TABLES:
        return statistics(context)
    if is_dead_letter_topic(name):
        return current_dead_letters(context, name)
    definition = context.catalog.get(name).definition
    if isinstance(definition, CreateDictionary):
        return dictionary_rows(context, definition)
    stream = stream_of(context.catalog, name)
    part = (parts or {}).get(stream.topic)
    if part is None:
        ends = context.topics.ends(stream.topic)
        found = context.read(stream.schema, stream.topic, ends, columns=columns_read(stream.schema, reads))
    else:
        found = context.read(
            stream.schema,
            stream.topic,
            part.ends,
            columns=part.columns,
            first_offsets=part.first_offsets,
            without=part.without,
        )
    context.say_left_out(stream.topic, found.rejected, found.records)
    return found.rows if part is None else _with_all_columns(stream, found.rows)


def columns_read(schema: StreamSchema, reads: Callable[[str], bool]) -> tuple[str, ...]:
    """All columns, but for those made of headers that nobody reads: records come without headers then."""
    unread = {one.name for one in schema.included if one.headed and not reads(one.name)}
    return tuple(name for name in all_columns(schema) if name not in unread)


def _with_all_columns(stream: Stream, rows: pa.Table) -> pa.Table:
    """The rows as a bounded query reads them, the columns that are not there NULL."""
    nothing = {field.name: pa.nulls(rows.num_rows, field.type) for field in content_schema(stream.schema)}
    return pa.table({name: rows.column(name) if name in rows.column_names else nothing[name] for name in nothing})
