"""What is true of the rows that leave a node of a plan, told from the nodes below it: whether they can be taken back,
whether they become ever more, their watermark, the engine that makes them, the rules that they follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.engines import Engine
from dovetail.sql.plan.joins.method import JoinInput, JoinInputs
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
    as_join,
)
from dovetail.sql.syntax.rules import Rules


def walk(node: Output | Node) -> Iterator[Output | Node]:
    """The node and all below it, parents first, left before right."""
    yield node
    for below in node.inputs:
        yield from walk(below)


def source_of(node: Node) -> Scan | None:
    """The scan whose rows reach ``node`` without an operator between; None if there is one."""
    match node:
        case Scan():
            return node
        case Map() | Window() | ArrayJoin() | StaticJoin():
            return source_of(node.input)
        case (
            Static()
            | Keyed()
            | Join()
            | MultiwayJoin()
            | DeltaJoin()
            | Aggregate()
            | Sessions()
            | UnionAll()
            | Over()
            | TopN()
        ):
            return None
        case SetOperation() | LookupJoin() | LookupTable():
            return None
        case _:
            assert_never(node)


def changes(node: Node) -> bool:
    """Whether the rows that leave the node are current rows, which others replace: a keyed stream or a changelog, and
    groups. Which join two sides make goes by this; groups can be so though none of them goes: ``retracts``.
    """
    match node:
        case Scan():
            return node.stream.kind != Kind.APPEND
        case Static() | LookupTable():
            return False
        case Keyed():
            return True
        case Map() | Window() | ArrayJoin() | StaticJoin() | LookupJoin():
            return changes(node.input)
        case Join() | MultiwayJoin() | DeltaJoin():
            join = as_join(node)
            return join.how.updates(join.kind, changes(join.left), changes(join.right))
        case Aggregate() | Sessions():
            return not node.closed
        case UnionAll():
            return any(map(changes, node.parts))
        case SetOperation():
            # A row of the right side takes one of the left away.
            return not node.kind.intersects or any(map(changes, node.inputs))
        case Over() | TopN():
            # A row that comes can change the values of others, or take the place of one.
            return True
        case _:
            assert_never(node)


def retracts(node: Node) -> bool:
    """Whether rows that leave the node can be taken back."""
    match node:
        case Aggregate():
            # Of rows that stay, groups that are no more than their keys stay.
            only_keys = bool(node.by) and not node.aggregations and not node.gathered
            return not node.closed and (not only_keys or retracts(node.input))
        case UnionAll():
            return any(map(retracts, node.parts))
        case SetOperation():
            return not node.kind.intersects or any(map(retracts, node.inputs))
        case Over() | TopN():
            return True
        case Join():
            return node.how.updates(node.kind, retracts(node.left), retracts(node.right))
        case MultiwayJoin() | DeltaJoin():
            return retracts(node.chain)
        case Map() | Window() | ArrayJoin() | StaticJoin() | LookupJoin():
            return retracts(node.input)
        case Scan() | Static() | Keyed() | Sessions() | LookupTable():
            return changes(node)
        case _:
            assert_never(node)


def one_row(node: Node) -> bool:
    """Whether no more than one row ever stands: that of an aggregate without groups, or the first of all rows."""
    match node:
        case Aggregate():
            return not node.by
        case Map() | Over():
            return one_row(node.input)
        case TopN():
            return node.single and not node.by
        case Join():
            return one_row(node.left) and (one_row(node.right) or node.kind.asks)
        case MultiwayJoin() | DeltaJoin():
            return one_row(node.chain)
        case Static():
            return node.single
        case Scan() | Keyed() | Window() | ArrayJoin() | StaticJoin() | LookupJoin() | LookupTable():
            return False
        case SetOperation():
            return one_row(node.left) or (node.kind.intersects and one_row(node.right))
        case UnionAll() | Sessions():
            return False
        case _:
            assert_never(node)


def grows(node: Node) -> bool:
    """Whether the rows that stand become ever more, because an append stream is among what they are made of. Of keyed
    streams there are as many as keys; what a changelog takes back is its own affair.
    """
    match node:
        case Scan():
            return node.stream.kind == Kind.APPEND
        case Map() | Window() | Sessions() | ArrayJoin() | StaticJoin() | LookupJoin() | Over():
            return grows(node.input)
        case Join() | MultiwayJoin() | DeltaJoin():
            join = as_join(node)
            return grows(join.left) or (not join.kind.asks and grows(join.right))
        case Aggregate() | TopN():
            return bool(node.by) and grows(node.input)
        case UnionAll():
            return any(map(grows, node.parts))
        case SetOperation():
            return grows(node.left) and (grows(node.right) or not node.kind.intersects)
        case Keyed() | Static() | LookupTable():
            return False
        case _:
            assert_never(node)


def watermark_at(node: Node) -> Watermark | None:
    """The watermark of the scan whose rows reach ``node`` without an operator between, under the name that its column
    has there; None where there is none, or where the column does not travel so far.
    """
    match node:
        case Scan():
            return _declared(node)
        case Map():
            below = watermark_at(node.input)
            named = {expr.plain: name for name, expr in reversed(node.columns) if expr.plain is not None}
            return replace(below, column=named[below.column]) if below is not None and below.column in named else None
        case Keyed() | Window() | StaticJoin():
            return watermark_at(node.input)
        case ArrayJoin():
            below = watermark_at(node.input)
            return None if below is None or below.column in node.dropped else below
        case Aggregate():
            return _of_groups(node)
        case Sessions():
            return _of_sessions(node)
        case Join() | MultiwayJoin() | DeltaJoin():
            join = as_join(node)
            return join.how.watermark(inputs_of(join))
        case UnionAll():
            # Its delays are those of the parts, and are subtracted there.
            return Watermark(node.clock, 0, max_future_ms=None, drops_late=False) if node.clock else None
        case Static() | SetOperation() | Over() | TopN() | LookupJoin() | LookupTable():
            return None
        case _:
            assert_never(node)


def _declared(scan: Scan) -> Watermark | None:
    if scan.watermark is None:
        return None
    internal = next((name for name, declared in scan.columns if declared == scan.watermark.column), None)
    return None if internal is None else replace(scan.watermark, column=internal)


def _of_groups(node: Aggregate) -> Watermark | None:
    below = watermark_at(node.input)
    if not node.closed or node.closing is None or below is None:
        return None
    column, shift = node.closing.column, node.closing.shift
    return replace(below, column=column, delay_ms=below.delay_ms - shift, drops_late=False)


def _of_sessions(node: Sessions) -> Watermark | None:
    """That of their ends: a session that is yet to gain a row ends after the watermark of the rows."""
    below = watermark_at(node.input)
    if node.closing is None or below is None:
        return None
    return replace(below, column=node.end, delay_ms=below.delay_ms - node.closing, drops_late=False)


def inputs_of(join: Join) -> JoinInputs:
    """What the join's method goes by."""
    return JoinInputs(input_of(join.left), input_of(join.right))


def input_of(node: Node) -> JoinInput:
    """What is known of the rows that leave ``node``, as an input of a join."""
    return JoinInput(node.schema, changes(node), watermark_at(node), grows(node))


def runs_on(node: Node) -> Engine | None:
    """The engine of the uppermost operator; None where there is none: either can do it."""
    match node:
        case LookupJoin():
            return Engine.FAUST
        case (
            Keyed()
            | Join()
            | MultiwayJoin()
            | DeltaJoin()
            | Aggregate()
            | Sessions()
            | UnionAll()
            | SetOperation()
            | Over()
            | TopN()
        ):
            return Engine.SPARK
        case Map() | Window() | ArrayJoin() | StaticJoin():
            return runs_on(node.input)
        case Scan() | Static() | LookupTable():
            return None
        case _:
            assert_never(node)


def rules_of(node: Node) -> Rules:
    """Timeplus rules, where every stream below has them."""
    scans = [below for below in walk(node) if isinstance(below, Scan)]
    return Rules.TIMEPLUS if all(scan.rules == Rules.TIMEPLUS for scan in scans) else Rules.RISINGWAVE
