"""A condition that compares an expression over the left of a join with one over its right."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.expression import Expr, columns_read

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "is",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


@dataclass(frozen=True)
class Comparison:
    left: Expr
    right: Expr
    operator: str

    @property
    def readable(self) -> str:
        return f"{self.left.readable} {self.operator} {self.right.readable}"


def comparison(term: Expr, left: pa.Schema, right: pa.Schema) -> Comparison | None:
    """``term`` as an expression of the left compared with one of the right, turned round if written so."""
    tree = term.tree.unnest()
    operator = _OPERATORS.get(type(tree))
    if operator is None or not isinstance(tree, exp.Binary):
        return None
    first, second = tree.left.unnest(), tree.right.unnest()
    if _reads(first, left) and _reads(second, right):
        return Comparison(Expr.over(first, left), Expr.over(second, right), operator)
    if _reads(first, right) and _reads(second, left):
        return Comparison(Expr.over(second, left), Expr.over(first, right), _MIRRORED.get(operator, operator))
    return None


def _reads(tree: exp.Expr, side: pa.Schema) -> bool:
    """Whether a tree reads columns of ``side``, and no others."""
    read = columns_read(tree)
    return bool(read) and set(read) <= set(side.names)
