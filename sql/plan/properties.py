"""What is true of a tree of nodes as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.sql.plan.nodes import Chained, Node, Output, Scan
from dovetail.sql.syntax.rules import Rules


def walk(node: Output | Node) -> Iterator[Output | Node]:
    """The node and all below it, parents first, left before right."""
    yield node
    for below in node.inputs:
        yield from walk(below)


def origin_node(node: Node) -> Node:
    """The operator, or the leaf, whose rows reach ``node`` by steps alone."""
    while isinstance(node, Chained):
        node = node.input
    return node


def source_of(node: Node) -> Scan | None:
    """The scan whose rows reach ``node`` without an operator between; None if there is one."""
    found = origin_node(node)
    return found if isinstance(found, Scan) else None


def rules_of(node: Node) -> Rules:
    """Timeplus rules, where every stream below has them."""
    scans = [below for below in walk(node) if isinstance(below, Scan)]
    return Rules.TIMEPLUS if all(scan.rules == Rules.TIMEPLUS for scan in scans) else Rules.RISINGWAVE
