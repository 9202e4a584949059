"""Operators whose rows several others can read: the rule ``subplans`` makes equal ones of a query ``Shared``."""

from __future__ import annotations

from dovetail.sql.plan.joins import Bidirectional
from dovetail.sql.plan.nodes import Aggregate, Join, Keyed, MultiwayJoin, Node

Subplan = Keyed | Join | MultiwayJoin | Aggregate


def as_subplan(node: Node) -> Subplan | None:
    """``node``, if several can read it; None if each reader needs one of its own."""
    if isinstance(node, Join):
        return node if isinstance(node.how, Bidirectional) else None
    return node if isinstance(node, Keyed | MultiwayJoin | Aggregate) else None
