"""One side of a join, with the columns that it computes for the join."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import HIDDEN, Map, Node


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
        self.hidden.append((name, expr.held_as(wanted)))
        return name

    def with_hidden(self) -> Node:
        return Map(self.node, (*identity(self.node), *self.hidden)) if self.hidden else self.node
