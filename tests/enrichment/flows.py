"""A small flow for tests: left rows (k, id, v), looked up in one or two stores of rows (k, id, w)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from dovetail.broker.reader import RECORDS
from dovetail.changelog.changes import DELTA
from dovetail.changelog.encode import Encoded
from dovetail.changelog.lookup import Key, Lookup, Rows
from dovetail.changelog.schema import ARRIVAL, OFFSET_BITS, SEQUENCE, TIME, Column, Kind, StreamSchema
from dovetail.enrichment.enricher import AnsweredBatch, Enricher
from dovetail.enrichment.memo.memo import Memo, MemoStore
from dovetail.enrichment.stream_rows.rows_store import RowsStore, StoreLookup
from dovetail.joins.dataflow.graph import Sink, TopicScan
from dovetail.joins.dataflow.lookup import Access, LookupFlow, LookupJoinSpec, LookupStage, LookupTarget
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Predicate
from dovetail.joins.reference.rows import Record, Row
from dovetail.sql.expressions.evaluate import RowMap
from dovetail.sql.syntax.statements import Index

KINDS = {
    Ingest.APPEND: Kind.APPEND,
    Ingest.UPSERT: Kind.UPSERT,
    Ingest.CHANGELOG_KV: Kind.CHANGELOG_KV,
    Ingest.CHANGELOG: Kind.CHANGELOG,
    Ingest.CHANGES: Kind.CHANGELOG,
}
COLUMNS = ("k", "id", "v")
_TYPES = (pa.int64(), pa.string(), pa.int64())
PADDING = (None, "none", -1)


@dataclass(frozen=True)
class VBelowW:
    """``v < w`` of the left row and of the columns named ``w``; picklable."""

    w: str = "r0.v"

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        pairs = zip(rows.column("l.v").to_pylist(), rows.column(self.w).to_pylist(), strict=True)
        return np.array([a is not None and b is not None and a < b for a, b in pairs], dtype=np.bool_)


def v_below_w(place: int) -> Callable[[Row], bool]:
    def holds(joined: Row) -> bool:
        a, b = joined[2], joined[place]
        return isinstance(a, int) and isinstance(b, int) and a < b

    return holds


def stream(name: str, kind: Kind) -> StreamSchema:
    keyed = kind in (Kind.UPSERT, Kind.CHANGELOG_KV)
    columns = tuple(Column(column, arrow) for column, arrow in zip(COLUMNS, _TYPES, strict=True))
    return StreamSchema(name, columns, kind, ("k", "id") if keyed else ())


def access(table: str, by: tuple[str, ...]) -> Access:
    return Access(LookupTarget.STREAM, table, by, COLUMNS, _TYPES)


def stage(number: int, by: tuple[str, ...], kind: JoinKind, condition: Predicate | None = None) -> LookupStage:
    """Joins by the left columns of the same names."""
    names = [f"r{number}.{name}" for name in COLUMNS]
    return LookupStage(
        LookupJoinSpec(
            kind=kind,
            access=access(f"r{number}", by),
            keys=tuple(f"l.{name}" for name in by),
            columns=tuple(zip(names, COLUMNS, strict=True)),
            schema=pa.schema(list(zip(names, _TYPES, strict=True))),
            padding=PADDING,
            condition=condition,
            mark=f"m{number}",
        )
    )


def added(join: LookupJoinSpec) -> list[str]:
    """The columns that a join adds to its left rows."""
    if not join.kind.is_existence:
        return list(join.schema.names)
    return [join.mark] if join.kind is JoinKind.MARK else []


def flow(ingest: Ingest, stages: Sequence[LookupStage], output_format: str = "changelog") -> LookupFlow:
    left = pa.schema([(f"l.{name}", arrow) for name, arrow in zip(COLUMNS, _TYPES, strict=True)])
    renamed = RowMap(tuple((f"l.{name}", f'"{name}"') for name in COLUMNS), left)
    output = (*left.names, *(name for one in stages for name in added(one.join)))
    keyed = ingest in (Ingest.UPSERT, Ingest.CHANGELOG_KV)
    identity = ("l.k", "l.id") if keyed else () if ingest is Ingest.APPEND else tuple(left.names)
    key = ("l.k", "l.id") if keyed else ()
    return LookupFlow(
        scan=TopicScan(stream("l", KINDS[ingest]), "l", COLUMNS, (renamed,), 0),
        stages=tuple(stages),
        sink=Sink(1, output, key, ("k", "id") if keyed else (), ingest is not Ingest.APPEND, False, output_format),
        ingest=ingest,
        identity=identity,
    )


@dataclass
class DictLookup:
    """Rows by key, in memory; counts what it is asked."""

    rows: Mapping[Key, Rows]
    calls: int = 0
    key_count: int = 0

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        self.calls += 1
        self.key_count += len(keys)
        assert len(set(keys)) == len(keys)
        return [self.rows.get(key, ()) for key in keys]


def records(rows: Sequence[Record], first: int, kind: Kind, partition: int = 0) -> pa.Table:
    """The rows as records of a topic, from the offset ``first`` on."""
    values = []
    for row, delta in rows:
        members: dict[str, object] = dict(zip(COLUMNS, row, strict=True))
        if kind is not Kind.APPEND:
            members["_tp_delta"] = delta
        values.append(orjson.dumps(members))
    count = len(values)
    columns = [[None] * count, values, [0] * count, [partition] * count, list(range(first, first + count))]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORDS, strict=True)]
    return pa.table(arrays, schema=RECORDS)


def stored(rows: Sequence[Record], first: int, partition: int = 0) -> pa.Table:
    """The rows as a store takes them in."""
    arrays = [pa.array([row[place] for row, _ in rows], arrow) for place, arrow in enumerate(_TYPES)]
    count = len(rows)
    arrivals = [partition << OFFSET_BITS | offset for offset in range(first, first + count)]
    return pa.table(
        [
            *arrays,
            pa.nulls(count, pa.timestamp("ms", "UTC")),
            pa.array(range(first, first + count), pa.int64()),
            pa.array(arrivals, pa.int64()),
            pa.array([delta for _, delta in rows], pa.int64()),
        ],
        names=[*COLUMNS, TIME, SEQUENCE, ARRIVAL, DELTA],
    )


def net(messages: Encoded, output: Sequence[str]) -> Counter[Row]:
    """What changelog messages add up to, without zeros."""
    total: Counter[Row] = Counter()
    for value in messages.values:
        assert value is not None
        members = orjson.loads(value)
        total[tuple(members[name] for name in output)] += members.get("_tp_delta", 1)
    return Counter({row: count for row, count in total.items() if count})


@dataclass
class Host:
    """Runs a flow over stores on disk, and can lose all that is in memory."""

    flow: LookupFlow
    folder: Path
    right_kind: Kind
    indexes: Sequence[Index] = ()

    def __post_init__(self) -> None:
        self.offset = 0
        self.right_offsets: Counter[str] = Counter()
        self.open()

    def open(self) -> None:
        self.stores = {
            access.table: RowsStore(
                self.folder / f"{access.table}.db", stream(access.table, self.right_kind), self.indexes
            )
            for access in self.flow.accesses
        }
        lookups: dict[Access, Lookup] = {
            access: StoreLookup(self.stores[access.table], access) for access in self.flow.accesses
        }
        self.memo_store = MemoStore(self.folder / "memo.db") if self.flow.ingest is not Ingest.APPEND else None
        memo = Memo(self.memo_store, self.flow.ingest) if self.memo_store is not None else None
        self.enricher = Enricher(self.flow, lookups, memo)

    def close(self) -> None:
        for store in self.stores.values():
            store.close()
        if self.memo_store is not None:
            self.memo_store.close()

    def restart(self) -> None:
        self.close()
        self.open()

    def right(self, table: str, rows: Sequence[Record]) -> None:
        first = self.right_offsets[table]
        assert self.stores[table].offsets == ({0: first} if first else {})
        self.right_offsets[table] += len(rows)
        self.stores[table].apply(stored(rows, first), {0: first + len(rows)} if first + len(rows) else {})

    def left(self, rows: Sequence[Record]) -> AnsweredBatch:
        """One step, not committed."""
        return self.enricher.step(records(rows, self.offset, KINDS[self.flow.ingest]), 0)

    def commit(self, rows: Sequence[Record], step: AnsweredBatch) -> None:
        self.offset += len(rows)
        self.enricher.confirm(step.updates, self.offset)
