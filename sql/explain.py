"""EXPLAIN: a plan as a tree of lines, the same text for the same query."""

from __future__ import annotations

from sql.plan import Node, Output


def explain(plan: Output | Node) -> str:
    """The node's line, and below it its inputs, drawn as branches."""
    return "\n".join(_lines(plan))


def _lines(node: Output | Node) -> list[str]:
    lines = [node.line()]
    for position, below in enumerate(node.inputs, start=1):
        last = position == len(node.inputs)
        head, *rest = _lines(below)
        lines.append(("└─ " if last else "├─ ") + head)
        lines += [("   " if last else "│  ") + line for line in rest]
    return lines
