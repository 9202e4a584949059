"""Maps that keep all columns: a filter, and the columns that it passes on."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import conjunction
from dovetail.sql.plan.nodes import Map, Node


def filtered(node: Node, terms: Sequence[Expr]) -> Node:
    """A Map above ``node`` that keeps the rows for which all ``terms`` hold."""
    if not terms:
        return node
    return Map(node, identity(node), conjunction(terms))


def identity(node: Node) -> tuple[tuple[str, Expr], ...]:
    return tuple((field.name, Expr.column(field.name, field.type)) for field in node.schema)
