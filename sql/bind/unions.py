"""UNION ALL and UNION of streams: the parts, their columns under the names of the first, in types that hold all.

SELECT id, name FROM a UNION ALL SELECT k, text FROM b

UnionAll           u.id, u.name
├─ Map             u.id = a.id, u.name = a.name
└─ Map             u.id = b.k, u.name = b.text

UNION is the groups of all columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from changelog.errors import SqlError, Unsupported
from sql.bind.aggregates import distinct
from sql.bind.scope import place_of
from sql.bind.select_clauses import Bound
from sql.expressions.evaluate import common_type
from sql.expressions.expression import Expr
from sql.plan.nodes import Map, Node, Static, UnionAll, column_of
from sql.syntax.rules import Rules

_IN_THEIR_PLACE = {
    exp.Intersect: "EXISTS: SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    exp.Except: "NOT EXISTS: SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
}


def parts_of(union: exp.SetOperation) -> list[exp.Query]:
    """The SELECTs of a chain of unions of one kind. Raises Unsupported for INTERSECT and EXCEPT."""
    if not isinstance(union, exp.Union):
        name = type(union).__name__.upper()
        fix = next(fix for kind, fix in _IN_THEIR_PLACE.items() if isinstance(union, kind))
        raise Unsupported(f"{name} of streams is not supported", where=place_of(union, name), fix=fix)
    parts: list[exp.Query] = []
    for side in (union.this, union.expression):
        same = isinstance(side, exp.Union) and is_distinct(side) == is_distinct(union) and not side.ctes
        parts += parts_of(side) if same else [side]
    return parts


def is_distinct(union: exp.SetOperation) -> bool:
    return bool(union.args.get("distinct"))


def united(union: exp.SetOperation, parts: Sequence[Bound], alias: str, rules: Rules) -> Bound:
    """The rows of all ``parts``. Raises SqlError where their columns do not agree."""
    place = place_of(union, "UNION")
    names = [name for name, _ in parts[0].columns]
    for number, part in enumerate(parts[1:], start=2):
        if len(part.columns) != len(names):
            raise SqlError(
                f"SELECT {number} of the UNION has {_columns(len(part.columns))}, and the first has {len(names)}",
                where=place,
                fix=f"select as many: {', '.join(names)}",
            )
    schema = pa.schema([pa.field(f"{alias}.{name}", _type(parts, at, name, place)) for at, name in enumerate(names)])
    node: Node = UnionAll(tuple(_part(part, schema, place) for part in parts), schema)
    columns = tuple(zip(names, (column_of(node, internal) for internal in schema.names), strict=True))
    marked = any(part.marked for part in parts)
    if is_distinct(union):
        node, columns = distinct(node, columns, place, rules)
    return Bound(node, columns, marked)


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"


def _type(parts: Sequence[Bound], at: int, name: str, place: str) -> pa.DataType:
    """One that holds the values of a column of all parts."""
    kind = parts[0].columns[at][1].type
    for part in parts[1:]:
        kind = common_type(kind, part.columns[at][1].type, f"column {at + 1} of the UNION, {name},", place)
    return kind


def _part(part: Bound, schema: pa.Schema, place: str) -> Map:
    if isinstance(part.node, Static):
        raise Unsupported(
            "a part of a UNION of streams is read once: table(x) stands still",
            where=place,
            fix="leave table() out, with SETTINGS seek_to = 'earliest' for the rows that are there already",
        )
    held = [Expr(expr.tree, field.type) for (_, expr), field in zip(part.columns, schema, strict=True)]
    return Map(part.node, tuple(zip(schema.names, held, strict=True)))
