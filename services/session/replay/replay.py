"""REPLAY: the dead letters of a topic, each once, back to where they came from; what cannot go stays, and is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.dead_letter import as_rows, without_marks
from dovetail.services.session.context import Context
from dovetail.services.session.dead_letters.dead_letter_topic import expect_dead_letter_topic, records_of
from dovetail.services.session.dead_letters.replayed import Replayed
from dovetail.services.session.replay.other_readers import other_readers
from dovetail.services.session.replay.outcome import BACK, Target, outcomes
from dovetail.services.session.replay.put_back import LetterProducer
from dovetail.services.session.result import Rows
from dovetail.sql.syntax.statements import Replay

_PER_TRANSACTION = 2_000
_WOULD = "would be put back"


def replay(context: Context, statement: Replay) -> Rows:
    """A row for each topic that dead letters came from and each outcome, with their number.

    What was put back is read from the topic itself once no other replay can add to it: see ``put_back``.
    """
    topic = statement.topic
    expect_dead_letter_topic(context, topic, "REPLAY")
    counted: Counter[tuple[str | None, str]] = Counter()
    queries: set[str] = set()
    targets = Targets(context)
    with nullcontext() if statement.dry_run else LetterProducer(context, topic) as producer:
        ends = context.topics.decided_ends(topic)
        for dead_letters in decided_dead_letters(context, statement, ends, targets):
            going = dead_letters.filter(pc.equal(dead_letters.column("outcome"), BACK))
            if producer is not None and going.num_rows:
                producer.put_back(going, targets.known)
            counted.update(
                zip(*(dead_letters.column(name).to_pylist() for name in ("source_topic", "outcome")), strict=True)
            )
            queries.update(filter(None, pc.unique(going.column("query")).to_pylist()))
    sources = sorted(source for source, outcome in counted if outcome == BACK and source is not None)
    for source, others in other_readers(context, sources, queries).items():
        context.say(f"{source} is also read by {', '.join(others)}: what is put back comes to them once more")
    return _summary(topic, counted, dry_run=statement.dry_run)


def decided_dead_letters(
    context: Context, statement: Replay, ends: PartitionOffsets, targets: Targets
) -> Iterator[pa.Table]:
    """The dead letters before ``ends``, some at a time: DEAD_LETTER_SCHEMA, and beside them what ``put_back`` needs."""
    replayed = Replayed()
    for records in records_of(context, statement.topic, ends):
        replayed.add(records)
    for records in records_of(context, statement.topic, ends, "gone through"):
        dead_letters = without_marks(records)
        for start in range(0, dead_letters.num_rows, _PER_TRANSACTION):
            some = dead_letters.slice(start, _PER_TRANSACTION)
            rows = as_rows(some)
            sizes = pc.add(*(pc.fill_null(pc.binary_length(some.column(name)), 0) for name in ("key", "value")))
            there = targets.of(rows.column("source_topic"))
            found = outcomes(rows, sizes, replayed.times(some), statement.reasons, there)
            yield (
                rows.append_column("outcome", found)
                .append_column("record_key", some.column("key"))
                .append_column("record_value", some.column("value"))
                .append_column("partition", some.column("partition"))
                .append_column("offset", some.column("offset"))
            )


class Targets:
    """The topics that dead letters came from, each asked for once; ``known``: those that are there."""

    def __init__(self, context: Context) -> None:
        self._topics = context.topics
        self._missing: set[str] = set()
        self.known: dict[str, Target] = {}

    def of(self, topics: pa.ChunkedArray) -> Mapping[str, Target]:
        for name in pc.unique(topics.drop_null()).to_pylist():
            if name not in self.known and name not in self._missing:
                self._ask(name)
        return self.known

    def _ask(self, name: str) -> None:
        partitions = self._topics.partitions().get(name)
        if partitions is None:
            self._missing.add(name)
        else:
            self.known[name] = Target(partitions, self._topics.message_bytes(name))


def _summary(dead_letter_topic: str, counted: Counter[tuple[str | None, str]], *, dry_run: bool) -> Rows:
    ordered = sorted(counted.items(), key=lambda item: (item[0][1] != BACK, item[0][1], item[0][0] or ""))
    shown = [(topic, _WOULD if dry_run and outcome == BACK else outcome, count) for (topic, outcome), count in ordered]
    columns = [list(column) for column in zip(*shown, strict=True)] or [[], [], []]
    schema = pa.schema([("topic", pa.string()), ("outcome", pa.string()), ("letters", pa.int64())])
    back = sum(count for (_, outcome), count in counted.items() if outcome == BACK)
    note = (
        f"of {sum(counted.values()):,} letters in {dead_letter_topic} {back:,} {_WOULD if dry_run else 'were put back'}"
    )
    return Rows(pa.table(columns, schema=schema), note)
