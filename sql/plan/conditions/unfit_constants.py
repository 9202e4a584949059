"""Conditions that compare with a text that is none of the other side's values: ``n = 'abc'`` of a number.

The engine works such a comparison out as it reads it, and fails: it is refused. In a list, or where the dialect casts
the text, it is NULL, which is said when a query is made, for nobody means it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.misfits import column_name
from dovetail.sql.expressions.written_values import is_value
from dovetail.sql.plan.nodes import Map, Node, Output, Scan
from dovetail.sql.plan.properties import rules_of, walk
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import display

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
TypeOf = Callable[[exp.Expr], pa.DataType | None]
"""None where it does not matter."""
PairsOf = Callable[[exp.Expr], list[tuple[exp.Expr, exp.Expr]]]
"""What stands beside each other in a node."""


def refuse_unfit_constants(plan: Output | Node) -> None:
    """Raises SqlError for ``n = 'abc'``: the engine does not take it, and the query would end with its first row."""
    for unfit in _unfit(plan, _compared):
        raise unfit.refusal("the query")


def refuse_unfit_condition(tree: exp.Expr, type_of: TypeOf, rules: Rules, place: str) -> None:
    """As ``refuse_unfit_constants``, of one condition; ``type_of`` knows the types of what stands in it."""
    for unfit in _unfit_in(tree, _compared, type_of, rules):
        raise unfit.refusal(place)


def unfit_constants(plan: Output | Node) -> Iterator[str]:
    """A line for each text in ``n IN (1, 'abc')``, or in a comparison with one that is cast, that is no value."""
    for unfit in _unfit(plan, _listed):
        yield f"{unfit.what}: it is in no row"


@dataclass(frozen=True)
class UnfitConstant:
    """``literal``, a text that is no value of ``kind``, beside the column ``name`` of this type; '': an expression."""

    name: str
    kind: str
    literal: str

    @property
    def what(self) -> str:
        return f"{self.literal} is not a valid {self.kind}, the type of {self.name or 'what it is compared with'}"

    def refusal(self, place: str) -> SqlError:
        texts = f"CAST({self.name or '..'} AS string) = {self.literal}"
        return SqlError(self.what, where=place, fix=f"compare with a value of that type; or compare texts: {texts}")


def _unfit(plan: Output | Node, pairs_of: PairsOf) -> Iterator[UnfitConstant]:
    for node in walk(plan):
        if isinstance(node, Scan | Map | Output):
            below = node.schema if isinstance(node, Scan) else node.input.schema
            rules = rules_of(node.input if isinstance(node, Output) else node)
            for computed in _computed(node):
                yield from _unfit_in(computed.tree, pairs_of, _of_columns(below), rules)


def _computed(node: Scan | Map | Output) -> Iterator[Expr]:
    if not isinstance(node, Output) and node.where is not None:
        yield node.where
    if not isinstance(node, Scan):
        yield from (expr for _, expr in node.columns)


def _of_columns(schema: pa.Schema) -> TypeOf:
    """The types of columns alone."""

    def type_of(tree: exp.Expr) -> pa.DataType | None:
        position = schema.get_field_index(tree.name) if isinstance(tree, exp.Column) else -1
        return schema.field(position).type if position >= 0 else None

    return type_of


def _unfit_in(condition: exp.Expr, pairs_of: PairsOf, type_of: TypeOf, rules: Rules) -> Iterator[UnfitConstant]:
    for left, right in (pair for one in condition.walk() for pair in pairs_of(one)):
        literal = _literal(right)
        kind = None if literal is None or _reads_argument(left) else type_of(left.unnest())
        if literal is not None and kind is not None and not is_value(literal.this, kind):
            yield UnfitConstant(column_name(left.unnest()), display(kind, rules), literal.sql())


def _reads_argument(tree: exp.Expr) -> bool:
    """Whether it reads the argument of a lambda around it, whose type is not known here."""
    around, arguments = tree.find_ancestor(exp.Lambda), set[str]()
    while around is not None:
        arguments |= {argument.name for argument in around.expressions}
        around = around.find_ancestor(exp.Lambda)
    return any(node.name in arguments for node in tree.find_all(exp.Identifier))


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
