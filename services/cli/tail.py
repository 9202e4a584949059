"""``dovetail tail``: the rows of a stream or a view, dead letters, or the records of a topic that is none of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from broker.reader import TopicReader
from changelog.dead_letter import LETTERS, is_letters, letter_rows, text
from services.cli.show import Screen
from services.session import Session
from services.session.context import Context
from services.session.letters.letter_topic import expect_letters
from services.session.select import TopicRows
from sql.planner import stream_of


def tail_rows(session: Session, screen: Screen, name: str, *, from_beginning: bool, limit: int | None) -> None:
    """Rows from the end of the topic on, or from its beginning; for ever, or until ``limit`` rows have come."""
    topic, view = _view(session.context, name)
    ends = session.context.topics.ends(topic)
    reader = TopicReader(session.context.brokers, topic, {} if from_beginning else ends, headed=view.headed)
    screen.note(f"{topic}, {'from its beginning' if from_beginning else 'from now on'}; Ctrl-C ends it")
    lines = screen.changelog(view.schema, view.wide)
    for rows in _limited((view.decoded(records) for records in reader.follow(ends)), limit):
        lines.add(rows)


class View(Protocol):
    """How the records of a topic are shown.

    headed   whether it looks at their headers
    wide     the columns that are cut to a line on a screen
    """

    @property
    def headed(self) -> bool: ...

    @property
    def wide(self) -> Sequence[str]: ...

    @property
    def schema(self) -> pa.Schema: ...

    def decoded(self, records: pa.Table) -> pa.Table: ...


class DeclaredRows(TopicRows):
    """The rows of a stream or a view."""

    headed = False
    wide = ()


class RawRecords:
    """The records of a topic of which no schema is known: place, time, key and value as text."""

    headed = False
    wide = ()
    schema = pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("ms", tz="UTC")),
            ("key", pa.string()),
            ("value", pa.string()),
        ]
    )

    def decoded(self, records: pa.Table) -> pa.Table:
        columns = [records.column(name) for name in self.schema.names[:3]]
        return pa.table([*columns, *(text(records.column(name)) for name in ("key", "value"))], schema=self.schema)


class DeadLetters:
    """Each with where it came from, its reason, and its bytes as text; ``table(x.dead_letter)`` tells more."""

    headed = True
    wide = ("key", "value")
    schema = pa.schema([field for field in LETTERS if field.name not in ("rejected_at", "query", "whole_bytes")])

    def decoded(self, records: pa.Table) -> pa.Table:
        return letter_rows(records).select(self.schema.names)


def _view(context: Context, name: str) -> tuple[str, View]:
    if is_letters(name):
        expect_letters(context, name, "tail")
        return name, DeadLetters()
    if context.catalog.find(name) is None and name in context.topics.partitions():
        return name, RawRecords()
    stream = stream_of(context.catalog, name)
    return stream.topic, DeclaredRows(stream)


def _limited(batches: Iterator[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    if limit is None:
        yield from batches
        return
    left = limit
    for rows in batches:
        yield rows.slice(0, left)
        left -= min(left, rows.num_rows)
        if left == 0:
            return
