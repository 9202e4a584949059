"""The nodes of the logical plan of a query: a tree of frozen dataclasses, read by the rules, EXPLAIN and the compiler.

    Output
    └─ LookupJoin         each row answered once, from what stands there now
       ├─ Join            Bidirectional, Range, Enrichment, Asof, ..: ``how`` says which; of several a MultiwayJoin
       │  │               or a DeltaJoin
       │  ├─ Map          computed columns, a filter
       │  │  └─ Window    TUMBLE or HOP: a row for each window; Sessions: with its own
       │  │     └─ ArrayJoin   a row for each element of its arrays
       │  │        └─ Scan     a stream under its alias
       │  └─ Keyed        upserts to changes
       │     └─ Scan      or a query as upserts, by changelog(query, k)
       └─ LookupTable     a dictionary, an external table, the rows of a keyed stream

Columns have internal names, ``<alias>.<column>``, hidden ones ``__k0``, ..., unique in the tree. Expressions are typed
trees over those names. ``schema`` of a node gives the row columns that leave it; what follows of the nodes below
it stands in ``sql.plan.properties``, its line of text in ``sql.plan.explain``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import JSON, Column, RecordFormat, StreamSchema
from dovetail.joins.aggregates.aggregation import Aggregation, Closing
from dovetail.joins.dataflow.lookup import LookupTarget
from dovetail.joins.dataflow.ports import JoinKind, Pad, SetKind, Watermark
from dovetail.joins.partitions.ordering import Rank, SortKey
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.joins import JoinMethod
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Index

HIDDEN = "__k"
"""What the names of columns begin with that only hold a join key."""


@dataclass(frozen=True)
class OneInput:
    """What a node is that makes its rows of those of one other, ``input``."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, below: Node) -> Self:
        return replace(self, input=below)


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
    kept_with   the alias of a scan that has the same rows, in the same join: they are read and kept as those of it. '':
                they are for themselves
    told     of a view: the watermarks that its query tells, by column; one is taken where it is asked for
    """

    alias: str
    stream: StreamSchema
    topic: str
    rules: Rules
    columns: tuple[tuple[str, str], ...]
    where: Expr | None = None
    trusted: bool = False
    latest: bool = False
    seek: str = ""
    watermark: Watermark | None = None
    records: StreamSchema | None = None
    deletes: str = ""
    stated: Watermark | None = None
    kept_with: str = ""
    told: tuple[Watermark, ...] = ()

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def with_inputs(self) -> Self:
        return self

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [pa.field(internal, declared_type(self.stream, name)) for internal, name in self.columns]
        return pa.schema([*fields, pa.field(self.deletes, pa.bool_())] if self.deletes else fields)

    def internal(self, declared: str) -> str:
        return next(internal for internal, name in self.columns if name == declared)


def declared_type(stream: StreamSchema, name: str) -> pa.DataType:
    """The type of a declared, included or reserved column."""
    return stream.types[name]


@dataclass(frozen=True)
class Static:
    """A FROM item that does not change: the result of ``sql`` over the tables that ``relations`` name, read at the
    start. ``single``: one row at most.
    """

    alias: str
    relations: tuple[str, ...]
    sql: str
    schema: pa.Schema
    single: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def with_inputs(self) -> Self:
        return self


@dataclass(frozen=True)
class Keyed(OneInput):
    """Upserts in, changes out, by ``primary_key``; a level of its own. The upserts are those of a scan, or the rows of
    a query that takes none back, ``changelog(x, k)``. ``by_arrival``: the changes tell when their records came."""

    primary_key: tuple[str, ...]
    by_arrival: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        return self.input.schema


@dataclass(frozen=True)
class Map(OneInput):
    """The rows of ``input`` that pass ``where``, with ``columns`` computed from them."""

    columns: tuple[tuple[str, Expr], ...]
    where: Expr | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, expr.type) for name, expr in self.columns])


@dataclass(frozen=True)
class Window(OneInput):
    """TUMBLE or HOP: each row of ``input`` once for every window that holds its ``time``, with the columns ``start``
    and ``end`` of this window. Windows begin at multiples of ``slide_ms`` since the epoch and hold their start, not
    their end. A row without a time is in none.
    """

    time: str
    size_ms: int
    slide_ms: int
    start: str
    end: str

    @property
    def tumbles(self) -> bool:
        """Whether a row is in one window."""
        return self.size_ms == self.slide_ms

    @cached_property
    def schema(self) -> pa.Schema:
        kind = self.input.schema.field(self.time).type
        return pa.schema([*self.input.schema, pa.field(self.start, kind), pa.field(self.end, kind)])


@dataclass(frozen=True)
class Sessions(OneInput):
    """SESSION: each row of ``input`` with the columns ``start`` and ``end`` of its session, among the rows that agree
    in ``keys``; as ``joins.aggregates.sessions`` has it.

    keys     None until the GROUP BY above is known, whose keys they are
    closing  no row whose ``time`` is behind the watermark of the input and this can come, or be taken back; None: one
             can
    closed   a row leaves once, when its session has ended (EMIT ON WINDOW CLOSE)
    """

    time: str
    gap_ms: int
    longest_ms: int | None
    start: str
    end: str
    keys: tuple[str, ...] | None = None
    closing: int | None = None
    closed: bool = False
    place: str = ""

    @property
    def by(self) -> tuple[str, ...]:
        """The keys, which the plan of a whole query knows."""
        if self.keys is None:
            raise InternalError("the sessions have no GROUP BY yet")
        return self.keys

    @cached_property
    def schema(self) -> pa.Schema:
        kind = self.input.schema.field(self.time).type
        return pa.schema([*self.input.schema, pa.field(self.start, kind), pa.field(self.end, kind)])


@dataclass(frozen=True)
class ArrayJoin(OneInput):
    """Each row of ``input`` once for every place in the longest of its ``arrays``, with the elements at this place; an
    array that has ended gives NULL. A row without elements is left out, unless ``left``: it then has the default of
    each type. NULL is an array without elements.

    arrays   the column of the elements and the array that they are of, side by side
    dropped  columns that the arrays are made of and nothing above reads: they are not repeated for each element
    """

    arrays: tuple[tuple[str, Expr], ...]
    left: bool = False
    dropped: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns of the input that leave."""
        return tuple(name for name in self.input.schema.names if name not in self.dropped)

    @property
    def elements(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.arrays)

    @cached_property
    def schema(self) -> pa.Schema:
        kept = [field for field in self.input.schema if field.name not in self.dropped]
        return pa.schema([*kept, *(pa.field(name, array.type.value_type) for name, array in self.arrays)])


@dataclass(frozen=True)
class Join:
    """Two streams, joined by equality of ``keys`` (pairs left, right) and ``residual``; ``how`` says the rest.

    Before the rule ``join_keys`` has run, the whole condition stands in ``on``, conjunct by conjunct.
    """

    kind: JoinKind
    how: JoinMethod
    left: Node
    right: Node
    on: tuple[Expr, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    null_safe: tuple[bool, ...] = ()
    residual: Expr | None = None
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None
    place: str = ""
    """Where it is written, for errors."""
    mark: str = ""
    """Of MARK: the column that says whether a left row matches something."""
    max_rows_per_key: int | None = None
    """A record that would be one more row of its key on its side is a dead letter; None: none is. Of a chain of joins
    that is one, its last says it."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, left: Node, right: Node) -> Self:
        return replace(self, left=left, right=right)

    @cached_property
    def schema(self) -> pa.Schema:
        return _joined_columns(self.kind, self.left.schema, self.right.schema, self.mark)


def _joined_columns(kind: JoinKind, left: pa.Schema, right: pa.Schema, mark: str) -> pa.Schema:
    """Of SEMI and ANTI the left columns alone, of MARK the mark besides."""
    added = right if not kind.asks else [pa.field(mark, pa.bool_())] if kind is JoinKind.MARK else []
    return pa.schema([*left, *added])


@dataclass(frozen=True)
class JoinChain:
    """The ``joins`` uppermost joins of ``chain`` as one node.

    Its rows are those of ``chain``, a tree of joins of two, whose left sides are the joins before; so what is true of
    them is asked of it.
    """

    chain: Join
    joins: int

    @property
    def links(self) -> tuple[Join, ...]:
        """The joins of two, each over the one before."""
        found = [self.chain]
        while len(found) < self.joins:
            below = found[-1].left
            if not isinstance(below, Join):
                raise InternalError(f"a chain of {self.joins} joins ends after {len(found)}")
            found.append(below)
        return tuple(reversed(found))

    @property
    def inputs(self) -> tuple[Node, ...]:
        first, *others = self.links
        return (first.left, first.right, *(link.right for link in others))

    def with_inputs(self, first: Node, second: Node, *others: Node) -> Self:
        lowest, *links = self.links
        chain = lowest.with_inputs(first, second)
        for link, right in zip(links, others, strict=True):
            chain = link.with_inputs(chain, right)
        return replace(self, chain=chain)

    @cached_property
    def schema(self) -> pa.Schema:
        return self.chain.schema


@dataclass(frozen=True)
class MultiwayJoin(JoinChain):
    """Joins as one whose inputs all share a key: each is kept once."""

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each input that are the key, in one order."""
        place: dict[str, int] = {left: number for number, (left, _) in enumerate(self.links[0].keys)}
        keys = [tuple(place)]
        for link in self.links:
            pairs = sorted(link.keys, key=lambda pair: place[pair[0]])
            place |= {right: place[left] for left, right in pairs}
            keys.append(tuple(right for _, right in pairs))
        return tuple(keys)


@dataclass(frozen=True)
class DeltaJoin(JoinChain):
    """INNER joins as one, by whichever keys, that keeps nothing between them: ``joins.operators.delta_joins``.

    paths   of each input: it, and the others in the order in which its changes meet them
    """

    paths: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Aggregate(OneInput):
    """Groups of the rows of ``input`` that agree in the columns ``by``: these, and what is made of the rows of each.

    closing   groups go when the watermark has passed them; its column is one of ``by``
    closed    a row leaves once, when its group goes (EMIT ON WINDOW CLOSE)
    gathered  columns that are computed from all rows of a group: calls of the engine's aggregates
    """

    by: tuple[str, ...]
    aggregations: tuple[Aggregation, ...]
    closing: Closing | None = None
    closed: bool = False
    gathered: tuple[tuple[str, Expr], ...] = ()
    place: str = ""

    @cached_property
    def schema(self) -> pa.Schema:
        keys = [self.input.schema.field(name) for name in self.by]
        folded = [pa.field(one.name, one.type) for one in self.aggregations]
        return pa.schema([*keys, *folded, *(pa.field(name, call.type) for name, call in self.gathered)])


@dataclass(frozen=True)
class UnionAll:
    """The rows of all ``parts``, each as often as all of them together give it; of each the columns in ``schema``.

    clock   the column that has a watermark, the least of those of the parts; empty: none has
    shifts  by part, how much less than its watermark the clock of a row may be that is yet to come
    """

    parts: tuple[Node, ...]
    schema: pa.Schema
    clock: str = ""
    shifts: tuple[int, ...] = ()

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def with_inputs(self, *parts: Node) -> Self:
        return replace(self, parts=parts)


@dataclass(frozen=True)
class SetOperation:
    """INTERSECT or EXCEPT of the rows of both inputs, which have the columns of ``schema``; each is as often there as
    ``joins.operators.set_operation`` has it.
    """

    kind: SetKind
    left: Node
    right: Node
    schema: pa.Schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, left: Node, right: Node) -> Self:
        return replace(self, left=left, right=right)

    @property
    def by(self) -> tuple[str, ...]:
        """The columns by which rows are compared: all."""
        return tuple(self.schema.names)


@dataclass(frozen=True)
class Over(OneInput):
    """Each row of ``input`` with what window functions compute from the rows that agree with it in the columns ``by``.

    calls   columns: window functions over the columns of the input, without their PARTITION BY
    """

    by: tuple[str, ...]
    calls: tuple[tuple[str, Expr], ...]

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.input.schema, *(pa.field(name, call.type) for name, call in self.calls)])


@dataclass(frozen=True)
class TopN(OneInput):
    """Of the rows of ``input`` that agree in the columns ``by`` those whose rank in ``order`` is from ``first`` to
    ``last``; with the rank in the column ``number``, unless that is ''.
    """

    by: tuple[str, ...]
    order: tuple[SortKey, ...]
    rank: Rank
    first: int
    last: int
    number: str = ""

    @cached_property
    def schema(self) -> pa.Schema:
        number = [pa.field(self.number, pa.int64())] if self.number else []
        return pa.schema([*self.input.schema, *number])

    @property
    def single(self) -> bool:
        """Whether no more than one row of those that agree in ``by`` is let through."""
        return self.rank is Rank.ROW_NUMBER and self.first >= self.last


@dataclass(frozen=True)
class StaticJoin:
    """A stream joined with a table that does not change; no state."""

    kind: JoinKind
    input: Node
    static: Static
    on: tuple[Expr, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    null_safe: tuple[bool, ...] = ()
    residual: Expr | None = None
    pad: Pad = Pad.NULL
    place: str = ""
    mark: str = ""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, self.static)

    def with_inputs(self, below: Node, static: Node) -> Self:
        if not isinstance(static, Static):
            raise InternalError(f"the right side is a Static, not {type(static).__name__}")
        return replace(self, input=below, static=static)

    @cached_property
    def schema(self) -> pa.Schema:
        return _joined_columns(self.kind, self.input.schema, self.static.schema, self.mark)


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
    target: LookupTarget
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

    def with_inputs(self) -> Self:
        return self

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(internal, self.type_of(name)) for internal, name in self.columns])

    def type_of(self, declared: str) -> pa.DataType:
        return next(column.type for column in self.declared if column.name == declared)

    def internal(self, declared: str) -> str:
        return f"{self.alias}.{declared}"


@dataclass(frozen=True)
class LookupJoin:
    """Rows joined, once and when they come, with those of ``table`` under their key then. INNER or LEFT; or asked
    whether there are any: SEMI, ANTI, MARK.

    Before the rule ``join_keys`` has run, the whole condition stands in ``on``, conjunct by conjunct.

    keys     pairs: a column of the input, a declared column of the table
    index    what serves the lookup
    padding  values of padded columns that are not as ``pad`` says, by internal name
    """

    kind: JoinKind
    input: Node
    table: LookupTable
    on: tuple[Expr, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    index: str = ""
    residual: Expr | None = None
    pad: Pad = Pad.NULL
    padding: tuple[tuple[str, Any], ...] = ()
    place: str = ""
    mark: str = ""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, self.table)

    def with_inputs(self, below: Node, table: Node) -> Self:
        if not isinstance(table, LookupTable):
            raise InternalError(f"the right side is a LookupTable, not {type(table).__name__}")
        return replace(self, input=below, table=table)

    @cached_property
    def schema(self) -> pa.Schema:
        return _joined_columns(self.kind, self.input.schema, self.table.schema, self.mark)

    @property
    def single(self) -> bool:
        """Whether a row meets at most one row."""
        key = set(self.table.primary_key)
        return bool(key) and key <= {name for _, name in self.keys}


@dataclass(frozen=True)
class OutputClock:
    """The watermark of a query's output.

    behind   by input of the last operator, how much less than its watermark a time may be that is yet to leave (ms, or
             the number itself); the output has the least of these
    columns  those that are not behind it, and how much more than it they are at least
    grid     times of rows are at multiples of the first number, and the second one more
    """

    behind: tuple[int, ...]
    columns: tuple[tuple[str, int], ...]
    grid: tuple[int, int] = (1, 0)


@dataclass(frozen=True)
class Output:
    """What leaves the query: the rows of its topic.

    columns    the output columns, in order
    hidden     further columns that only make up the Kafka key
    key        names among both; ``key_names`` as they stand in the record's key
    updating   rows can be taken back; ``marked`` asks for ``_tp_delta`` even where they cannot
    value_format, key_format  those of the stream that it goes INTO
    period_ms  what changes leaves so often at most (EMIT PERIODIC); 0: at once
    hybrid     the state that may be larger than memory; None: none may
    subplans_once   equal operators below are one, and several read its rows (``sql.plan.state.common_subplans``)
    clock      the watermark that heartbeats tell those who read the topic; None: none
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
    value_format: RecordFormat = JSON
    key_format: RecordFormat = JSON
    period_ms: int = 0
    hybrid: HybridState | None = None
    clock: OutputClock | None = None
    subplans_once: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, below: Node) -> Self:
        return replace(self, input=below)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, expr.type) for name, expr in self.columns])


Node = (
    Scan
    | Static
    | Keyed
    | Map
    | Window
    | Sessions
    | ArrayJoin
    | Join
    | MultiwayJoin
    | DeltaJoin
    | Aggregate
    | UnionAll
    | SetOperation
    | Over
    | TopN
    | StaticJoin
    | LookupJoin
    | LookupTable
)


def as_join(node: Join | MultiwayJoin | DeltaJoin) -> Join:
    """The join of two whose rows they are."""
    return node if isinstance(node, Join) else node.chain


def column_of(node: Node, name: str) -> Expr:
    """A column that leaves ``node``, by itself."""
    return Expr.column(name, node.schema.field(name).type)


def rebuilt(node: Node, rule: Callable[[Node], Node]) -> Node:
    """``node`` over what ``rule`` makes of its inputs: what most rules do with the nodes that they are not about."""
    return node.with_inputs(*(rule(below) for below in node.inputs))
