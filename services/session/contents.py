"""What relations hold now, for queries that are answered at once."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from broker.reader import read_topic
from broker.topics import PartitionOffsets
from changelog.dead_letter import is_letters
from services.session.context import Context
from services.session.dictionaries.sources import dictionary_rows
from services.session.dictionaries.system_dictionaries import statistics
from services.session.letters.letter_topic import letters_now
from sql.bind.bounded.snapshot import Snapshot
from sql.planner import stream_of
from sql.syntax.statements import CreateDictionary
from sql.system_tables import SYSTEM_TABLES

Offsets = Mapping[str, PartitionOffsets]
"""Topic → partition → offset."""


def answer(
    context: Context, query: Snapshot, first_offsets: Offsets | None = None, ends: Offsets | None = None
) -> pa.Table:
    """The answer of a bounded query over its relations between two places; by default all they hold now."""
    return query.run({name: _rows(context, name, first_offsets or {}, ends or {}) for name in query.relations})


def _rows(context: Context, name: str, first_offsets: Offsets, ends: Offsets) -> pa.Table:
    if name in SYSTEM_TABLES:
        return statistics(context)
    if is_letters(name):
        return letters_now(context, name)
    definition = context.catalog.get(name).definition
    if isinstance(definition, CreateDictionary):
        return dictionary_rows(context, definition)
    stream = stream_of(context.catalog, name)
    end = ends.get(stream.topic) or context.topics.ends(stream.topic)
    found = read_topic(context.brokers, stream.schema, stream.topic, end, first_offsets=first_offsets.get(stream.topic))
    if found.rejected:
        context.say(
            f"{found.rejected} of {found.records} records of {stream.topic} could not be used, and were left out"
        )
    return found.rows
