"""Conditions that compare with a text that is none of the other side's values: ``n = 'abc'`` of a number.

Such a comparison is NULL for every row. It is no error: a query that runs goes on as it is. But it is said when one is
made, for nobody means it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from sqlglot import exp

from sql.expressions.engine import text, type_name
from sql.expressions.evaluate import run
from sql.expressions.expression import Expr
from sql.plan.nodes import Map, Node, Output, Scan
from sql.plan.properties import rules_of, walk
from sql.syntax.types import display

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_KINDS = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean),
    *(pa.types.is_timestamp, pa.types.is_date),
)


def unfit_constants(plan: Output | Node) -> Iterator[str]:
    """A line for each text in a WHERE that its column never equals."""
    for node in walk(plan):
        if isinstance(node, Scan | Map) and node.where is not None:
            below = node.schema if isinstance(node, Scan) else node.input.schema
            for column, literal in _compared(node.where):
                position = below.get_field_index(column)
                kind = below.field(position).type if position >= 0 else pa.null()
                if not _is_value(literal, kind):
                    name, shown = column.rpartition(".")[2], display(kind, rules_of(node))
                    yield f"{name} is {shown}, and {literal.sql()} is none: comparing them is true for no row"


def _compared(condition: Expr) -> Iterator[tuple[str, exp.Literal]]:
    """The columns and the texts that stand beside each other in its comparisons."""
    for node in condition.tree.walk():
        match node:
            case exp.In():
                pairs = [(node.this, one) for one in node.expressions]
            case exp.Between():
                pairs = [(node.this, node.args["low"]), (node.this, node.args["high"])]
            case _ if isinstance(node, _COMPARISONS):
                pairs = [(node.left, node.right), (node.right, node.left)]
            case _:
                pairs = []
        for left, right in pairs:
            column, literal = left.unnest(), _literal(right)
            if isinstance(column, exp.Column) and literal is not None:
                yield column.name, literal


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
    found = run(f"SELECT TRY_CAST({text(literal)} AS {type_name(kind)}) IS NOT NULL AS fits", {})
    return bool(found.column("fits")[0].as_py())
