"""The logical plan of a query: a tree of frozen dataclasses, read by the rules, by EXPLAIN and by the compiler.

    Output
    └─ LookupJoin         each row answered once, from what stands there now
       ├─ Join            Bidirectional, Range, Enrichment, Asof, .., by its strategy
       │  ├─ Map          computed columns, a filter
       │  │  └─ Window    TUMBLE or HOP: a row for each window
       │  │     └─ Scan   a stream under its alias
       │  └─ Keyed        upserts to changes
       │     └─ Scan
       └─ LookupTable     a dictionary, an external table, the rows of a keyed stream

Columns have internal names, ``<alias>.<column>``, hidden ones ``__k0``, ..., unique in the tree. Expressions are
DuckDB SQL over those names. ``schema`` of a node gives the row columns that leave it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

from changelog.schema import EVENT_TIME_TYPE, SEQUENCE, TIME, Column, Kind, StreamSchema
from joins.dataflow import Aggregation, Alignment, Band, Closing, Fold, JoinKind, Pad, Watermark
from joins.lookup import Target
from sql.expressions import columns_of, plain_column, quoted
from sql.ordered import Asof, Sides, Version, alignment_text, asof_state, current, latest_state, temporal_state
from sql.state_bounds import RangeState, band_text, per_unit, span_text, watermark_text
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


ORDERED = (Strategy.ASOF, Strategy.ASOF_UPDATING, Strategy.LATEST, Strategy.TEMPORAL)
"""Joins that take one right row of many: a condition on it is tested when it has been chosen, so none moves below."""
ONE_SHOT = (Strategy.ENRICHMENT, Strategy.ASOF, Strategy.LATEST)
"""Joins that answer a left row once, from what is there when it comes."""


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
    deletes  with ``records``: a hidden column that is true where the record is a delete; such a version begins at the
             time of the record. '': deletes are left out
    stated   the WATERMARK clause of the stream; ``watermark`` is what the query goes by
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
    deletes: str = ""
    stated: Watermark | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def schema(self) -> pa.Schema:
        fields = [pa.field(internal, declared_type(self.stream, name)) for internal, name in self.columns]
        return pa.schema([*fields, pa.field(self.deletes, pa.bool_())] if self.deletes else fields)

    def internal(self, declared: str) -> str:
        return next(internal for internal, name in self.columns if name == declared)

    def line(self) -> str:
        parts = [f"scan {self.stream.name}" + (f" as {self.alias}" if self.alias != self.stream.name else "")]
        parts += [f"topic={self.topic}", f"kind={self.stream.kind.value}"]
        if self.stream.primary_key:
            parts.append(f"key={','.join(self.stream.primary_key)}")
        if self.stream.version:
            stands = "first" if self.stream.first_stays else "last"
            parts.append(f"version={self.stream.version} (of equals the {stands})")
        if self.records is not None:
            parts.append("versions: every record" + (", deletes too" if self.deletes else " but deletes"))
        parts.append(f"columns={','.join(name for _, name in self.columns) or 'none'}")
        if self.where is not None:
            parts.append(f"where {readable(self.where)}")
        if self.watermark is not None:
            parts.append(watermark_text(self.watermark, declared_type(self.stream, self.watermark.column)))
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
    """Upserts in, changes out, by the primary key; a level of its own. ``by_arrival``: the changes tell when their
    records came."""

    input: Scan
    by_arrival: bool = False

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
        order = "  in order of arrival" if self.by_arrival else ""
        state = "state: the current row of each key, until it is deleted"
        return f"Keyed  key={shown(self.primary_key)}{order}  {state}  engine=spark"


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
            if expr.plain is None or (name.startswith("__") and expr.plain != name)
        ]
        parts += computed if computed or self.where is not None else [f"columns={','.join(self.schema.names)}"]
        return "  ".join(parts)


@dataclass(frozen=True)
class Window:
    """TUMBLE or HOP: each row of ``input`` once for every window that holds its ``time``, with the columns ``start``
    and ``end`` of this window. Windows begin at multiples of ``slide_ms`` since the epoch and hold their start, not
    their end. A row without a time is in none.
    """

    input: Node
    time: str
    size_ms: int
    slide_ms: int
    start: str
    end: str

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def tumbles(self) -> bool:
        """Whether a row is in one window."""
        return self.size_ms == self.slide_ms

    @property
    def schema(self) -> pa.Schema:
        kind = self.input.schema.field(self.time).type
        return pa.schema([*self.input.schema, pa.field(self.start, kind), pa.field(self.end, kind)])

    def line(self) -> str:
        every = "" if self.tumbles else f" every {seconds(self.slide_ms)}"
        name = "tumble" if self.tumbles else "hop"
        return f"Window {name}  {self.time}  size {seconds(self.size_ms)}{every}  state: none"


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
    clock: str = ""
    """RANGE: the column of the band whose watermark goes on with the rows that leave."""
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None
    place: str = ""
    """Where it is written, for errors."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def schema(self) -> pa.Schema:
        """Of SEMI and ANTI the left columns alone."""
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.left.schema
        return pa.schema([*self.left.schema, *self.right.schema])

    def line(self) -> str:
        parts = [f"{_OPERATORS[self.strategy]} {self.kind.value}", f"on={self._keys()}"]
        if self.asof is not None:
            parts += self.asof.parts(self.left.schema.field(self.asof.left).type)
        if self.version is not None:
            parts.append(self.version.text())
        if self.alignment is not None:
            parts.append(alignment_text(self.alignment, watermark_at(self.right)))
        if self.band is not None:
            parts.append(band_text(self.band, self._band_type()))
        if self.residual is not None:
            parts.append(f"and {readable(self.residual)}")
        if self.pad == Pad.DEFAULT:
            parts.append("unmatched=default")
        parts += [*self._times(), f"state: {self._state()}"]
        if self.max_buffered_bytes is not None:
            parts.append(f"max_buffered_bytes={self.max_buffered_bytes}")
        return "  ".join([*parts, "engine=spark"])

    def _times(self) -> list[str]:
        """RANGE: when rows leave, and what is known of those that follow."""
        parts = []
        if self.closed:
            parts.append("every row once, when its window is closed")
        elif self.append:
            parts.append("unmatched rows once, when nothing can match them any more")
        if self.clock:
            parts.append(f"passes on the watermark of {self.clock}")
        return parts

    def _keys(self) -> str:
        safe = self.null_safe or (False,) * len(self.keys)
        return ",".join(
            f"{left}{' is ' if same else '='}{right}" for (left, right), same in zip(self.keys, safe, strict=True)
        )

    def clock_shifts(self) -> tuple[int, int] | None:
        """RANGE: by how much the rows that are yet to leave may be behind the watermarks of both sides, in ``clock``;
        None where nothing tells.
        """
        band = self.band
        if band is None or self.closed or None in (watermark_at(self.left), watermark_at(self.right)):
            return None
        bound = band.lower if self.clock == band.left else band.upper
        if bound is None or band.left_shift is None or band.right_shift is None:
            return None
        kind = self._band_type()
        earlier = bound if self.clock == band.left else -bound
        behind = earlier * per_unit(kind) // 1_000 if pa.types.is_timestamp(kind) else earlier
        if self.clock == band.left:
            return band.left_shift, band.right_shift + behind
        return band.left_shift + behind, band.right_shift

    def range_state(self) -> RangeState | None:
        """What bounds the state of a RANGE join."""
        if self.band is None:
            return None
        left, right = watermark_at(self.left), watermark_at(self.right)
        return RangeState(self.band, self._band_type(), left, right, changes(self.left), changes(self.right))

    def _band_type(self) -> pa.DataType:
        return self.left.schema.field(self.band.left).type if self.band is not None else pa.null()

    def _state(self) -> str:
        bounds = self.range_state()
        if bounds is not None:
            return bounds.text()
        if self.strategy in ORDERED:
            return self._ordered_state()
        kept = (
            {"left": self.left, "right": self.right}
            if self.strategy == Strategy.BIDIRECTIONAL
            else {"right": self.right}
        )
        return ", ".join(f"{side} {current(changes(node))}" for side, node in kept.items())

    def _ordered_state(self) -> str:
        left, right = watermark_at(self.left), watermark_at(self.right)
        sides = Sides(changes(self.left), changes(self.right), left, right)
        if self.asof is not None:
            return asof_state(self.asof, self.left.schema.field(self.asof.left).type, sides)
        return latest_state(self.kind, sides) if self.strategy == Strategy.LATEST else temporal_state(sides)


_OPERATORS = {
    Strategy.BIDIRECTIONAL: "Bidirectional",
    Strategy.RANGE: "Range",
    Strategy.ENRICHMENT: "Enrichment",
    Strategy.ASOF: "AsofJoin",
    Strategy.ASOF_UPDATING: "AsofJoin",
    Strategy.LATEST: "Latest",
    Strategy.TEMPORAL: "Temporal",
}


@dataclass(frozen=True)
class Aggregate:
    """Groups of the rows of ``input`` that agree in the columns ``by``: these, and what is made of the rows of each.

    closing   groups go when the watermark has passed them; its column is one of ``by``
    closed    a row leaves once, when its group goes (EMIT ON WINDOW CLOSE)
    """

    input: Node
    by: tuple[str, ...]
    aggregations: tuple[Aggregation, ...]
    closing: Closing | None = None
    closed: bool = False
    place: str = ""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def schema(self) -> pa.Schema:
        keys = [self.input.schema.field(name) for name in self.by]
        return pa.schema([*keys, *(pa.field(one.name, one.type) for one in self.aggregations)])

    def line(self) -> str:
        parts = ["Aggregate", f"by={shown(self.by) or 'none'}"]
        parts += [", ".join(one.name for one in self.aggregations)] if self.aggregations else []
        parts += ["every row once, when its window is closed"] if self.closed else []
        return "  ".join([*parts, f"state: {self._state()}", "engine=spark"])

    def _state(self) -> str:
        parts = ["one row per group" if self.by else "one row"]
        parts += [f"all values of {argument}" for argument in self._kept_arguments()]
        parts += ["the current rows"] if _checked(self.input) else []
        return ", ".join(parts) + self._bound()

    def _bound(self) -> str:
        """How far back the groups go that are kept."""
        watermark = watermark_at(self.input)
        if self.closing is None or watermark is None:
            return ""
        column = self.closing.column
        span = span_text(watermark.delay_ms - self.closing.shift, self.schema.field(column).type)
        return f", of the last {span} of {column}"

    def _kept_arguments(self) -> tuple[str, ...]:
        """The arguments whose values are kept one by one."""
        updates = changes(self.input)
        extremes = (Fold.MIN, Fold.MAX)
        kept = [one.argument for one in self.aggregations if one.distinct or (updates and one.fold in extremes)]
        return tuple(dict.fromkeys(kept))


def _checked(node: Node) -> bool:
    """Whether retractions are compared with the rows they take away: those that are no output of an operator."""
    match node:
        case Scan():
            return node.stream.kind != Kind.APPEND and not node.trusted
        case Map() | Window() | StaticJoin():
            return _checked(node.input)
        case _:
            return False


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


Node = Scan | Static | Keyed | Map | Window | Join | Aggregate | StaticJoin | LookupJoin | LookupTable


def changes(node: Node) -> bool:
    """Whether rows that leave the node can be taken back."""
    match node:
        case Scan():
            return node.stream.kind != Kind.APPEND
        case Static() | LookupTable():
            return False
        case Keyed():
            return True
        case Map() | Window() | StaticJoin() | LookupJoin():
            return changes(node.input)
        case Join():
            if node.append or node.closed:
                return False
            if node.strategy == Strategy.ASOF_UPDATING:
                return True
            if node.strategy not in (Strategy.BIDIRECTIONAL, Strategy.RANGE):
                return node.strategy != Strategy.LATEST and changes(node.left)
            pads = node.kind not in (JoinKind.INNER, JoinKind.SEMI)
            return pads or changes(node.left) or changes(node.right)
        case Aggregate():
            return not node.closed


class Engine(StrEnum):
    """Who runs a part of a query: Spark what keeps state of its inputs, the Faust workers what looks up."""

    SPARK = "spark"
    FAUST = "faust"


def runs_on(node: Node) -> Engine | None:
    """The engine of the uppermost operator; None where there is none: either can do it."""
    match node:
        case LookupJoin():
            return Engine.FAUST
        case Keyed() | Join() | Aggregate():
            return Engine.SPARK
        case Map() | Window() | StaticJoin():
            return runs_on(node.input)
        case _:
            return None


def watermark_at(node: Node) -> Watermark | None:
    """The watermark of the scan whose rows reach ``node`` without an operator between, under the name that its column
    has there; None where there is none, or where the column does not travel so far.
    """
    match node:
        case Scan() if node.watermark is not None:
            internal = next((name for name, declared in node.columns if declared == node.watermark.column), None)
            return None if internal is None else replace(node.watermark, column=internal)
        case Map():
            below = watermark_at(node.input)
            named = {expr.plain: name for name, expr in reversed(node.columns) if expr.plain is not None}
            return replace(below, column=named[below.column]) if below is not None and below.column in named else None
        case Keyed() | Window() | StaticJoin():
            return watermark_at(node.input)
        case Aggregate() if node.closed and node.closing is not None:
            below = watermark_at(node.input)
            column, shift = node.closing.column, node.closing.shift
            if below is None:
                return None
            return replace(below, column=column, delay_ms=below.delay_ms - shift, drops_late=False)
        case Join() if node.clock and node.clock_shifts() is not None:
            return Watermark(node.clock, 0, max_future_ms=None, drops_late=False)
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
