"""The rows of a stream or view as its topic held them at a moment, and what changed between two.

A moment cuts each partition: what stands before the cut counts. Where retention or compaction has taken records that
stood before it, there is no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.reader import TopicReader, read_topic
from dovetail.broker.registry.client import schemas_of
from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.changes import Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.schema import ARRIVAL, Kind
from dovetail.runtime.clock import now_ms
from dovetail.services.session.context import Context
from dovetail.sql.expressions.evaluate import run
from dovetail.sql.past import FIX, AtRecords, AtTime, ComputedMoment, Moment, Past, changes_schema, moment_of_time
from dovetail.sql.planner import stream_of
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.statements import CreateView

_FIRST_LOOK = 1_000
"""So many records before a cut are looked at first for the beginning of the transaction that it falls into."""


def past_rows(context: Context, past: Past) -> pa.Table:
    """What ``past`` says, of the relation's own columns. Raises SqlError or Unsupported where nobody knows any more."""
    relation = context.catalog.get(past.relation)
    definition = relation.definition
    # To a stream that a view goes INTO others may write as well.
    transactional = isinstance(definition, CreateView) and definition.into is None
    history = TopicHistory(context, stream_of(context.catalog, relation.name), transactional, relation.created_ms)
    until = AtTime(now_ms()) if past.until is None else _known(past.until)
    return history.rows_at(until) if past.since is None else history.changes(_known(past.since), until)


def _known(moment: Moment) -> AtTime | AtRecords:
    """Raises SqlError for a moment that is yet to come, or is NULL."""
    if isinstance(moment, ComputedMoment):
        [value] = run(f"SELECT CAST({moment.sql} AS TIMESTAMPTZ) AS moment", {}).column("moment").to_pylist()
        if value is None:
            raise SqlError(f"{moment} is no moment: it is NULL", where=f"AS OF {moment}", fix=FIX)
        moment = moment_of_time(value)
    if isinstance(moment, AtTime) and moment.time_ms > now_ms():
        raise SqlError(
            "the moment is yet to come",
            where="AS OF",
            fix="a moment of the past; without one, the rows of now are read",
        )
    return moment


@dataclass(frozen=True)
class TopicHistory:
    """transactional  whether all that is written to the topic of ``stream`` is, as the topics of views are
    declared_ms    since when the topic keeps what the stream says; it may have kept less before
    """

    context: Context
    stream: Stream
    transactional: bool
    declared_ms: int

    @property
    def name(self) -> str:
        return self.stream.schema.name

    @property
    def topic(self) -> str:
        return self.stream.topic

    @cached_property
    def begins(self) -> PartitionOffsets:
        return self.context.topics.begins(self.topic)

    @cached_property
    def ends(self) -> PartitionOffsets:
        return self.context.topics.ends(self.topic)

    def rows_at(self, moment: AtTime | AtRecords) -> pa.Table:
        """The content of the topic at ``moment``."""
        cut = self._cut(moment)
        self._expect_whole(cut, moment)
        if not any(cut.values()) and any(self.ends.values()):
            raise SqlError(
                f"nothing had been written to {self.name} at {moment}",
                where=f"AS OF {moment}",
                fix=f"its first record is of {self._first_time()}",
            )
        return self._content(cut)

    def changes(self, since: AtTime | AtRecords, until: AtTime | AtRecords) -> pa.Table:
        """What turns the rows at ``since`` into those at ``until``, a row of ``changes_schema`` for each change."""
        first, last = self._cut(since), self._cut(until)
        if any(first[partition] > last[partition] for partition in first):
            raise SqlError(
                f"{since} is later than {until}", where=f"changes({self.name}, ..)", fix="the earlier moment first"
            )
        if self._adds_up:
            self._expect_kept(first, since)
            changes = self._written_between(first, last)
        else:
            self._expect_whole(first, since)
            self._expect_whole(last, until)
            changes = Changes.between(self._declared(self._content(first)), self._declared(self._content(last)))
        return self._one_by_one(changes)

    @property
    def _adds_up(self) -> bool:
        """Whether every record is a change of the rows by itself, whatever stood before: a producer may take back what
        is not there, and of a key the last record counts.
        """
        kind = self.stream.schema.kind
        return kind is Kind.APPEND or (kind is Kind.CHANGELOG and self.transactional)

    # -- where a moment cuts --

    def _cut(self, moment: AtTime | AtRecords) -> PartitionOffsets:
        """By partition, the first record that does not count."""
        if isinstance(moment, AtRecords):
            return self._after(moment)
        cut = self.context.topics.since(self.topic, moment.time_ms + 1)
        return self._without_open_transactions(cut) if self.transactional else cut

    def _after(self, moment: AtRecords) -> PartitionOffsets:
        place = f"{self.name}, {moment}"
        if moment.last.keys() != self.ends.keys():
            partitions = ", ".join(map(str, sorted(self.ends)))
            raise SqlError(
                f"{self.name} has the partitions {partitions}, and of each the last record is needed",
                where=place,
                fix="now they are " + ", ".join(f"{partition}@{end - 1}" for partition, end in self.ends.items()),
            )
        for partition, offset in moment.last.items():
            if offset >= self.ends[partition]:
                raise SqlError(
                    f"partition {partition} of {self.name} has no record {offset} yet: it ends before "
                    f"{self.ends[partition]}",
                    where=place,
                    fix="a record that is there",
                )
        return {partition: offset + 1 for partition, offset in moment.last.items()}

    def _without_open_transactions(self, cut: PartitionOffsets) -> PartitionOffsets:
        """``cut``, moved to the beginning of the transaction that it falls into: nobody had seen its records then.

        Behind each transaction stands a mark that no reader gets, so there its offsets have a gap.
        """
        return {partition: self._beginning(partition, offset) for partition, offset in cut.items()}

    def _beginning(self, partition: int, cut: int) -> int:
        begin, look = self.begins[partition], _FIRST_LOOK
        while cut > begin:
            first = max(begin, cut - look)
            reader = TopicReader(self.context.brokers, self.topic, {partition: first})
            read = [records["offset"].to_numpy() for records in reader.until({partition: cut})]
            offsets = np.concatenate([np.array([first - 1] if first == begin else [], np.int64), *read])
            places = np.append(offsets, cut)
            gaps = np.flatnonzero(np.diff(places) > 1)
            if len(gaps):
                # Where the last gap is just before the cut, all before it is committed.
                return int(places[gaps[-1] + 1])
            if first == begin:
                return begin
            look *= 8
        return cut

    # -- what is gone --

    def _expect_whole(self, cut: PartitionOffsets, moment: AtTime | AtRecords) -> None:
        """Raises Unsupported where records are gone without which the rows at ``cut`` are not known."""
        self._expect_kept(cut, moment)
        if self.stream.schema.kind is not Kind.APPEND and any(self.begins.values()):
            raise Unsupported(
                f"the first records of {self.name} are gone, and with them what they had added: at no moment are its "
                "rows known",
                where=f"AS OF {moment}",
                fix=f"the topic's retention.ms is to be -1; changes({self.name}, ..) needs the records between alone",
            )
        kept_ms = self.context.topics.compacted_after_ms(self.topic)
        if kept_ms is None:
            return
        earliest_ms = max(now_ms() - kept_ms, self.declared_ms) if kept_ms else now_ms()
        earliest = self.context.topics.since(self.topic, earliest_ms)
        if any(cut[partition] < earliest[partition] for partition in cut):
            raise Unsupported(
                f"{self.name} is compacted: what a later record of its key replaced may be gone after "
                f"{kept_ms / 1000:,g} s",
                where=f"AS OF {moment}",
                fix=f"{AtTime(earliest_ms)} or later; SETTINGS history = '7d' of the stream keeps more from then on",
            )

    def _expect_kept(self, cut: PartitionOffsets, moment: AtTime | AtRecords) -> None:
        """Raises Unsupported where the records at ``cut`` are gone for their age. The first that is there is the first
        after many a moment: how many there were between is not known.
        """
        timed = isinstance(moment, AtTime)
        if any(
            cut[partition] < begin or (timed and 0 < begin == cut[partition] < self.ends[partition])
            for partition, begin in self.begins.items()
        ):
            raise Unsupported(
                f"the records that {self.name} had at {moment} are gone: retention has taken them",
                where=f"AS OF {moment}",
                fix=f"its first record is of {self._first_time()}; retention.ms of the topic says how long they stay",
            )

    def _first_time(self) -> str:
        """That of the earliest record that is there."""
        ends = {partition: min(begin + 1, self.ends[partition]) for partition, begin in self.begins.items()}
        read = TopicReader(self.context.brokers, self.topic, self.begins).until(ends)
        times = [pc.min(records["timestamp"]) for records in read if records.num_rows]
        return str(AtTime(min(time.as_py().timestamp() for time in times) * 1000)) if times else "later"

    # -- what is read --

    def _content(self, cut: PartitionOffsets) -> pa.Table:
        found = read_topic(self.context.brokers, self.stream.schema, self.topic, cut, first_offsets=self.begins)
        self.context.say_left_out(self.topic, found.rejected, found.records)
        return found.rows

    def _written_between(self, first: PartitionOffsets, last: PartitionOffsets) -> Changes:
        schema = self.stream.schema
        decoder = Decoder(schema, tuple(column.name for column in schema.columns), schemas_of(self.context.brokers))
        read = TopicReader(self.context.brokers, self.topic, first, headed=decoder.headed).until(last)
        decoded = [decoder.decode(records) for records in read]
        rejected = sum(part.rejected.num_rows for part in decoded)
        self.context.say_left_out(self.topic, rejected, rejected + sum(part.rows.num_rows for part in decoded))
        parts = [Changes(part.rows.drop_columns([ARRIVAL])) for part in decoded]
        nothing = Changes.of(self._declared(changes_schema(schema).empty_table()))
        return Changes.concat([nothing, *parts]).consolidated()

    def _declared(self, rows: pa.Table) -> pa.Table:
        return rows.select([column.name for column in self.stream.schema.columns])

    def _one_by_one(self, changes: Changes) -> pa.Table:
        """Each change as often as it counts."""
        counts = np.abs(changes.deltas)
        places = pa.array(np.repeat(np.arange(len(counts)), counts))
        signs = pa.array(np.sign(changes.deltas), pa.int8()).take(places)
        columns = [*changes.rows.take(places).columns, signs]
        return pa.table(columns, schema=changes_schema(self.stream.schema))
