"""A condition that compares an expression over the left of a join with one over its right."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sql.expressions.predicates import parsed, text

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
