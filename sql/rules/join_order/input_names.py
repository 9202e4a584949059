"""What an input of a chain of joins is called."""

from __future__ import annotations

from dovetail.sql.plan.nodes import HIDDEN, Node


def input_name(node: Node) -> str:
    """The alias that stands before its columns."""
    return next((name.partition(".")[0] for name in node.schema.names if not name.startswith(HIDDEN)), "")
