"""Equalities of a join condition become its keys; the rest is its residual condition.

A key is a column of each side, of one type: an expression, or a column whose type differs from its partner's, is
computed into a hidden column ``__k0``, .. on its side. An ASOF join takes its one inequality besides; a temporal join
has the primary key of its right side for keys, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.bind.subquery_advice import ONE_VALUE
from dovetail.sql.expressions.comparison import Comparison, comparison
from dovetail.sql.expressions.evaluate import common_type
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import conjunction, halves
from dovetail.sql.plan.conditions.asof_inequality import with_nearest, with_nearest_once
from dovetail.sql.plan.conditions.join_side import JoinSide
from dovetail.sql.plan.conditions.lookup_keys import lookup_keys
from dovetail.sql.plan.joins import (
    Asof,
    AsofOnce,
    Bidirectional,
    DynamicFilter,
    Enrichment,
    Latest,
    Temporal,
)
from dovetail.sql.plan.joins.dynamic_filter import MovingBound
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import HIDDEN, Join, LookupJoin, Map, Node, Scan, StaticJoin, rebuilt
from dovetail.sql.plan.query_plan import QueryPlan


def join_keys(plan: QueryPlan) -> QueryPlan:
    return plan.with_rows(_keys(plan.rows, count()))


def _keys(node: Node, numbers: Iterator[int]) -> Node:
    made = rebuilt(node, lambda below: _keys(below, numbers))
    if isinstance(made, Map):
        return _with_keys_below(made)
    if isinstance(made, Join):
        return _of_join(made, numbers)
    if isinstance(made, StaticJoin):
        return _of_static(made, numbers)
    if isinstance(made, LookupJoin):
        return lookup_keys(made, numbers)
    return made


def _with_keys_below(node: Map) -> Map:
    """``node`` with the hidden columns of its input, which pass through: the output may need them for its key."""
    hidden = [(name, expr) for name, expr in identity(node.input) if name.startswith(HIDDEN)]
    return replace(node, columns=(*node.columns, *hidden))


def _paired(left: JoinSide, right: JoinSide, found: Comparison, numbers: Iterator[int], place: str) -> tuple[str, str]:
    """The columns, of one type, that hold both sides of a comparison."""
    wanted = common_type(found.left.type, found.right.type, found.readable, place)
    return left.column(found.left, wanted, numbers), right.column(found.right, wanted, numbers)


def _of_join(join: Join, numbers: Iterator[int]) -> Join:
    left, right = JoinSide.of(join.left), JoinSide.of(join.right)
    keys: list[tuple[str, str]] = []
    safe: list[bool] = []
    rest: list[Expr] = []
    covered: set[str | None] = set()
    version_key = _version_key(join)
    for term in join.on:
        found = comparison(term, join.left.schema, join.right.schema)
        equality = found is not None and found.operator in ("=", "is")
        if found is None or not equality or (version_key and found.right.plain not in version_key):
            rest.append(term)
            continue
        covered.add(found.right.plain)
        pair = _paired(left, right, found, numbers, join.place)
        if any(left_key == pair[0] or right_key == pair[1] for left_key, right_key in keys):
            # A column is one key of its side: its further equalities are conditions like any other.
            rest.append(term)
            continue
        keys.append(pair)
        safe.append(found.operator == "is")
    if missing := version_key - covered:
        raise _not_covered(join, missing)
    if not keys and join.kind is JoinKind.SEMI and join.right.single_row and isinstance(join.method, Bidirectional):
        return _with_one_row(join, left, right, rest, numbers)
    if not keys and join.kind.is_existence:
        keys, rest = [_existing(join, left, right, rest, numbers)], []
    if not keys and isinstance(join.method, Enrichment) and join.method.everywhere:
        return _once(join, left, right, rest, numbers)
    if not keys and join.kind in _WITH_ONE_ROW and (join.left.single_row or join.right.single_row):
        return _with_one_row(join, left, right, rest, numbers)
    if not keys:
        raise _no_equality(join)
    keyed = replace(join, on=(), keys=tuple(keys), null_safe=tuple(safe) if any(safe) else ())
    made = _beside_keys(keyed, left, right, rest, numbers)
    return replace(made, left=left.with_hidden(), right=right.with_hidden())


_ONE = Expr(exp.cast(exp.Literal.number(1), exp.DataType.Type.TINYINT), pa.int8())


def _existing(
    join: Join, left: JoinSide, right: JoinSide, terms: list[Expr], numbers: Iterator[int]
) -> tuple[str, str]:
    """The key of a join that asks whether there is any row, for the left rows for which ``terms`` hold: a constant,
    which is NULL for the other ones. All of its rows meet in one bucket.
    """
    if any(not set(term.columns) <= left.names for term in terms):
        raise _nested_loop(join)
    fulfilled = conjunction(terms)
    asks = _ONE
    if fulfilled is not None:
        when = exp.Case().when(fulfilled.tree.copy(), _ONE.tree.copy())
        asks = Expr(when, _ONE.type)
    return left.column(asks, _ONE.type, numbers), right.column(_ONE, _ONE.type, numbers)


_WITH_ONE_ROW = (JoinKind.INNER, JoinKind.LEFT)


def _with_one_row(join: Join, left: JoinSide, right: JoinSide, terms: list[Expr], numbers: Iterator[int]) -> Join:
    """Each row with the one row of the other side, which goes to every bucket."""
    if isinstance(join.method, Enrichment):
        return _once(join, left, right, terms, numbers)
    if not isinstance(join.method, Bidirectional):
        raise _no_equality(join)
    if not join.right.single_row:
        if join.kind is JoinKind.LEFT:
            raise _no_equality(join)
        left, right = right, left
    bound = _moving_bound(left, right, terms, numbers, join.place)
    made = replace(join, left=left.with_hidden(), right=right.with_hidden(), on=(), method=DynamicFilter(bound))
    return replace(made, residual=conjunction(terms), max_buffered_bytes=None)


def _once(join: Join, left: JoinSide, right: JoinSide, terms: list[Expr], numbers: Iterator[int]) -> Join:
    """Each left row, when it comes, with all right rows for which ``terms`` hold: one key for all of them."""
    key = left.column(_ONE, _ONE.type, numbers), right.column(_ONE, _ONE.type, numbers)
    residual = conjunction(terms)
    return replace(join, on=(), keys=(key,), residual=residual, left=left.with_hidden(), right=right.with_hidden())


def _moving_bound(
    left: JoinSide, right: JoinSide, terms: list[Expr], numbers: Iterator[int], place: str
) -> MovingBound | None:
    """The inequality of a left and a right value, if it is all that the condition asks of the right row, and of a type
    whose order can be searched in.
    """
    halves_read = [half for term in terms for half in halves(term) if not right.names.isdisjoint(half.columns)]
    found = comparison(halves_read[0], left.node.schema, right.node.schema) if len(halves_read) == 1 else None
    if found is None or found.operator not in (">", ">=", "<", "<="):
        return None
    kind = common_type(found.left.type, found.right.type, found.readable, place)
    searched = (pa.types.is_integer, pa.types.is_floating, pa.types.is_timestamp, pa.types.is_date32)
    if not any(is_of(kind) for is_of in searched):
        return None
    # The node of a side has no hidden columns yet.
    rises = Map(right.node, (("bound", found.right),)).column_rises("bound")
    return MovingBound(
        left.column(found.left, kind, numbers), found.operator, right.column(found.right, kind, numbers), rises
    )


def _nested_loop(join: Join) -> Unsupported:
    return Unsupported(
        f"a {join.kind.value.upper()} join by an inequality alone is a nested-loop join: every row would be compared "
        "with every other",
        where=join.place,
        fix="add an equality: EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.b < l.a); or compare with one changing "
        "value: l.a > (SELECT min(b) FROM r)",
    )


def _beside_keys(join: Join, left: JoinSide, right: JoinSide, rest: list[Expr], numbers: Iterator[int]) -> Join:
    """What the join takes beside its keys: by its kind a residual condition, an inequality, times."""
    method = join.method
    if join.null_safe and not method.null_safe:
        raise Unsupported(
            "IS NOT DISTINCT FROM is not supported in a join that answers each row once with one other",
            where=join.place,
            fix="write =, or compare values that are not NULL: coalesce(l.key, '') = coalesce(r.key, '')",
        )
    if isinstance(method, AsofOnce):
        return with_nearest_once(join, method, left, right, rest, numbers)
    if isinstance(method, Asof):
        return with_nearest(join, method, left, right, rest, numbers)
    if isinstance(method, Latest) and rest:
        raise no_condition(join, rest[0])
    if isinstance(method, Temporal):
        times = Comparison(join.left.column(method.left), join.right.column(method.right), ">=")
        first, second = _paired(left, right, times, numbers, join.place)
        join = replace(join, method=replace(method, left=first, right=second))
    return replace(join, residual=conjunction(rest))


def _version_key(join: Join) -> set[str]:
    """TEMPORAL: the columns that are the keys. Further equalities are tested on the version that they find:
    a version ends when the next one of its primary key begins, whatever its other columns.
    """
    if not isinstance(join.method, Temporal) or not isinstance(join.right, Scan):
        return set()
    return {join.right.internal(name) for name in join.right.stream.primary_key}


def _not_covered(join: Join, missing: set[str]) -> Unsupported:
    names = ", ".join(sorted(missing))
    return Unsupported(
        f"a temporal join takes the version of one row, so ON holds its whole primary key by equality; {names} is "
        "not there",
        where=join.place,
        fix=f"ON l.key = {names.split(', ')[0]}",
    )


def no_condition(join: Join, term: Expr) -> Unsupported:
    return Unsupported(
        f"a LATEST join takes the last row under its equalities, and no condition beside: {term.readable}",
        where=join.place,
        fix="filter the right side in a subquery, JOIN (SELECT .. FROM r WHERE ..) AS r, or test the row in WHERE; "
        "for the nearest by an inequality, ASOF JOIN",
    )


def _no_equality(join: Join) -> Unsupported:
    if join.method.takes_one:
        return Unsupported(
            f"{join.method.called} join needs at least one equality of a left and a right column",
            where=join.place,
            fix="add it: ON l.key = r.key AND ..",
        )
    if not join.on:
        return Unsupported(
            "CROSS JOIN of two streams is not supported: every row would meet every row, forever",
            where=join.place,
            fix=f"join by an equality: {_shared_equality(join)}; or read one side once: CROSS JOIN table(x)",
        )
    if (mixed := _mixed_equality(join)) is not None:
        return Unsupported(
            f"a join of two streams needs an equality of a left and a right value, and of {mixed.readable} one side is "
            "made of columns of both",
            where=join.place,
            fix="add an equality, beside which it is tested: ON l.key = r.key AND ..; or, for all pairs, make a "
            "constant the equality: FROM (SELECT *, 1 AS one FROM l) AS l JOIN (SELECT *, 1 AS one FROM r) AS r "
            "ON l.one = r.one AND ..; or read one side once: JOIN table(r) AS r ON ..",
        )
    return Unsupported(
        "a join of two streams needs an equality of a left and a right column; an inequality alone is a "
        "nested-loop join",
        where=join.place,
        fix="add an equality: ON l.key = r.key AND l.a > r.b; to compare with one changing value, "
        f"join with it: {ONE_VALUE}; to compare with rows that do not change, JOIN table(r) AS r ON l.a > r.b",
    )


def _shared_equality(join: Join) -> str:
    """``JOIN .. ON l.k = r.k``, of the first column that both sides have under one name."""
    right = {name.partition(".")[2]: name for name in join.right.schema.names}
    for name in join.left.schema.names:
        other = right.get(name.partition(".")[2])
        if other is not None and not name.partition(".")[2].startswith(("_", "#")):
            return f"JOIN .. ON {name} = {other}"
    return "JOIN .. ON l.key = r.key"


def _mixed_equality(join: Join) -> Expr | None:
    """An equality that reads both sides, though it is none of a left and a right value."""
    left, right = set(join.left.schema.names), set(join.right.schema.names)
    for term in join.on:
        read = set(term.columns)
        if isinstance(term.tree, exp.EQ | exp.NullSafeEQ) and read & left and read & right:
            return term
    return None


def _of_static(join: StaticJoin, numbers: Iterator[int]) -> StaticJoin:
    """The static side takes no hidden columns: keys that are not bare columns of one type are left in the residual."""
    left = JoinSide.of(join.input)
    keys: list[tuple[str, str]] = []
    safe: list[bool] = []
    rest: list[Expr] = []
    for term in join.on:
        found = comparison(term, join.input.schema, join.static.schema)
        if found is None or found.operator not in ("=", "is"):
            rest.append(term)
            continue
        common_type(found.left.type, found.right.type, found.readable, join.place)
        right_name = found.right.plain
        if right_name is None:
            rest.append(term)
            continue
        keys.append((left.column(found.left, found.left.type, numbers), right_name))
        safe.append(found.operator == "is")
    return replace(
        join, input=left.with_hidden(), on=(), keys=tuple(keys), null_safe=tuple(safe), residual=conjunction(rest)
    )
