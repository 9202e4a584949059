"""Whether two inputs of a join have the same rows: those of one reading of one topic, by the same steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.sql.plan.nodes import Node, Scan, rebuilt
from dovetail.sql.plan.state.common_rows import both
from dovetail.sql.plan.state.shared_with import scan_of


@dataclass(frozen=True)
class SameRows:
    """node      the first of two inputs, with the columns that the second one has besides
    names     of each column of the second the one of ``node`` that it is
    repeated  the second one, its scan marked: it is kept with the first
    """

    node: Node
    names: Mapping[str, str]
    repeated: Node


def same_rows(first: Node, second: Node) -> SameRows | None:
    """None where they differ, or are made of several streams."""
    scan = scan_of(first)
    found = None if scan is None else both(first, second)
    if scan is None or found is None:
        return None
    node, names = found
    return SameRows(node, names, _marked(second, scan))


def _marked(node: Node, scan: Scan) -> Node:
    if isinstance(node, Scan):
        return replace(node, shared_with=scan.alias)
    return rebuilt(node, lambda below: _marked(below, scan))
