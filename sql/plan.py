"""The logical plan of a query: a tree of frozen dataclasses, read by the rules, by EXPLAIN and by the compiler.

    Output
    └─ LookupJoin         each row answered once, from what stands there now
       ├─ Join            Bidirectional, Enrichment or Asof, by its strategy
       │  ├─ Map          computed columns, a filter
       │  │  └─ Scan      a stream under its alias
       │  └─ Keyed        upserts to changes
       │     └─ Scan
       └─ LookupTable     a dictionary, an external table, the rows of a keyed stream

Columns have internal names, ``<alias>.<column>``, hidden ones ``__k0``, ..., unique in the tree. Expressions are
DuckDB SQL over those names. ``schema`` of a node gives the row columns that leave it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from changelog.schema import EVENT_TIME_TYPE, SEQUENCE, TIME, Column, Kind, StreamSchema
from joins.dataflow import Alignment, Band, JoinKind, Pad, Watermark
from joins.lookup import Target
from sql.expressions import columns_of, plain_column, quoted
from sql.statements import Index
from sql.types import Rules

HIDDEN = "__k"
"""What the names of columns begin with that only hold a join key."""


@dataclass(frozen=True)
class Expr:
    """A scalar expression over the columns of a node, as DuckDB SQL, and its type."""

    sql: str
    type: pa.DataType

    @staticmethod
    def column(name: str, schema: pa.Schema) -> Expr:
        return Expr(quoted(name), schema.field(name).type)

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.sql)

    @property
    def plain(self) -> str | None:
        """The column that it merely names, if that is all it does."""
        return plain_column(self.sql)


class Strategy(StrEnum):
    """Which sides a join keeps, and which trigger it."""

    BIDIRECTIONAL = "bidirectional"
    RANGE = "range"
    """Bidirectional, of rows near in time; state goes with the watermark."""
    ENRICHMENT = "enrichment"
    ASOF = "asof"
    """One-shot, under Timeplus rules."""
    ASOF_UPDATING = "asof_updating"
    LATEST = "latest"
    TEMPORAL = "temporal"
    """FOR SYSTEM_TIME AS OF a time of the left row."""


@dataclass(frozen=True)
class Scan:
    """A stream, view or ``changelog(x, k)`` under its alias.

    columns  internal name and declared name of each column that travels
    where    a condition on internal names, applied before anything else
    trusted  the changes were made by a query of Dovetail: consistent by construction
    latest   a fresh start begins at the end of the topic; ``seek`` says where it begins otherwise, if not at the
             beginning
    records  the stream as its records are read, where that is not ``stream``: the right side of an ASOF join takes each
             upsert for a row of its own, a version, and leaves deletes out
    """

    alias: str
    stream: StreamSchema
    topic: str
    rules: Rules
    columns: tuple[tuple[str, str], ...]
    where: str | None = None
    trusted: bool = False
    latest: bool = False
    seek: str = ""
    watermark: Watermark | None = None
    records: StreamSchema | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(internal, declared_type(self.stream, name)) for internal, name in self.columns])

    def internal(self, declared: str) -> str:
        return next(internal for internal, name in self.columns if name == declared)

    def line(self) -> str:
        parts = [f"scan {self.stream.name}" + (f" as {self.alias}" if self.alias != self.stream.name else "")]
        parts += [f"topic={self.topic}", f"kind={self.stream.kind.value}"]
        if self.stream.primary_key:
            parts.append(f"key={','.join(self.stream.primary_key)}")
        parts.append(f"columns={','.join(name for _, name in self.columns) or 'none'}")
        if self.where is not None:
            parts.append(f"where {readable(self.where)}")
        if self.watermark is not None:
            parts.append(f"watermark={self.watermark.column}-{seconds(self.watermark.delay_ms)}")
        parts.append(f"from={'latest' if self.latest else self.seek or 'earliest'}")
        return "  ".join(parts)


def declared_type(stream: StreamSchema, name: str) -> pa.DataType:
    """The type of a declared or reserved column."""
    declared = {column.name: column.type for column in stream.columns}
    return declared.get(name) or {TIME: EVENT_TIME_TYPE, SEQUENCE: pa.int64()}[name]


@dataclass(frozen=True)
class Static:
    """A FROM item that does not change: the result of ``sql`` over the tables that ``relations`` name, read at the
    start.
    """

    alias: str
    relations: tuple[str, ...]
    sql: str
    schema: pa.Schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def line(self) -> str:
        return f"static {self.alias}  table({', table('.join(self.relations)}), read once at the start"


@dataclass(frozen=True)
class Keyed:
    """Upserts in, changes out, by the primary key; a level of its own."""

    input: Scan

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def primary_key(self) -> tuple[str, ...]:
        return tuple(self.input.internal(name) for name in self.input.stream.primary_key)

    def line(self) -> str:
        state = "state: the current row of each key, until it is deleted"
        return f"Keyed  key={shown(self.primary_key)}  {state}  engine=spark"


@dataclass(frozen=True)
class Map:
    """The rows of ``input`` that pass ``where``, with ``columns`` computed from them."""

    input: Node
    columns: tuple[tuple[str, Expr], ...]
    where: str | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, expr.type) for name, expr in self.columns])

    def line(self) -> str:
        parts = ["Map"] + ([f"where {readable(self.where)}"] if self.where is not None else [])
        computed = [
            f"{name} = {readable(expr.sql)}" + (f" as {expr.type}" if expr.plain is not None else "")
            for name, expr in self.columns
            if expr.plain is None or (name.startswith(HIDDEN) and expr.plain != name)
        ]
        parts += computed if computed or self.where is not None else [f"columns={','.join(self.schema.names)}"]
        return "  ".join(parts)


@dataclass(frozen=True)
class Asof:
    """The inequality of an ASOF join: the nearest right row for which ``left <comparison> right`` holds.

    ties       columns by which the smallest of equal right rows is taken; empty: the last arrived
    tolerance  greatest distance, in the unit of the columns
    """

    left: str
    comparison: str
    right: str
    keep_versions: int
    ties: tuple[str, ...] = ()
    tolerance: int | None = None


@dataclass(frozen=True)
class Version:
    """FOR SYSTEM_TIME AS OF ``left``: the version whose time ``right`` is the last not after it.

    deleted   a column of the right side that is true where the record is a delete; empty: there are none
    """

    left: str
    right: str
    deleted: str = ""


@dataclass(frozen=True)
class Join:
    """Two streams, joined by equality of ``keys`` (pairs left, right) and ``residual``.

    Before the rule ``join_keys`` has run, the whole condition stands in ``on``, conjunct by conjunct.
    """

    kind: JoinKind
    strategy: Strategy
    left: Node
    right: Node
    on: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    null_safe: tuple[bool, ...] = ()
    residual: str | None = None
    asof: Asof | None = None
    band: Band | None = None
    version: Version | None = None
    alignment: Alignment | None = None
    append: bool = False
    """RANGE: padded rows leave once, when nothing can match them any more."""
    closed: bool = False
    """RANGE: every row leaves once, when its time is behind the watermark (EMIT ON WINDOW CLOSE)."""
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None
    place: str = ""
    """Where it is written, for errors."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.left.schema, *self.right.schema])

    def line(self) -> str:
        parts = [f"{_OPERATORS[self.strategy]} {self.kind.value}", f"on={self._keys()}"]
        if self.asof is not None:
            parts.append(
                f"{self.asof.left} {self.asof.comparison} {self.asof.right}  keep_versions={self.asof.keep_versions}"
            )
        if self.residual is not None:
            parts.append(f"and {readable(self.residual)}")
        if self.pad == Pad.DEFAULT:
            parts.append("unmatched=default")
        parts.append(f"state: {self._state()}")
        if self.max_buffered_bytes is not None:
            parts.append(f"max_buffered_bytes={self.max_buffered_bytes}")
        return "  ".join([*parts, "engine=spark"])

    def _keys(self) -> str:
        safe = self.null_safe or (False,) * len(self.keys)
        return ",".join(
            f"{left}{' is ' if same else '='}{right}" for (left, right), same in zip(self.keys, safe, strict=True)
        )

    def _state(self) -> str:
        if self.strategy == Strategy.ASOF and self.asof is not None:
            return f"the last {self.asof.keep_versions} right rows of each join key, for ever"
        kept = (
            {"left": self.left, "right": self.right}
            if self.strategy == Strategy.BIDIRECTIONAL
            else {"right": self.right}
        )
        return ", ".join(f"{side} {_bound(node)}" for side, node in kept.items())


_OPERATORS = {
    Strategy.BIDIRECTIONAL: "Bidirectional",
    Strategy.RANGE: "Range",
    Strategy.ENRICHMENT: "Enrichment",
    Strategy.ASOF: "AsofJoin",
    Strategy.ASOF_UPDATING: "AsofJoin",
    Strategy.LATEST: "Latest",
    Strategy.TEMPORAL: "Temporal",
}


def _bound(node: Node) -> str:
    """What is kept of a side, and until when."""
    return "the current rows" if changes(node) else "all rows, unbounded"


@dataclass(frozen=True)
class StaticJoin:
    """A stream joined with a table that does not change; no state."""

    kind: JoinKind
    input: Node
    static: Static
    on: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    null_safe: tuple[bool, ...] = ()
    residual: str | None = None
    pad: Pad = Pad.NULL
    place: str = ""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, self.static)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.input.schema, *self.static.schema])

    def line(self) -> str:
        on = ",".join(f"{left}={right}" for left, right in self.keys) or "every row"
        residual = [f"and {readable(self.residual)}"] if self.residual is not None else []
        return "  ".join([f"StaticJoin {self.kind.value}", f"on={on}", *residual, "state: none", "engine=spark"])


class Cover(StrEnum):
    """What the equalities of a lookup join must cover of the columns that it asks by."""

    KEY = "the primary key, exactly"
    """Dictionaries."""
    ANY = "any columns"
    """Tables of other databases."""
    PREFIX = "the primary key, a prefix of it, or of an index"
    """Direct joins."""
    INDEXED = "the whole primary key, or a prefix of an index"
    """Process-time temporal joins."""


@dataclass(frozen=True)
class LookupTable:
    """The right side of a lookup join under its alias. No stream: its changes emit nothing.

    columns      internal and declared name of each column that travels
    declared     all columns, in the order of a row
    primary_key  names of the columns that no two rows share; may be none
    index        the one index that the query names in the place of the table, if it does
    kept         how the rows are kept, for EXPLAIN
    """

    alias: str
    target: Target
    name: str
    cover: Cover
    columns: tuple[tuple[str, str], ...]
    declared: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    index: str = ""
    kept: str = ""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(internal, self.type_of(name)) for internal, name in self.columns])

    def type_of(self, declared: str) -> pa.DataType:
        return next(column.type for column in self.declared if column.name == declared)

    def internal(self, declared: str) -> str:
        return f"{self.alias}.{declared}"

    def line(self) -> str:
        kinds = {Target.DICTIONARY: "dictionary", Target.EXTERNAL: "external table", Target.STREAM: "rows of"}
        parts = [f"{kinds[self.target]} {self.name}" + (f" as {self.alias}" if self.alias != self.name else "")]
        parts += [self.kept] if self.kept else []
        parts += [f"key={shown(self.primary_key)}"] if self.primary_key else []
        return "  ".join([*parts, f"columns={','.join(name for _, name in self.columns) or 'none'}"])


@dataclass(frozen=True)
class LookupJoin:
    """Rows joined, once and when they come, with those of ``table`` under their key then. INNER or LEFT.

    Before the rule ``join_keys`` has run, the whole condition stands in ``on``, conjunct by conjunct.

    keys     pairs: a column of the input, a declared column of the table
    index    what serves the lookup
    padding  values of padded columns that are not as ``pad`` says, by internal name
    """

    kind: JoinKind
    input: Node
    table: LookupTable
    on: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    index: str = ""
    residual: str | None = None
    pad: Pad = Pad.NULL
    padding: tuple[tuple[str, Any], ...] = ()
    place: str = ""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, self.table)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.input.schema, *self.table.schema])

    @property
    def single(self) -> bool:
        """Whether a row meets at most one row."""
        key = set(self.table.primary_key)
        return bool(key) and key <= {name for _, name in self.keys}

    def line(self) -> str:
        on = ",".join(f"{left}={self.table.internal(right)}" for left, right in self.keys)
        parts = [f"Lookup {self.kind.value}", f"on={on}", f"{self.table.name} by {self.index}"]
        if self.residual is not None:
            parts.append(f"and {readable(self.residual)}")
        if self.pad == Pad.DEFAULT:
            parts.append("unmatched=default")
        if given := dict(self.padding):
            parts.append(f"unmatched {', '.join(f'{name}={value!r}' for name, value in given.items())}")
        state = "memo: what was looked up, per left row" if changes(self.input) else "state: none"
        return "  ".join([*parts, state, "engine=faust"])


@dataclass(frozen=True)
class Output:
    """What leaves the query: the rows of its topic.

    columns    the output columns, in order
    hidden     further columns that only make up the Kafka key
    key        names among both; ``key_names`` as they stand in the record's key
    updating   rows can be taken back; ``marked`` asks for ``_tp_delta`` even where they cannot
    """

    name: str
    topic: str
    input: Node
    columns: tuple[tuple[str, Expr], ...]
    hidden: tuple[tuple[str, Expr], ...]
    key: tuple[str, ...]
    key_names: tuple[str, ...]
    updating: bool
    exchanged: bool
    marked: bool = False
    unique: bool = False
    """No two rows of the running table share the key."""
    format: str = "changelog"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, expr.type) for name, expr in self.columns])

    def line(self) -> str:
        kind = ("Upserts" if self.format == "upsert" else "Changelog") if self.updating or self.marked else "Append"
        emits = "+1,-1" if self.updating else "+1"
        key = f"key={','.join(self.key_names)}" if self.key else "key=none"
        exchange = ["exchange by key"] if self.exchanged else []
        columns = f"columns={','.join(name for name, _ in self.columns)}"
        return "  ".join([f"{kind} {self.name}", f"topic={self.topic}", key, columns, f"emits={emits}", *exchange])


Node = Scan | Static | Keyed | Map | Join | StaticJoin | LookupJoin | LookupTable


def changes(node: Node) -> bool:
    """Whether rows that leave the node can be taken back."""
    match node:
        case Scan():
            return node.stream.kind != Kind.APPEND
        case Static() | LookupTable():
            return False
        case Keyed():
            return True
        case Map() | StaticJoin() | LookupJoin():
            return changes(node.input)
        case Join():
            if node.strategy != Strategy.BIDIRECTIONAL:
                return changes(node.left)
            return node.kind != JoinKind.INNER or changes(node.left) or changes(node.right)


class Engine(StrEnum):
    """Who runs a part of a query: Spark what keeps state of its inputs, the Faust workers what looks up."""

    SPARK = "spark"
    FAUST = "faust"


def runs_on(node: Node) -> Engine | None:
    """The engine of the uppermost operator; None where there is none: either can do it."""
    match node:
        case LookupJoin():
            return Engine.FAUST
        case Keyed() | Join():
            return Engine.SPARK
        case Map() | StaticJoin():
            return runs_on(node.input)
        case _:
            return None


def rules_of(node: Node) -> Rules:
    """Timeplus rules, where every stream below has them."""
    scans = [below for below in walk(node) if isinstance(below, Scan)]
    return Rules.TIMEPLUS if all(scan.rules == Rules.TIMEPLUS for scan in scans) else Rules.RISINGWAVE


def walk(node: Output | Node) -> Iterator[Output | Node]:
    """The node and all below it, parents first, left before right."""
    yield node
    for below in node.inputs:
        yield from walk(below)


def fingerprint(plan: Output) -> str:
    """A hash over everything that the state and the output of the query depend on."""
    text = "\n".join(f"{type(node).__name__} {node.line()} {_types(node)}" for node in walk(plan))
    return hashlib.sha256(text.encode()).hexdigest()


def _types(node: Output | Node) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in node.schema)


def readable(sql: str) -> str:
    """DuckDB SQL without the quotes around internal names, on one line."""
    return " ".join(sql.replace('"', "").split())


def shown(names: tuple[str, ...]) -> str:
    return ",".join(names)


def seconds(ms: int) -> str:
    return f"{ms // 1000} s" if ms % 1000 == 0 else f"{ms} ms"
