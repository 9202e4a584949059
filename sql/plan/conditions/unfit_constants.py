"""Conditions that compare with a text that is none of the other side's values: ``n = 'abc'`` of a number.

The engine works such a comparison out as it reads it, and fails: it is refused. In a list, or where the dialect casts
the text, it is NULL, which is said when a query is made, for nobody means it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from sqlglot import exp

from changelog.errors import SqlError
from sql.expressions.engine import type_name
from sql.expressions.evaluate import run
from sql.plan.nodes import Map, Node, Output, Scan
from sql.plan.properties import rules_of, walk
from sql.syntax.types import display

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
PairsOf = Callable[[exp.Expr], list[tuple[exp.Expr, exp.Expr]]]
"""What stands beside each other in a node."""
_KINDS = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean),
    *(pa.types.is_timestamp, pa.types.is_date),
)


def refuse_unfit_constants(plan: Output | Node) -> None:
    """Raises SqlError for ``n = 'abc'``: the engine does not take it, and the query would end with its first row."""
    for name, kind, literal in _unfit(plan, _compared):
        raise SqlError(
            f"{name} is {kind}, and {literal} is none",
            where="WHERE or HAVING",
            fix=f"compare {name} with a value of its type; or its text: CAST({name} AS string) = {literal}",
        )


def unfit_constants(plan: Output | Node) -> Iterator[str]:
    """A line for each text in ``n IN (1, 'abc')``, or in a comparison with one that is cast, that is no value."""
    for name, kind, literal in _unfit(plan, _listed):
        yield f"{name} is {kind}, and {literal} is none: it is in no row"


def _unfit(plan: Output | Node, pairs_of: PairsOf) -> Iterator[tuple[str, str, str]]:
    """The columns that stand beside texts which are none of their values; their types, and the texts."""
    for node in walk(plan):
        if not isinstance(node, Scan | Map) or node.where is None:
            continue
        below = node.schema if isinstance(node, Scan) else node.input.schema
        for left, right in (pair for one in node.where.tree.walk() for pair in pairs_of(one)):
            column, literal = left.unnest(), _literal(right)
            position = below.get_field_index(column.name) if isinstance(column, exp.Column) else -1
            if literal is not None and position >= 0 and not _is_value(literal, below.field(position).type):
                kind = display(below.field(position).type, rules_of(node))
                yield column.name.rpartition(".")[2], kind, literal.sql()


def _compared(node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    return [(left, right) for left, right in _beside(node) if isinstance(right.unnest(), exp.Literal)]


def _beside(node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    if isinstance(node, exp.Between):
        return [(node.this, node.args["low"]), (node.this, node.args["high"])]
    return [(node.left, node.right), (node.right, node.left)] if isinstance(node, _COMPARISONS) else []


def _listed(node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    if isinstance(node, exp.In):
        return [(node.this, one) for one in node.expressions]
    return [(left, right) for left, right in _beside(node) if isinstance(right.unnest(), exp.Cast | exp.TryCast)]


def _literal(tree: exp.Expr) -> exp.Literal | None:
    """A text that is written out, whatever it is read as."""
    tree = tree.unnest()
    while isinstance(tree, exp.Cast | exp.TryCast):
        tree = tree.this.unnest()
    return tree if isinstance(tree, exp.Literal) and tree.is_string else None


def _is_value(literal: exp.Literal, kind: pa.DataType) -> bool:
    """Whether a text stands for a value of a type; so it does of all but numbers, truth values, times and dates."""
    if not any(is_kind(kind) for is_kind in _KINDS):
        return True
    written = pa.table({"written": [literal.this]})
    found = run(f"SELECT TRY_CAST(written AS {type_name(kind)}) IS NOT NULL AS fits FROM texts", {"texts": written})
    return bool(found.column("fits")[0].as_py())
