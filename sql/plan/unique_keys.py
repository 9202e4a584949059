"""Which columns tell the rows of a node apart, and by which its rows were cut into buckets last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from sqlglot import exp

from dovetail.joins.aggregates.aggregation import Fold
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.joins.partitions.ordering import Rank
from dovetail.sql.expressions.expression import Expr, coalesce
from dovetail.sql.expressions.predicates import split
from dovetail.sql.plan.joins.method import Key, KeyedSides
from dovetail.sql.plan.nodes import (
    HIDDEN,
    Aggregate,
    ArrayJoin,
    DeltaJoin,
    Join,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    MultiwayJoin,
    Node,
    Over,
    Scan,
    Sessions,
    SetOperation,
    Static,
    StaticJoin,
    TopN,
    UnionAll,
    Window,
    as_join,
    column_of,
)
from dovetail.sql.plan.properties import source_of
from dovetail.sql.plan.upserts import UPSERTS, fused_key


def unique_keys(node: Node) -> list[Key]:
    """Sets of columns no two rows of the running table share, the shortest first; none is known for a multiset."""
    match node:
        case Scan():
            known = node.stream.primary_key if node.stream.kind in UPSERTS or node.trusted else ()
            travels = {declared for _, declared in node.columns}
            return [tuple(node.internal(name) for name in known)] if known and set(known) <= travels else []
        case Keyed():
            return [node.primary_key]
        case Map():
            renamed = _renamed(node)
            return [tuple(renamed[name] for name in key) for key in unique_keys(node.input) if set(key) <= set(renamed)]
        case Window():
            windows = () if node.tumbles else (node.start,)
            return [(*key, *windows) for key in unique_keys(node.input)]
        case Aggregate() | SetOperation():
            return [node.by] if isinstance(node, Aggregate) else _of_set_operation(node)
        case Join() | MultiwayJoin() | DeltaJoin():
            join = as_join(node)
            left, right = unique_keys(join.left), unique_keys(join.right)
            return join.how.unique_keys(KeyedSides(join.kind, join.pad, join.keys, left, right))
        case LookupJoin() | LookupTable() | StaticJoin() | Static():
            return _of_tables(node)
        case Sessions() | Over() | TopN():
            return _of_partitions(node)
        case UnionAll() | ArrayJoin():
            return _of_one_part(node)
        case _:
            assert_never(node)


def _of_one_part(node: UnionAll | ArrayJoin) -> list[Key]:
    """Those of records that a level makes changes of: a UNION ALL of one part."""
    if isinstance(node, ArrayJoin) or len(node.parts) > 1:
        return []
    return [key for key in unique_keys(node.parts[0]) if set(key) <= set(node.schema.names)]


def _of_partitions(node: Sessions | Over | TopN) -> list[Key]:
    """Those of the input, and the row number in a partition; of a partition with one row that partition."""
    numbers: list[str] = []
    own: list[Key] = []
    match node:
        case Sessions():
            pass
        case TopN():
            numbers = [node.number] if node.number and node.rank is Rank.ROW_NUMBER else []
            own = [node.by] if node.single else []
        case Over():
            numbers = [name for name, call in node.calls if _is_row_number(call)]
        case _:
            assert_never(node)
    return sorted([*own, *unique_keys(node.input), *((*node.by, number) for number in numbers)], key=len)


def _of_set_operation(node: SetOperation) -> list[Key]:
    """The rows are some of the left side, and of INTERSECT of the right one too."""
    own = [node.by] if node.kind.distinct else []
    right = unique_keys(node.right) if node.kind.intersects else []
    return sorted(dict.fromkeys([*own, *unique_keys(node.left), *right]), key=len)


def _is_row_number(call: Expr) -> bool:
    window = call.tree
    return isinstance(window, exp.Window) and window.this.name.lower() == Rank.ROW_NUMBER


def _of_tables(node: LookupJoin | LookupTable | StaticJoin | Static) -> list[Key]:
    match node:
        case LookupJoin():
            return _of_lookup(node)
        case LookupTable():
            return _declared_key(node)
        case StaticJoin():
            return unique_keys(node.input) if node.kind.asks else []
        case Static():
            return []
        case _:
            assert_never(node)


def _of_lookup(join: LookupJoin) -> list[Key]:
    """Those of the input, where a row meets at most one; else with the primary key of what it meets."""
    left = unique_keys(join.input)
    if join.single or join.kind.asks:
        return left
    return [tuple(dict.fromkeys(first + key)) for first in left for key in _declared_key(join.table)]


def _declared_key(table: LookupTable) -> list[Key]:
    """The primary key of a table, as far as it travels."""
    travels = {name: internal for internal, name in table.columns}
    key = table.primary_key
    return [tuple(travels[name] for name in key)] if key and set(key) <= set(travels) else []


def _renamed(node: Map) -> Mapping[str, str]:
    """Input column -> the output column that is it."""
    return {expr.plain: name for name, expr in reversed(node.columns) if expr.plain is not None}


def padded(node: Node) -> set[str]:
    """The columns that can be NULL in a unique key: those that an outer join fills where a row has no match, those by
    which rows are grouped or replace one another.
    """
    match node:
        case Aggregate() | Keyed() | SetOperation():
            by = node.primary_key if isinstance(node, Keyed) else node.by
            return set(by) - never_null(node)
        case Map():
            below = padded(node.input)
            return {name for name, expr in node.columns if below & set(expr.columns)}
        case Window() | Sessions() | ArrayJoin() | Over() | TopN():
            by = node.by if isinstance(node, Over | TopN) else ()
            return padded(node.input) | (set(by) - never_null(node.input))
        case StaticJoin() | LookupJoin():
            table = node.static if isinstance(node, StaticJoin) else node.table
            return padded(node.input) | (set(table.schema.names) if node.kind == JoinKind.LEFT else set())
        case Join() | MultiwayJoin() | DeltaJoin():
            join = as_join(node)
            found = padded(join.left) | padded(join.right)
            if join.kind in (JoinKind.RIGHT, JoinKind.FULL):
                found |= set(join.left.schema.names)
            if join.kind in (JoinKind.LEFT, JoinKind.FULL):
                found |= set(join.right.schema.names)
            return found
        case UnionAll():
            return set().union(*map(padded, node.parts))
        case Scan() | Static() | LookupTable():
            return set()
        case _:
            assert_never(node)


def never_null(node: Node) -> set[str]:
    """The columns that are known to have a value in every row."""
    match node:
        case Scan():
            given = {column.name for column in node.stream.columns if not column.nullable}
            given |= set(node.stream.primary_key if node.stream.kind in UPSERTS else ())
            return {internal for internal, name in node.columns if name in given}
        case Keyed() | ArrayJoin() | StaticJoin() | LookupJoin():
            return never_null(node.input)
        case Map():
            below = never_null(node.input) | _tested(node)
            return {name for name, expr in node.columns if expr.plain in below}
        case Window() | Sessions() | Over() | TopN():
            return never_null(node.input) | _always_there(node)
        case Aggregate():
            counts = {one.name for one in node.aggregations if one.fold is Fold.COUNT}
            return (never_null(node.input) & set(node.by)) | counts
        case Join() | MultiwayJoin() | DeltaJoin():
            return set().union(*map(never_null, node.inputs)) - padded(node)
        case UnionAll() | SetOperation():
            return _never_null_in_a_part(node)
        case LookupTable():
            return set().union(*_declared_key(node))
        case Static():
            return set()
        case _:
            assert_never(node)


def _never_null_in_a_part(node: UnionAll | SetOperation) -> set[str]:
    """Where the rows of all parts leave, in every one; of an intersection, in either."""
    if isinstance(node, UnionAll):
        return set(node.schema.names).intersection(*map(never_null, node.parts))
    return never_null(node.left) | (never_null(node.right) if node.kind.intersects else set())


def _always_there(node: Window | Sessions | Over | TopN) -> set[str]:
    """The columns that a node adds, or that it has no row without."""
    match node:
        case Window() | Sessions():
            return {node.time, node.start, node.end}
        case Over():
            return {name for name, call in node.calls if _is_row_number(call)}
        case TopN():
            return {node.number} if node.number else set()
        case _:
            assert_never(node)


def _tested(node: Map) -> set[str]:
    """The columns of the input that WHERE says are not NULL."""
    found = set()
    for term in split(node.where):
        inner = term.tree.this.unnest() if isinstance(term.tree, exp.Not) else None
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null) and isinstance(inner.this, exp.Column):
            found.add(inner.this.name)
    return found


def equals(node: Node) -> dict[str, set[str]]:
    """Column -> columns that, in a key, can stand for it: the partner in the join key.

    A LEFT join's right column is NULL or equal to its left partner, so the left one stands for it, not the reverse.
    """
    match node:
        case Map():
            renamed = _renamed(node)
            below = equals(node.input)
            return {
                renamed[name]: {renamed[other] for other in others if other in renamed}
                for name, others in below.items()
                if name in renamed
            }
        case Window() | Sessions() | ArrayJoin() | StaticJoin() | Over() | TopN():
            return equals(node.input)
        case Aggregate():
            below = equals(node.input)
            return {name: below[name] & set(node.by) for name in node.by if name in below}
        case Join() | MultiwayJoin() | DeltaJoin():
            return _of_partners(as_join(node))
        case LookupJoin():
            # Not the reverse: the database may hold equal what differs here, in letter case.
            return equals(node.input) | {right: {left} for left, right in _asked(node)}
        case Scan() | Static() | Keyed() | UnionAll() | SetOperation() | LookupTable():
            return {}
        case _:
            assert_never(node)


def _of_partners(join: Join) -> dict[str, set[str]]:
    found = {**equals(join.left), **equals(join.right)}
    for left, right in join.keys:
        if join.kind in (JoinKind.INNER, JoinKind.LEFT):
            found.setdefault(right, set()).add(left)
        if join.kind in (JoinKind.INNER, JoinKind.RIGHT):
            found.setdefault(left, set()).add(right)
    return found


def _asked(join: LookupJoin) -> list[Key]:
    """The pairs of its key, by internal names, as far as the right column travels."""
    travels = {} if join.kind.asks else {name: internal for internal, name in join.table.columns}
    return [(left, travels[right]) for left, right in join.keys if right in travels]


def cut_by(join: Join) -> tuple[str, ...]:
    """The columns of the left side by which its rows are cut into buckets: the keys of the join. Without an equality
    those that find a row again.
    """
    keys = tuple(left for left, _ in join.keys)
    return tuple(name for name in found_by(join.left) if name not in keys) if join.how.everywhere else keys


def found_by(node: Node) -> tuple[str, ...]:
    """Columns in which a retraction agrees with the row that it takes away."""
    fused = fused_key(node)
    known = [fused] if fused is not None else unique_keys(node)
    if known:
        return known[0]
    source = source_of(node)
    arrivals = (
        set() if source is None else {internal for internal, name in source.columns if source.stream.of_record(name)}
    )
    return tuple(name for name in node.schema.names if name not in arrivals)


Cut = tuple[Expr | None, ...]
"""The expressions by which rows were cut; None in the place of one whose columns have ended."""
_OTHERWISE: Cut = (None,)
"""By nothing that could be said of all rows."""


def bucket_key(node: Node) -> Cut | None:
    """The expressions over the columns of ``node`` by which its rows were cut into buckets; None without a level."""
    match node:
        case Keyed():
            return tuple(column_of(node, name) for name in node.primary_key)
        case Aggregate() | Sessions() | SetOperation() | Over() | TopN():
            return tuple(column_of(node, name) for name in node.by)
        case Map():
            below = bucket_key(node.input)
            return tuple(_above(node, expr) for expr in below) if below is not None else None
        case Window() | ArrayJoin() | StaticJoin():
            return bucket_key(node.input)
        case LookupJoin():
            return partition_key(node.input)
        case Join() | MultiwayJoin():
            join = as_join(node)
            if join.how.everywhere:
                return tuple(column_of(join, name) for name in cut_by(join))
            return tuple(_cut(join, left, right) for left, right in join.keys)
        case UnionAll() | DeltaJoin():
            return _OTHERWISE
        case Scan() | Static() | LookupTable():
            return None
        case _:
            assert_never(node)


def partition_key(node: Node) -> Cut | None:
    """The expressions by which the rows that reach a lookup join lie in partitions, if these are known.

    Those of ``bucket_key``; of a scan its primary key, which is the key of its records.
    """
    match node:
        case Scan():
            if not node.stream.primary_key:
                return None
            travels = {declared for _, declared in node.columns}
            key = node.stream.primary_key
            return tuple(column_of(node, node.internal(name)) if name in travels else None for name in key)
        case Map():
            below = partition_key(node.input)
            return tuple(_above(node, expr) for expr in below) if below is not None else None
        case Window() | ArrayJoin() | StaticJoin() | LookupJoin():
            return partition_key(node.input)
        case Keyed() | Join() | MultiwayJoin() | DeltaJoin() | Aggregate() | Sessions() | UnionAll() | Over() | TopN():
            return bucket_key(node)
        case Static() | LookupTable():
            return bucket_key(node)
        case SetOperation():
            return bucket_key(node)
        case _:
            assert_never(node)


def _above(node: Map, expr: Expr | None) -> Expr | None:
    """An expression over the input of ``node`` as one over its output; None where its columns end, or have ended."""
    if expr is None:
        return None
    same = next((name for name, computed in node.columns if computed.structure == expr.structure), None)
    if same is not None:
        return column_of(node, same)
    renamed = _renamed(node)
    if not set(expr.columns) <= set(renamed):
        return None
    return expr.substituted({name: column_of(node, renamed[name]) for name in expr.columns})


def _cut(join: Join, left: str, right: str) -> Expr:
    """The key that a row was cut by; of two equal ones rather that which is no hidden column."""
    first, second = column_of(join.left, left), column_of(join.right, right)
    if join.kind == JoinKind.FULL:
        return Expr(coalesce(first, second), first.type)
    by_right = join.kind == JoinKind.RIGHT or (join.kind == JoinKind.INNER and left.startswith(HIDDEN))
    return second if by_right else first
