"""Inputs that are kept with another one of the same join."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.sql.plan.nodes import Aggregate, Keyed, Map, Node, Scan


def first_of(inputs: Iterable[Node], repeated: Node) -> int:
    """The place of the one among ``inputs`` with which ``repeated`` is kept."""
    return next(place for place, node in enumerate(inputs) if _alias(node) == repeated.shared_with)


def _alias(node: Node) -> str:
    scan = scan_of(node)
    return "" if scan is None else scan.alias


def scan_of(node: Node) -> Scan | None:
    """The one scan below, where all that lies between are steps, a key and groups that stay: those that go with a
    watermark leave as windows close, and are joined by time.
    """
    while isinstance(node, Map | Keyed) or (isinstance(node, Aggregate) and node.closing is None):
        node = node.input
    return node if isinstance(node, Scan) else None
