"""Streams of which several operators, or both sides of one, keep the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dovetail.sql.plan.nodes import Node, Output, RowByRow, Scan


def duplicate_state(plan: Output | Node) -> Mapping[str, tuple[str, ...]]:
    """Alias of a scan whose rows are kept -> the other aliases under which the same rows are."""
    kept = list(_kept(plan.input if isinstance(plan, Output) else plan, held=False))
    by_topic = {scan.topic: tuple(other.alias for other in kept if other.topic == scan.topic) for scan in kept}
    # What several read is there for each of them, and kept once.
    others = {
        scan.alias: tuple(dict.fromkeys(name for name in by_topic[scan.topic] if name != scan.alias)) for scan in kept
    }
    return {alias: found for alias, found in others.items() if found}


def _kept(node: Node, held: bool) -> Iterator[Scan]:
    """The scans whose rows an operator keeps; ``held``: that above ``node`` keeps its rows."""
    if isinstance(node, Scan) and held and not node.shared_with:
        yield node
    for below in node.inputs:
        yield from _kept(below, held if isinstance(node, RowByRow) else node.keeps(below))
