"""``dovetail tail``: the rows of a stream or a view, or the records of a topic that is neither."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from broker.reader import TopicReader
from services.cli.show import Screen
from services.session import Session
from services.session.context import Context
from services.session.select import TopicRows
from sql.planner import stream_of


def tail_rows(session: Session, screen: Screen, name: str, *, from_beginning: bool, limit: int | None) -> None:
    """Rows from the end of the topic on, or from its beginning; for ever, or until ``limit`` rows have come."""
    topic, view = _view(session.context, name)
    ends = session.context.topics.ends(topic)
    reader = TopicReader(session.context.brokers, topic, {} if from_beginning else ends)
    screen.note(f"{topic}, {'from its beginning' if from_beginning else 'from now on'}; Ctrl-C ends it")
    lines = screen.changelog(view.schema)
    for rows in _limited((view.decoded(records) for records in reader.follow(ends)), limit):
        lines.add(rows)


class RawRecords:
    """The records of a topic of which no schema is known: place, time, key and value as text."""

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
        texts = [
            pa.array([_text(value) for value in records.column(name).to_pylist()], pa.string())
            for name in ("key", "value")
        ]
        return pa.table([*columns, *texts], schema=self.schema)


def _view(context: Context, name: str) -> tuple[str, TopicRows | RawRecords]:
    if context.catalog.find(name) is None and name in context.topics.partitions():
        return name, RawRecords()
    stream = stream_of(context.catalog, name)
    return stream.topic, TopicRows(stream)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


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
