"""How the records of a topic are shown: rows of a stream or a view, dead letters, or the records themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from dovetail.broker.reader import TopicReader
from dovetail.changelog.dead_letter import DEAD_LETTER_SCHEMA, dead_letter_rows, is_dead_letter_topic, text
from dovetail.changelog.errors import ServiceUnavailable, UnknownName
from dovetail.changelog.formats.time_range import bounded
from dovetail.changelog.schema import StreamSchema
from dovetail.changelog.suggest import suggestion
from dovetail.services.session.context import Context
from dovetail.services.session.dead_letters.dead_letter_topic import expect_dead_letter_topic
from dovetail.services.session.select import TopicRows, first_rows
from dovetail.sql.catalog import Relation
from dovetail.sql.planner import stream_of
from dovetail.sql.syntax.rules import Rules

_LOOK_S = 1.0


class View(Protocol):
    """How the records of a topic are shown.

    headed   whether it looks at their headers
    stream   how the rows become changes; None: nothing is taken back
    wide     the columns that are cut to a line on a screen
    rules    whose literals a condition on its columns has
    """

    @property
    def headed(self) -> bool: ...

    @property
    def wide(self) -> Sequence[str]: ...

    @property
    def rules(self) -> Rules: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def stream(self) -> StreamSchema | None: ...

    def decoded(self, records: pa.Table) -> pa.Table: ...


class DeclaredRows(TopicRows):
    """The rows of a stream or a view."""

    headed = False
    wide = ()


class RawRecords:
    """The records of a topic of which no schema is known: place, time, key and value as text.

    A time that no row can hold is NULL.
    """

    headed = False
    wide = ()
    rules = Rules.TIMEPLUS
    stream = None
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
        columns = [bounded(records.column(name))[0] for name in self.schema.names[:3]]
        return pa.table([*columns, *(text(records.column(name)) for name in ("key", "value"))], schema=self.schema)


class DeadLetters:
    """Each with where it came from, its reason, and its bytes as text; ``table(x.dead_letter)`` tells more."""

    headed = True
    wide = ("key", "value")
    rules = Rules.TIMEPLUS
    stream = None
    schema = pa.schema(
        [field for field in DEAD_LETTER_SCHEMA if field.name not in ("rejected_at", "query", "whole_bytes")]
    )

    def decoded(self, records: pa.Table) -> pa.Table:
        return dead_letter_rows(records).select(self.schema.names)


def relation_of(context: Context, name: str) -> Relation | None:
    """The relation that ``name`` means; None where there is none, or just a topic of this name."""
    relation = context.catalog.find(name)
    if relation is None and name not in context.topics.partitions():
        return context.catalog.named(name)
    return relation


def topic_view(context: Context, name: str, relation: Relation | None) -> tuple[str, View]:
    """The topic behind ``name``, which means ``relation``, and how its records are shown. Raises UnknownName."""
    if is_dead_letter_topic(name):
        expect_dead_letter_topic(context, name, "tail")
        return name, DeadLetters()
    if relation is None:
        topics = context.topics.partitions()
        if name in topics:
            return name, RawRecords()
        known = sorted({*topics, *(relation.name for relation in context.catalog.relations())})
        raise UnknownName(
            f'there is no stream, view or topic "{name}"',
            where=f"brokers {context.brokers}",
            fix=suggestion(name, known, "SHOW TOPICS lists them"),
        )
    stream = stream_of(context.catalog, relation.name)
    return stream.topic, DeclaredRows(stream, context.brokers)


@dataclass(frozen=True)
class TopicTail:
    """The records of ``topic`` as ``view`` shows them: a changelog that no query has to run for.

    name, relation  what was asked for, and what the catalog had of it then: None of a topic alone
    """

    context: Context
    name: str
    relation: Relation | None
    topic: str
    view: View
    from_beginning: bool = False
    limit: int | None = None

    @staticmethod
    def of(context: Context, name: str, *, from_beginning: bool = False, limit: int | None = None) -> TopicTail:
        """Raises UnknownName."""
        relation = relation_of(context, name)
        topic, view = topic_view(context, name, relation)
        return TopicTail(context, name, relation, topic, view, from_beginning, limit)

    @property
    def schema(self) -> pa.Schema:
        return self.view.schema

    @property
    def stream(self) -> StreamSchema | None:
        return self.view.stream

    def batches(self, *, until_idle: bool = False) -> Iterator[pa.Table]:
        """Rows as they come; ``until_idle``: those that are there now. Ends after ``limit`` rows, if there is one.

        Raises UnknownName once what is followed is gone, or is another one.
        """
        ends = self.context.topics.ends(self.topic)
        start = {} if self.from_beginning else ends
        reader = TopicReader(self.context.brokers, self.topic, start, headed=self.view.headed)
        records = reader.until(ends) if until_idle else self._while_it_is_there(reader.follow(ends))
        return first_rows((self.view.decoded(part) for part in records), self.limit)

    def _while_it_is_there(self, records: Iterator[pa.Table]) -> Iterator[pa.Table]:
        looked_s = time.monotonic()
        topic_id = self._topic_id()
        for part in records:
            yield part
            if time.monotonic() - looked_s > _LOOK_S:
                looked_s = time.monotonic()
                # What does not answer has not said that it is another one.
                with suppress(ServiceUnavailable):
                    self._expect_same(topic_id)

    def _expect_same(self, topic_id: str) -> None:
        if self.relation is not None:
            now = self.context.catalog.find(self.relation.name)
            if now is None or now.created_ms != self.relation.created_ms:
                raise self._ended(f'"{self.name}" was dropped{" and made again" if now is not None else ""}')
            if self.stream is not None and stream_of(self.context.catalog, self.name).schema != self.stream:
                raise self._ended(f'"{self.name}" has other columns now')
        if self._topic_id() != topic_id:
            raise self._ended(f'the topic "{self.topic}" was deleted and made again')

    def _ended(self, what: str) -> UnknownName:
        return UnknownName(what, where=f'the changes of "{self.name}"', fix="ask for them again, if it is still there")

    def _topic_id(self) -> str:
        """Raises UnknownName where it is not there."""
        if (found := self.context.topics.ids([self.topic]).get(self.topic)) is None:
            raise self._ended(f'the topic "{self.topic}" is gone')
        return found
