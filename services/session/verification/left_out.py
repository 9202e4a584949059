"""What a query did not count of its inputs, as its dead letters and its late topic say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.reader import HEADED, Places
from dovetail.broker.registry.client import schemas_of
from dovetail.changelog.dead_letter import QUERY, as_rows, header, topic_of, without_marks
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encodings.interface import SchemaSource
from dovetail.changelog.schema import Kind
from dovetail.changelog.wording import counted
from dovetail.joins.dataflow.graph import TopicScan
from dovetail.services.session.context import Context
from dovetail.services.session.dead_letters.dead_letter_topic import committed_records
from dovetail.services.session.verification.late_columns import row_columns
from dovetail.sql.catalog import Query
from dovetail.sql.planner import Plan

INPUT = "dovetail.input"


@dataclass(frozen=True)
class LeftOut:
    """places        topic → the places of records that were dead-lettered: the batch does not count them either
    dead_letters  how many these are
    made          HEADED: dead letters of rows that the query has made, and its output topic did not take
    late          input → its late rows, as they were written to the late topic
    doubts        what cannot be subtracted, in words: a difference may come of it
    """

    places: Mapping[str, Places]
    dead_letters: int
    made: pa.Table
    late: Mapping[str, pa.Table] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    @property
    def late_count(self) -> int:
        return sum(rows.num_rows for rows in self.late.values())

    def doubted(self, *doubts: str) -> LeftOut:
        return replace(self, doubts=(*self.doubts, *doubts))


def left_out(context: Context, plan: Plan, query: Query) -> LeftOut:
    """Of the life of the query that goes on: letters that were written before it are of another one."""
    dead_letters = dead_letters_of(context, query)
    rows = as_rows(dead_letters)
    sourced = pc.is_valid(rows.column("source_offset"))
    made = dead_letters.filter(pc.invert(sourced))
    whole = pc.is_null(rows.filter(pc.invert(sourced)).column("whole_bytes"))
    found = LeftOut(_places(rows.filter(sourced)), dead_letters.num_rows - made.num_rows, made.filter(whole))
    cut = made.num_rows - found.made.num_rows
    if cut:
        found = found.doubted(f"{counted(cut, 'row')} of the output were too large even for the dead letters")
    missing = int(query.progress.get("counts", {}).get("rejected", 0)) - dead_letters.num_rows
    if missing > 0:
        found = found.doubted(f"{missing:,} dead letters are not in {topic_of(query.name)} any more")
    late, doubts = late_of(context, plan.settings.text("late_topic"), plan.dataflow.scans, query)
    return replace(found, late=late).doubted(*doubts)


def dead_letters_of(context: Context, query: Query) -> pa.Table:
    """HEADED: the dead letters of the life of the query that goes on."""
    return _since(query, QUERY, _records(context, topic_of(query.name)))


def _places(dead_letters: pa.Table) -> dict[str, dict[int, np.ndarray]]:
    places: dict[str, dict[int, np.ndarray]] = {}
    groups = dead_letters.group_by(["source_topic", "source_partition"]).aggregate([("source_offset", "list")])
    for group in groups.to_pylist():
        of_topic = places.setdefault(group["source_topic"], {})
        of_topic[group["source_partition"]] = np.array(group["source_offset_list"], dtype=np.int64)
    return places


def late_of(
    context: Context, topic: str, scans: Sequence[TopicScan], query: Query
) -> tuple[dict[str, pa.Table], list[str]]:
    """The late rows of each input that are known one by one, and a doubt for each of which they are not."""
    counted = {name: int(count) for name, count in query.progress.get("late", {}).items() if count}
    if not counted:
        return {}, []
    if not topic:
        unknown = "which ones, only SETTINGS late_topic would tell"
        return {}, [_late_doubt(name, count, unknown) for name, count in counted.items()]
    records = _since(query, QUERY, _records(context, topic))
    late, doubts = {}, []
    for name, count in counted.items():
        of_input = records.filter(pc.equal(header(records, INPUT), name.encode()))
        rows = (
            _late_rows(_scans(scans, name), of_input, schemas_of(context.brokers))
            if of_input.num_rows == count
            else None
        )
        if rows is None:
            doubts.append(_late_doubt(name, count, f"{topic} does not tell which of its records they are"))
        else:
            late[name] = rows
    return late, doubts


def _late_doubt(name: str, count: int, why: str) -> str:
    return f"{counted(count, 'row')} of {name} {'was' if count == 1 else 'were'} late: {why}"


def _scans(scans: Sequence[TopicScan], name: str) -> list[TopicScan]:
    """The readings of the stream that the query calls so: where it has two, one may have counted what is late in the
    other.
    """
    called = {scan.stream.name for scan in scans if scan.name == name}
    return [scan for scan in scans if scan.stream.name in called]


def _late_rows(scans: Sequence[TopicScan], records: pa.Table, schemas: SchemaSource | None) -> pa.Table | None:
    """The late rows in the columns of their input; None where these do not tell which row of the input is meant."""
    if len(scans) != 1 or scans[0].stream.kind is not Kind.APPEND:
        return None
    columns = row_columns(scans[0], [tuple(json.loads(value)) for value in records.column("value").to_pylist()])
    if columns is None:
        return None
    decoded = Decoder(scans[0].stream.as_written(), columns, schemas).decode(records)
    return None if decoded.rejected.num_rows else decoded.rows.select(columns)


def _records(context: Context, topic: str) -> Iterator[pa.Table]:
    """All of a topic, HEADED; nothing where it is not there."""
    yield HEADED.empty_table()
    yield from map(without_marks, committed_records(context, topic))


def _since(query: Query, name: str, records: Iterator[pa.Table]) -> pa.Table:
    """Those whose header ``name`` names the query, of the time since it was created."""
    written = pa.concat_tables(records)
    own = pc.fill_null(pc.equal(header(written, name), query.name.encode()), False)
    times = written.column("timestamp").cast(pa.int64())
    return written.filter(pc.and_(own, pc.greater_equal(times, query.created_ms)))
