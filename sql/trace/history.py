"""The records of a scan that a demand is about, and which of them stand.

An upsert stream is read twice where the demand is about more than its primary key: first for the keys of the rows that
once fulfilled it, then for all records of these keys, since the last one counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.schema import ARRIVAL, Kind
from dovetail.changelog.topic_content import content
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.nodes import Scan
from dovetail.sql.trace.demand import Demand, KeySet, Values
from dovetail.sql.trace.inputs import OFFSET, PARTITION, PLACED, UNUSED, WRITTEN_AT, Inputs
from dovetail.sql.trace.ledger import Ledger, TracedRecord, as_json
from dovetail.sql.trace.near_misses import Sought, almost, matched, mentions, sought
from dovetail.sql.trace.traced_rows import with_lineage
from dovetail.sql.transforms.version_step import VersionStep

NUMBER = "#number"


class NotNarrow(Exception):
    """Nothing is asked of a scan, so all of its records would be looked at."""


@dataclass
class History:
    """Reads scans; what one has given for a demand is kept, for it may be asked for as of several times."""

    inputs: Inputs
    ledger: Ledger
    _read: dict[tuple[str, Demand], pa.Table] = field(default_factory=dict)

    def rows(self, scan: Scan, demand: Demand, until_ms: int | None) -> pa.Table:
        """The rows of ``scan`` that stand and fulfil ``demand``, with their LINEAGE; as of ``until_ms``. Raises
        NotNarrow.
        """
        if not demand.narrow:
            raise NotNarrow(scan.stream.name)
        known = (scan.alias, demand)
        if known not in self._read:
            self._read[known] = self._records(scan, demand)
        records = self._read[known]
        if until_ms is not None:
            came = records.column(WRITTEN_AT).cast(pa.int64()).to_numpy() <= until_ms
            late = "came after the row that it would have met, which is answered once"
            self.ledger.lost(records.filter(pa.array(~came)).column(NUMBER).to_pylist(), late)
            records = records.filter(pa.array(came))
        stands = self._current_records(scan, records, until_ms is None)
        fulfils = stands.filter(pa.array(matched(stands, demand)))
        return with_lineage(fulfils.select(scan.schema.names), [[one] for one in fulfils.column(NUMBER).to_pylist()])

    # -- reading --

    def _records(self, scan: Scan, demand: Demand) -> pa.Table:
        """The records that the view has counted, numbered, in the order of their arrival."""
        empty = all(not one.values for one in demand.sets) and not demand.terms
        if empty:
            self.ledger.remark(*_of(scan), "not looked into: no row of the other side is left")
        seeks = sought(demand, scan.schema)
        read, near, count = [_shape(scan)], [_shape(scan)], 0
        for rows in () if empty else self._batches(scan, seeks):
            count += rows.num_rows
            read.append(rows.filter(pa.array(matched(rows, demand))))
            near.append(rows.filter(pa.array(almost(rows, demand, seeks))))
        found = self._whole(scan, demand, pa.concat_tables(read))
        self._tell_near(scan, pa.concat_tables(near), seeks)
        if not found.num_rows and not empty:
            self.ledger.remark(*_of(scan), f"no record with {demand.text()}, of {count:,} that can be read")
        return self._counted(scan, found)

    def _batches(self, scan: Scan, seeks: list[Sought]) -> Iterator[pa.Table]:
        """The rows of all records, under internal names; what cannot be read and is about the values is told."""
        names = dict(scan.columns)
        for batch in self.inputs.batches(scan):
            for bad in batch.rejected.to_pylist():
                if mentions(bad["key"], bad["value"], seeks, names):
                    self._tell_dead(scan, bad)
            yield _internal(scan, batch.rows)

    def _whole(self, scan: Scan, demand: Demand, found: pa.Table) -> pa.Table:
        """All records of the primary keys that are among ``found``."""
        key = _primary_key(scan)
        if not key or not found.num_rows or demand.columns <= set(key):
            return found
        exprs = tuple(Expr.column(name, scan.schema.field(name).type) for name in key)
        values = frozenset(zip(*(found.column(name).to_pylist() for name in key), strict=True))
        of_keys = Demand(sets=(KeySet(exprs, values),))
        whole = [rows.filter(pa.array(matched(rows, of_keys))) for rows in self._batches(scan, [])]
        return pa.concat_tables([_shape(scan), *whole])

    def _counted(self, scan: Scan, found: pa.Table) -> pa.Table:
        """``found`` without what the view has not counted, of which the reason is told."""
        found = found.sort_by([(WRITTEN_AT, "ascending"), (ARRIVAL, "ascending")])
        numbers = self._numbers(scan, found)
        reasons = found.column(UNUSED).to_pylist()
        late = self._late(scan, found)
        for place, number in enumerate(numbers):
            reasons[place] = reasons[place] or ("late: it was behind the watermark" if place in late else None)
            if reasons[place]:
                self.ledger.lost([number], reasons[place])
        counted = pa.array([reason is None for reason in reasons], pa.bool_())
        return found.append_column(NUMBER, pa.array(numbers, pa.int64())).filter(counted)

    def _late(self, scan: Scan, found: pa.Table) -> set[int]:
        """The places of the rows that were late: of equal ones the last."""
        late = self.inputs.late(scan)
        if late is None:
            return set()
        names = {name: internal for internal, name in scan.columns}
        wanted = Counter(map(_row, late.to_pylist()))
        rows = found.select([names[name] for name in late.column_names]).rename_columns(late.column_names).to_pylist()
        places = set()
        for place in reversed(range(len(rows))):
            if wanted[_row(rows[place])] > 0:
                wanted[_row(rows[place])] -= 1
                places.add(place)
        return places

    def _numbers(self, scan: Scan, rows: pa.Table) -> list[int]:
        own = {column.name for column in scan.stream.readable}
        shown = [(internal, name) for internal, name in scan.columns if name in own]
        listed = rows.select([internal for internal, _ in shown]).rename_columns([name for _, name in shown])
        times = rows.column(WRITTEN_AT).cast(pa.int64()).to_pylist()
        places = zip(rows.column(PARTITION).to_pylist(), rows.column(OFFSET).to_pylist(), strict=True)
        deltas = rows.column(DELTA).to_pylist()
        return [
            self.ledger.number(TracedRecord(*_of(scan), *place, time, _op(scan, delta), as_json(row)))
            for place, time, delta, row in zip(places, times, deltas, listed.to_pylist(), strict=True)
        ]

    def _tell_near(self, scan: Scan, near: pa.Table, seeks: list[Sought]) -> None:
        if not near.num_rows:
            return
        descriptions = zip(*(one.described(near) for one in seeks), strict=True)
        for number, texts in zip(self._numbers(scan, near), descriptions, strict=True):
            self.ledger.lost([number], "; ".join(filter(None, texts)))

    def _tell_dead(self, scan: Scan, bad: Mapping[str, Any]) -> None:
        time_ms = int(bad["timestamp"].timestamp() * 1000)
        value = (bad["value"] or b"").decode(errors="replace")
        record = TracedRecord(*_of(scan), bad["partition"], bad["offset"], time_ms, "", value)
        self.ledger.lost([self.ledger.number(record)], f"a dead letter: {bad['reason']}")

    # -- what stands --

    def _current_records(self, scan: Scan, records: pa.Table, now: bool) -> pa.Table:
        """The records whose rows stand after all of them; ``now``: why others do not is told."""
        if scan.records is not None:
            return _versions(scan, records)
        match scan.stream.kind:
            case Kind.APPEND:
                return records
            case Kind.CHANGELOG:
                numbers = self._not_taken_back(scan, records)
            case _:
                numbers = _current(scan, records)
                if now:
                    self._tell_replaced(scan, records, set(numbers))
        return records.filter(pc.is_in(records.column(NUMBER), pa.array(numbers, pa.int64())))

    def _tell_replaced(self, scan: Scan, records: pa.Table, stands: set[int]) -> None:
        """Of each primary key which record has replaced, or deleted, the others."""
        last: dict[Values, tuple[int, int]] = {}
        listed = list(zip(*(records.column(name).to_pylist() for name in _primary_key(scan)), strict=True))
        numbers, deltas = records.column(NUMBER).to_pylist(), records.column(DELTA).to_pylist()
        for key, number, delta in zip(listed, numbers, deltas, strict=True):
            if last.get(key, (-1, 0))[0] not in stands:
                last[key] = (number, delta)
        for key, number in zip(listed, numbers, strict=True):
            by, delta = last[key]
            if number == by and delta < 0:
                self.ledger.lost([number], "deletes its row")
            elif number != by:
                verb = "deleted" if delta < 0 else "replaced"
                self.ledger.lost([number], f"{verb} by {self.ledger.records[by].place}")

    def _not_taken_back(self, scan: Scan, records: pa.Table) -> list[int]:
        """The insertions that remain: a retraction takes the oldest row that equals it, its times aside."""
        value_columns = [internal for internal, name in scan.columns if not scan.stream.of_record(name)]
        open_rows: dict[str, list[int]] = {}
        numbers, deltas = records.column(NUMBER).to_pylist(), records.column(DELTA).to_pylist()
        for row, number, delta in zip(records.select(value_columns).to_pylist(), numbers, deltas, strict=True):
            equal = open_rows.setdefault(_row(row), [])
            if delta > 0:
                equal.append(number)
            elif equal:
                taken = equal.pop(0)
                self.ledger.lost([taken], f"taken back by {self.ledger.records[number].place}")
                self.ledger.lost([number], f"takes back {self.ledger.records[taken].place}")
            else:
                self.ledger.lost([number], "takes back a row that is not there")
        return [number for equal in open_rows.values() for number in equal]


def _of(scan: Scan) -> tuple[str, str, str]:
    return scan.alias, scan.stream.name, scan.topic


def _op(scan: Scan, delta: int) -> str:
    read = scan.records or scan.stream
    if read.kind is Kind.UPSERT:
        return "upsert" if delta > 0 else "delete"
    return "+1" if delta > 0 else "-1"


def _primary_key(scan: Scan) -> list[str]:
    """The columns by which records replace one another; none where they do not."""
    if scan.stream.kind not in (Kind.UPSERT, Kind.CHANGELOG_KV):
        return []
    return [scan.internal(name) for name in scan.stream.primary_key]


def _current(scan: Scan, records: pa.Table) -> list[int]:
    """Of each primary key the number of the record that counts."""
    named = {scan.internal(name): name for name in (*scan.stream.primary_key, scan.stream.version) if name}
    columns = {name: records.column(internal) for internal, name in named.items()}
    columns |= {NUMBER: records.column(NUMBER), ARRIVAL: records.column(ARRIVAL), DELTA: records.column(DELTA)}
    numbers: list[int] = content(scan.stream, pa.table(columns)).column(NUMBER).to_pylist()
    return numbers


def _versions(scan: Scan, records: pa.Table) -> pa.Table:
    """Every record a row of its own; deletes only where they end a version."""
    if not scan.deletes or scan.watermark is None:
        return records.filter(pc.greater(records.column(DELTA), 0))
    return VersionStep(scan.internal(scan.watermark.column), WRITTEN_AT, scan.deletes)(records)


def _row(row: Mapping[str, object]) -> str:
    return repr(sorted(row.items()))


def _shape(scan: Scan) -> pa.Table:
    fields = [field for field in scan.schema if field.name != scan.deletes]
    return pa.schema([*fields, (ARRIVAL, pa.int64()), (DELTA, DELTA_TYPE), *PLACED]).empty_table()


def _internal(scan: Scan, rows: pa.Table) -> pa.Table:
    """The rows under internal names; columns that the view does not read are NULL."""
    shape = _shape(scan).schema
    declared = dict(scan.columns)
    columns = []
    for one in shape:
        name = declared.get(one.name, one.name)
        known = name in rows.column_names
        columns.append(rows.column(name).cast(one.type) if known else pa.nulls(rows.num_rows, one.type))
    return pa.table(columns, schema=shape)
