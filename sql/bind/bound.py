"""What the binder makes of a query."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.nodes import Node


@dataclass(frozen=True)
class Bound:
    """A bound query: its rows, its output columns over them, and whether it asks for ``_tp_delta``."""

    node: Node
    columns: tuple[tuple[str, Expr], ...]
    marked: bool
