"""Streams of which several operators, or both sides of one, keep the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.joins import Latest
from dovetail.sql.plan.nodes import (
    Aggregate,
    ArrayJoin,
    DeltaJoin,
    Join,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    MultiwayJoin,
    Node,
    Output,
    Over,
    Scan,
    Sessions,
    SetOperation,
    Static,
    StaticJoin,
    TopN,
    UnionAll,
    Window,
)
from dovetail.sql.plan.properties import retracts, source_of


def held_again(plan: Output | Node) -> Mapping[str, tuple[str, ...]]:
    """Alias of a scan whose rows are kept -> the other aliases under which the same rows are."""
    kept = list(_kept(plan, held=False))
    by_topic = {scan.topic: tuple(other.alias for other in kept if other.topic == scan.topic) for scan in kept}
    # What several read is there for each of them, and kept once.
    others = {
        scan.alias: tuple(dict.fromkeys(name for name in by_topic[scan.topic] if name != scan.alias)) for scan in kept
    }
    return {alias: found for alias, found in others.items() if found}


def _kept(node: Output | Node, held: bool) -> Iterator[Scan]:
    """The scans whose rows an operator keeps; ``held``: that above ``node`` keeps its rows."""
    match node:
        case Scan():
            yield from [node] if held and not node.kept_with else []
        case Output():
            yield from _kept(node.input, held=False)
        case Keyed() | Sessions() | Over():
            yield from _kept(node.input, held=True)
        case Map() | Window() | ArrayJoin() | StaticJoin() | LookupJoin():
            yield from _kept(node.input, held)
        case Join():
            both = not node.how.answers_once or (isinstance(node.how, Latest) and node.kind == JoinKind.FULL)
            yield from _kept(node.left, held=both)
            yield from _kept(node.right, held=True)
        case Aggregate() | TopN():
            all_rows = isinstance(node, TopN) and retracts(node.input)
            yield from _kept(node.input, held=all_rows or compared(node.input))
        case MultiwayJoin() | DeltaJoin() | UnionAll() | SetOperation():
            for part in node.inputs:
                yield from _kept(part, held=not isinstance(node, UnionAll) or compared(part))
        case Static() | LookupTable():
            pass
        case _:
            assert_never(node)


def compared(node: Node) -> bool:
    """Whether groups keep the rows of ``node``: retractions are compared with the rows that they take away, save those
    that are the output of an operator.
    """
    scan = source_of(node)
    return scan is not None and scan.stream.kind != Kind.APPEND and not scan.trusted
