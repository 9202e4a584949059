"""UNION, INTERSECT and EXCEPT of streams: their columns under the names of the first SELECT, in types that hold all.

SELECT id, name FROM a UNION ALL SELECT k, text FROM b

UnionAll           u.id, u.name
├─ Map             u.id = a.id, u.name = a.name
└─ Map             u.id = b.k, u.name = b.text

A chain of UNION of one kind is one node; UNION is the groups of all columns. INTERSECT binds tighter than the others,
which the parser sees to, and these go from left to right: the tree of a query is that of its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.joins.dataflow.ports import SetKind
from dovetail.sql.bind.aggregates import distinct
from dovetail.sql.bind.bound import Bound
from dovetail.sql.bind.corresponding import corresponding, names_written
from dovetail.sql.bind.scope import place_of
from dovetail.sql.expressions.evaluate import common_type
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.nodes import Map, Node, SetOperation, Static, UnionAll
from dovetail.sql.syntax.rules import Rules


def parts_of(combined: exp.SetOperation) -> list[exp.Query]:
    """Of UNION the SELECTs of a chain of one kind; of INTERSECT and EXCEPT both sides."""
    parts: list[exp.Query] = []
    for side in (combined.this, combined.expression):
        unions = isinstance(combined, exp.Union) and isinstance(side, exp.Union)
        alike = is_distinct(side) == is_distinct(combined) and names_written(side) == names_written(combined)
        chained = unions and alike and not side.ctes
        parts += parts_of(side) if chained else [side]
    return parts


def is_distinct(combined: exp.SetOperation) -> bool:
    return bool(combined.args.get("distinct"))


def combined_rows(
    combined: exp.SetOperation, parts: Sequence[Bound], alias: str, rules: Rules, bounded: bool = False
) -> Bound:
    """The rows of ``parts``, as the set operation has them. Raises SqlError where their columns do not agree."""
    word = name_of(combined)
    place = place_of(combined, word)
    parts = corresponding(combined, parts, word, place)
    names = [name for name, _ in parts[0].columns]
    for number, part in enumerate(parts[1:], start=2):
        if len(part.columns) != len(names):
            raise SqlError(
                f"SELECT {number} of the {word} has {_columns(len(part.columns))}, and the first has {len(names)}",
                where=place,
                fix=f"select as many: {', '.join(names)}",
            )
    types = [_type(parts, at, f"column {at + 1} of the {word}, {name},", place) for at, name in enumerate(names)]
    schema = pa.schema([pa.field(f"{alias}.{name}", kind) for name, kind in zip(names, types, strict=True)])
    inputs = tuple(_part(part, schema, word, place) for part in parts)
    marked = any(part.marked for part in parts)
    if isinstance(combined, exp.Union):
        node: Node = UnionAll(inputs, schema)
        columns = _columns_of(node, names)
        if is_distinct(combined):
            node, columns = distinct(node, columns, place, rules, bounded)
        return Bound(node, columns, marked)
    left, right = inputs
    node = SetOperation(_kind(combined), left, right, schema)
    return Bound(node, _columns_of(node, names), marked)


def name_of(combined: exp.SetOperation) -> str:
    return type(combined).__name__.upper()


def _kind(combined: exp.SetOperation) -> SetKind:
    once = is_distinct(combined)
    if isinstance(combined, exp.Intersect):
        return SetKind.INTERSECT if once else SetKind.INTERSECT_ALL
    return SetKind.EXCEPT if once else SetKind.EXCEPT_ALL


def _columns_of(node: Node, names: Sequence[str]) -> tuple[tuple[str, Expr], ...]:
    return tuple(zip(names, (node.column(internal) for internal in node.schema.names), strict=True))


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"


def _type(parts: Sequence[Bound], at: int, name: str, place: str) -> pa.DataType:
    """One that holds the values of a column of all parts."""
    kind = parts[0].columns[at][1].type
    for part in parts[1:]:
        kind = united(kind, part.columns[at][1].type, name, place)
    return kind


def united(first: pa.DataType, second: pa.DataType, column: str, place: str) -> pa.DataType:
    """The type of a column of rows that have it in both types; NULL is of any. Raises SqlError where there is none."""
    if pa.types.is_null(first) or pa.types.is_null(second):
        return second if pa.types.is_null(first) else first
    return common_type(first, second, column, place)


def _part(part: Bound, schema: pa.Schema, word: str, place: str) -> Map:
    if isinstance(part.node, Static):
        raise Unsupported(
            f"a part of {_article(word)} {word} of streams is read once: table(x) stands still",
            where=place,
            fix="leave table() out, with SETTINGS seek_to = 'earliest' for the rows that are there already",
        )
    held = [Expr(expr.tree, field.type) for (_, expr), field in zip(part.columns, schema, strict=True)]
    return Map(part.node, tuple(zip(schema.names, held, strict=True)))


def _article(word: str) -> str:
    return "a" if word == "UNION" else "an"
