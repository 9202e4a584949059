"""About how many rows a node of a plan has, told from the records of the topics below it and from its conditions.

Guesses, as databases without statistics make them: what equals a constant is a tenth of the rows, or one row of a
unique key; any other condition leaves a third. Under a value of a column that is no unique key there are ten rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.expression import Expr, columns_read
from dovetail.sql.expressions.predicates import split
from dovetail.sql.plan.nodes import (
    Aggregate,
    Join,
    JoinChain,
    Map,
    Node,
    OneInput,
    Scan,
    SetOperation,
    TopN,
    UnionAll,
    Window,
)
from dovetail.sql.relations import Sizes

EQUAL_TO_CONSTANT = 0.1
ANY_CONDITION = 1 / 3
ROWS_OF_A_VALUE = 10


@dataclass(frozen=True)
class Estimate:
    """rows  that pass the conditions of a node
    all   without them: by so many its unique keys differ
    """

    rows: float
    all: float

    @property
    def values(self) -> float:
        """Different values of a column that is no unique key."""
        return max(1.0, self.all / ROWS_OF_A_VALUE)

    def times(self, factor: float) -> Estimate:
        return Estimate(self.rows * factor, self.all * factor)


def estimate(node: Node, sizes: Sizes) -> Estimate | None:
    """None where nothing is known: of a topic without records, or of one that cannot be asked."""
    if isinstance(node, Scan):
        records = sizes(node.topic)
        return _filtered(node, node.where, Estimate(records, records)) if records else None
    if isinstance(node, UnionAll | SetOperation | Join | JoinChain):
        return _of_several(node, sizes)
    below = estimate(node.input, sizes) if isinstance(node, OneInput) else None
    if below is None:
        return None
    if isinstance(node, Map):
        return _filtered(node.input, node.where, below)
    if isinstance(node, Window):
        return below.times(node.windows.size_ms / node.windows.slide_ms)
    return _of_groups(node, below) if isinstance(node, Aggregate | TopN) else below


def _of_several(node: UnionAll | SetOperation | Join | JoinChain, sizes: Sizes) -> Estimate | None:
    """Of a union all rows; of an outer join those of the side that is kept; of an inner one those of the larger side,
    as far as they are found on the other.
    """
    parts = [estimate(part, sizes) for part in node.inputs]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if isinstance(node, UnionAll):
        return Estimate(sum(part.rows for part in known), sum(part.all for part in known))
    kind = node.kind if isinstance(node, Join) else None
    if isinstance(node, SetOperation) or kind is JoinKind.LEFT or (kind is not None and kind.is_existence):
        return known[0]
    if kind is JoinKind.RIGHT:
        return known[1]
    *_, other, larger = sorted(known, key=lambda part: part.rows)
    return Estimate(larger.rows * other.rows / other.all, larger.all) if kind is JoinKind.INNER else larger


def _of_groups(node: Aggregate | TopN, below: Estimate) -> Estimate:
    groups = 1.0
    if node.by:
        unique_groups = any(set(key) <= set(node.by) for key in node.input.unique_keys)
        groups = below.rows if unique_groups else max(1.0, below.rows / ROWS_OF_A_VALUE)
    if isinstance(node, TopN):
        groups = min(below.rows, groups * (node.last - node.first + 1))
    return Estimate(groups, groups)


def _filtered(node: Node, where: Expr | None, below: Estimate) -> Estimate:
    """The rows of ``node`` that pass ``where``."""
    rows = below.rows
    if where is not None:
        alone = {key[0] for key in node.unique_keys if len(key) == 1}
        for term in split(where):
            rows *= _part(term, alone, below.all)
    return Estimate(rows, below.all)


def _part(term: Expr, alone: set[str], rows: float) -> float:
    tree = term.tree.unnest()
    if isinstance(tree, exp.EQ) and not (columns_read(tree.left) and columns_read(tree.right)):
        return 1 / rows if set(term.columns) & alone else EQUAL_TO_CONSTANT
    return ANY_CONDITION
