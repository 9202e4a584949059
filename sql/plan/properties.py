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


def source_of(node: Node) -> Scan | None:
    """The scan whose rows reach ``node`` without an operator between; None if there is one."""
    while isinstance(node, Chained):
        node = node.input
    return node if isinstance(node, Scan) else None


def rules_of(node: Node) -> Rules:
    """Timeplus rules, where every stream below has them."""
    scans = [below for below in walk(node) if isinstance(below, Scan)]
    return Rules.TIMEPLUS if all(scan.rules == Rules.TIMEPLUS for scan in scans) else Rules.RISINGWAVE
