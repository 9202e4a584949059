"""Equalities of a join condition become its keys; the rest is its residual condition.

A key is a column of each side, of one type: an expression, or a column whose type differs from its partner's, is
computed into a hidden column ``__k0``, .. on its side. An ASOF join takes its one inequality besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pyarrow as pa

from changelog.errors import SqlError, Unsupported
from sql.expressions import common_type, quoted, types_of
from sql.plan import HIDDEN, Asof, Expr, Join, LookupJoin, Map, Node, StaticJoin, Strategy
from sql.rules.lookup_keys import lookup_keys
from sql.rules.predicates import conjunction
from sql.rules.push_down import identity
from sql.rules.sides import Comparison, Side, comparison


def join_keys(node: Node) -> Node:
    return _keys(node, count())


def _keys(node: Node, numbers: Iterator[int]) -> Node:
    match node:
        case Map():
            return _with_keys_below(node, _keys(node.input, numbers))
        case Join():
            inputs = replace(node, left=_keys(node.left, numbers), right=_keys(node.right, numbers))
            return _of_join(inputs, numbers)
        case StaticJoin():
            return _of_static(replace(node, input=_keys(node.input, numbers)), numbers)
        case LookupJoin():
            return lookup_keys(replace(node, input=_keys(node.input, numbers)), numbers)
        case _:
            return node


def _with_keys_below(node: Map, below: Node) -> Map:
    """``node`` over its new input, whose hidden columns pass through: the output may need them for its key."""
    hidden = [(name, expr) for name, expr in identity(below) if name.startswith(HIDDEN)]
    return replace(node, input=below, columns=(*node.columns, *hidden))


def _paired(left: Side, right: Side, found: Comparison, numbers: Iterator[int], place: str) -> tuple[str, str]:
    """The columns, of one type, that hold both sides of a comparison."""
    (left_type,) = types_of(left.node.schema, [found.left])
    (right_type,) = types_of(right.node.schema, [found.right])
    wanted = common_type(left_type, right_type, f"{found.left} {found.operator} {found.right}", place)
    return (
        left.column(Expr(found.left, left_type), wanted, numbers),
        right.column(Expr(found.right, right_type), wanted, numbers),
    )


def _of_join(join: Join, numbers: Iterator[int]) -> Join:
    left, right = Side.of(join.left), Side.of(join.right)
    keys: list[tuple[str, str]] = []
    safe: list[bool] = []
    rest: list[str] = []
    inequalities: list[tuple[str, Comparison]] = []
    for term in join.on:
        found = comparison(term, left.names, right.names)
        if found is not None and found.operator in ("=", "is"):
            pair = _paired(left, right, found, numbers, join.place)
            if any(left_key == pair[0] or right_key == pair[1] for left_key, right_key in keys):
                # A column is one key of its side: its further equalities are conditions like any other.
                rest.append(term)
                continue
            keys.append(pair)
            safe.append(found.operator == "is")
        elif found is not None and join.strategy == Strategy.ASOF:
            inequalities.append((term, found))
        else:
            rest.append(term)
    if not keys:
        raise _no_equality(join)
    asof = _asof(join, left, right, inequalities, numbers) if join.asof is not None else None
    return replace(
        join,
        left=left.with_hidden(),
        right=right.with_hidden(),
        on=(),
        keys=tuple(keys),
        null_safe=tuple(safe) if any(safe) else (),
        residual=conjunction(rest),
        asof=asof,
    )


def _asof(join: Join, left: Side, right: Side, found: list[tuple[str, Comparison]], numbers: Iterator[int]) -> Asof:
    if len(found) != 1 or join.asof is None:
        raise Unsupported(
            f"an ASOF join takes exactly one inequality of a left and a right column; here are {len(found)}",
            where=join.place,
            fix="ON l.key = r.key AND l.time >= r.time",
        )
    _, inequality = found[0]
    left_time, right_time = _paired(left, right, inequality, numbers, join.place)
    (kind,) = types_of(right.with_hidden().schema, [quoted(right_time)])
    if pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        raise SqlError(
            f"an ASOF join orders by a number or a time, not by {kind}",
            where=join.place,
            fix="compare time columns in the inequality",
        )
    return replace(join.asof, left=left_time, comparison=inequality.operator, right=right_time)


def _no_equality(join: Join) -> Unsupported:
    if not join.on:
        return Unsupported(
            "CROSS JOIN of two streams is not supported: every row would meet every row, for ever",
            where=join.place,
            fix="join by an equality, or read one side once: CROSS JOIN table(x)",
        )
    return Unsupported(
        "a join of two streams needs an equality of a left and a right column; an inequality alone is a "
        "nested-loop join",
        where=join.place,
        fix="add an equality: ON l.key = r.key AND l.a > r.b; to compare with one changing value, use the dynamic "
        "filter form: "
        "WHERE l.a > (SELECT max(b) FROM r); to compare with rows that do not change, JOIN table(r)",
    )


def _of_static(join: StaticJoin, numbers: Iterator[int]) -> StaticJoin:
    """The static side takes no hidden columns: keys that are not bare columns of one type are left in the residual."""
    left = Side.of(join.input)
    static = set(join.static.schema.names)
    keys: list[tuple[str, str]] = []
    safe: list[bool] = []
    rest: list[str] = []
    for term in join.on:
        found = comparison(term, left.names, static)
        if found is None or found.operator not in ("=", "is"):
            rest.append(term)
            continue
        (right_type,) = types_of(join.static.schema, [found.right])
        (left_type,) = types_of(join.input.schema, [found.left])
        common_type(left_type, right_type, f"{found.left} {found.operator} {found.right}", join.place)
        right_name = Expr(found.right, right_type).plain
        if right_name is None:
            rest.append(term)
            continue
        keys.append((left.column(Expr(found.left, left_type), left_type, numbers), right_name))
        safe.append(found.operator == "is")
    return replace(
        join, input=left.with_hidden(), on=(), keys=tuple(keys), null_safe=tuple(safe), residual=conjunction(rest)
    )
