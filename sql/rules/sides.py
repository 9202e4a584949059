"""The sides of a join, and the comparisons between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from sql.expressions.predicates import parsed, text
from sql.plan.nodes import HIDDEN, Expr, Map, Node
from sql.rules.push_down import identity

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "is",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


@dataclass
class JoinSide:
    """One side of a join, with the hidden columns that its keys need."""

    node: Node
    hidden: list[tuple[str, Expr]]

    @staticmethod
    def of(node: Node) -> JoinSide:
        return JoinSide(node, [])

    @property
    def names(self) -> set[str]:
        return set(self.node.schema.names)

    def column(self, expr: Expr, wanted: pa.DataType, numbers: Iterator[int]) -> str:
        """The column that holds ``expr`` as ``wanted``: itself, if it is one."""
        plain = expr.plain
        if plain is not None and expr.type == wanted:
            return plain
        name = f"{HIDDEN}{next(numbers)}"
        self.hidden.append((name, Expr(expr.sql, wanted)))
        return name

    def with_hidden(self) -> Node:
        return Map(self.node, (*identity(self.node), *self.hidden)) if self.hidden else self.node


@dataclass(frozen=True)
class Comparison:
    left: str
    right: str
    operator: str


def comparison(term: str, left: set[str], right: set[str]) -> Comparison | None:
    """``term`` as an expression of the left compared with one of the right, turned round if written so."""
    tree = parsed(term).unnest()
    operator = _OPERATORS.get(type(tree))
    if operator is None or not isinstance(tree, exp.Binary):
        return None
    first, second = tree.left.unnest(), tree.right.unnest()
    reads = [{column.name for column in side.find_all(exp.Column)} for side in (first, second)]
    if not all(reads):
        return None
    if reads[0] <= left and reads[1] <= right:
        return Comparison(text(first), text(second), operator)
    if reads[0] <= right and reads[1] <= left:
        return Comparison(text(second), text(first), _MIRRORED.get(operator, operator))
    return None
