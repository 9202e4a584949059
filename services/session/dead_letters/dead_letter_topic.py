"""A topic of dead letters, read as a whole."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa

from dovetail.broker.reader import HEADED, TopicReader
from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.dead_letter import as_rows, is_dead_letter_topic, topic_of, without_marks
from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import counted
from dovetail.services.session.context import Context
from dovetail.services.session.dead_letters.replayed import Replayed
from dovetail.sql.system_tables import DEAD_LETTERS

_SAY_EVERY_S = 5.0


def expect_dead_letter_topic(context: Context, topic: str, order: str) -> None:
    """Raises Unsupported for a topic that is none of dead letters, UnknownName for one that is not there."""
    there = context.topics.partitions()
    known = [name for name in there if is_dead_letter_topic(name)]
    if not is_dead_letter_topic(topic):
        own = topic_of(topic)
        fix = f"{order} {own}" if own in there else "SHOW DEAD LETTERS lists the topics that have some"
        raise Unsupported(f'"{topic}" is no topic of dead letters', where=order, fix=fix)
    if topic not in there:
        fix = suggestion(topic, known, "SHOW DEAD LETTERS lists the topics that have some")
        raise UnknownName(f'there is no topic "{topic}"', where=f"brokers {context.brokers}", fix=fix)


def records_of(context: Context, topic: str, ends: PartitionOffsets, doing: str = "read") -> Iterator[pa.Table]:
    """The records before ``ends``, HEADED; says how far it is where that takes long."""
    total, count, said = sum(ends.values()), 0, time.monotonic()
    for records in TopicReader(context.brokers, topic, headed=True).until(ends):
        yield records
        count += records.num_rows
        if time.monotonic() - said > _SAY_EVERY_S:
            said = time.monotonic()
            context.say(f"{topic}: {count:,} of at most {counted(total, 'record')} {doing}")


def committed_records(context: Context, topic: str) -> Iterator[pa.Table]:
    """All records of a topic once no transaction is open, HEADED, some at a time; nothing where it is not there."""
    if topic in context.topics.partitions():
        yield from records_of(context, topic, context.topics.quiescent_ends(topic))


def current_dead_letters(context: Context, topic: str) -> pa.Table:
    """DEAD_LETTERS: all that the topic holds now, and which of them were put back."""
    expect_dead_letter_topic(context, topic, "table")
    replayed = Replayed()
    parts = [HEADED.empty_table()]
    for records in records_of(context, topic, context.topics.ends(topic)):
        replayed.add(records)
        parts.append(without_marks(records))
    dead_letters = pa.concat_tables(parts)
    times = pa.chunked_array([replayed.times(dead_letters)])
    return as_rows(dead_letters).append_column(DEAD_LETTERS.field("replayed_at"), times)
