"""EXPLAIN: a plan as a tree of lines, one for each node. The same text for the same query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.sql.plan.nodes import Node, Output, Scan, Shared
from dovetail.sql.plan.state.duplicate_state import duplicate_state


def explain(plan: Output | Node) -> str:
    """The node's line, and below it its inputs, drawn as branches."""
    return "\n".join(_lines(plan, duplicate_state(plan), set()))


def _lines(node: Output | Node, again: Mapping[str, tuple[str, ...]], met: set[str]) -> list[str]:
    """``again``: under which other aliases the rows of a scan are kept; ``met``: the shared operators drawn so far."""
    if isinstance(node, Shared):
        if node.name in met:
            return [line_again(node)]
        met.add(node.name)
        node = node.input
    held = again.get(node.alias, ()) if isinstance(node, Scan) else ()
    text = "  ".join([node.line, *([f"kept twice: also as {', '.join(held)}"] if held else [])])
    return [text, *branches([_lines(below, again, met) for below in node.inputs])]


def branches(inputs: Sequence[list[str]]) -> list[str]:
    """The lines of the inputs of a node, as they are drawn below its own."""
    lines = []
    for position, (head, *rest) in enumerate(inputs, start=1):
        last = position == len(inputs)
        lines.append(("└─ " if last else "├─ ") + head)
        lines += [("   " if last else "│  ") + text for text in rest]
    return lines


def line_again(node: Shared) -> str:
    """Of an operator that stands above already: ``Keyed  key=l.id  read and kept with l``."""
    return "  ".join([*node.line.split("  ")[:2], f"read and kept with {', '.join(node.aliases)}"])
