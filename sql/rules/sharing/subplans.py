"""Operators that would keep the same rows are one, which all of its readers share.

    lineitem AS l1 JOIN ..             Keyed  columns of l1, l2 and l3
      WHERE EXISTS (.. lineitem l2)      ├─▶ l1  where l1.late
      AND NOT EXISTS (.. lineitem l3)    ├─▶ l2
                                         └─▶ l3  where l3.late

They have the same rows but for the names and the choice of their columns (``sql.plan.state.common_rows``): streams by
their primary key, bidirectional joins, groups. The one has the columns of all, and each reader takes its own of them.
A stream by its primary key of which one reader wants some rows and another one all is kept with all of them; where none
wants all each has its own, since one for both would hold what nobody looks at.

Larger ones go first: what is below them is shared with them. It is the last of the rules: which columns travel is
known. What one join keeps once for several of its sides is its own.

``SETTINGS share_state = 0`` leaves them as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.changelog.schema import Kind
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.joins import Bidirectional
from dovetail.sql.plan.nodes import Aggregate, Join, Keyed, Map, MultiwayJoin, Node, Output, Scan, Shared
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.plan.state.common_rows import both, in_shared_columns
from dovetail.sql.plan.state.shared_with import first_of

Subplan = Keyed | Join | MultiwayJoin | Aggregate
"""An operator whose rows several others can read."""


def subplans(plan: QueryPlan) -> QueryPlan:
    return plan.with_fragments(_of_fragment) if plan.settings["share_state"] else plan


def _of_fragment(fragment: Output) -> Output:
    rows = fragment.input
    while (readings := _next(rows)) is not None:
        rows = _replaced(rows, readings)
    return replace(fragment, input=_named(rows, _repeated(rows)))


def _as_subplan(node: Node) -> Subplan | None:
    """``node``, if several can read it; None if each reader needs one of its own."""
    if isinstance(node, Join):
        return node if isinstance(node.method, Bidirectional) else None
    return node if isinstance(node, Keyed | MultiwayJoin | Aggregate) else None


def _repeated(rows: Node) -> list[Subplan]:
    """The operators that are met again, in the order in which they are; below such a one nothing is."""
    met: list[Subplan] = []
    again: list[Subplan] = []

    def visit(node: Node) -> None:
        subplan = _as_subplan(node)
        if subplan is not None and subplan in met:
            again.extend([] if subplan in again else [subplan])
            return
        met.extend([] if subplan is None else [subplan])
        for below in _own_inputs(node):
            visit(below)

    visit(rows)
    return again


def _own_inputs(node: Node) -> list[Node]:
    """The inputs, but for those that a join keeps once for several of its sides."""
    own = _kept_for_sides(node)
    return [below for place, below in enumerate(node.inputs) if place not in own]


def _named(node: Node, repeated: Sequence[Subplan]) -> Node:
    """``node`` with each of ``repeated`` as references to one definition."""
    definitions: dict[str, Shared] = {}

    def named(node: Node) -> Node:
        name = f"s{repeated.index(node) + 1}" if node in repeated else ""
        if name in definitions:
            return definitions[name]
        own = _kept_for_sides(node)
        made = node.with_inputs(*(one if place in own else named(one) for place, one in enumerate(node.inputs)))
        return definitions.setdefault(name, Shared(made, name)) if name else made

    return named(node)


@dataclass(frozen=True)
class SharedScan:
    """What ``former`` is, read of ``node``, which others read too.

    names   its columns, and which of ``node`` they are
    where   over the columns of ``node``
    """

    former: Subplan
    node: Node
    names: Mapping[str, str]
    where: Expr | None = None

    @property
    def rows(self) -> Node:
        if self.where is None and list(self.names.items()) == [(name, name) for name in self.node.schema.names]:
            return self.node
        return Map(self.node, tuple((name, self.node.column(one)) for name, one in self.names.items()), self.where)


def _next(rows: Node) -> tuple[SharedScan, SharedScan] | None:
    """Two that differ, and can be one."""
    different: list[Subplan] = []
    for one in _subplans(rows):
        if one not in different:
            different.append(one)
    pairs = itertools.combinations(different, 2)
    return next((found for one, other in pairs if (found := together(one, other)) is not None), None)


def _subplans(node: Node) -> Iterator[Subplan]:
    """Parents first."""
    subplan = _as_subplan(node)
    if subplan is not None:
        yield subplan
    for below in _own_inputs(node):
        yield from _subplans(below)


def _kept_for_sides(node: Node) -> set[int]:
    """The places of the inputs that a join keeps once for several of its sides."""
    repeated = [place for place, one in enumerate(node.inputs) if one.shared_with]
    return {*repeated, *(first_of(node.inputs, node.inputs[place]) for place in repeated)}


def _replaced(node: Node, readings: tuple[SharedScan, SharedScan]) -> Node:
    for reading in readings:
        if node == reading.former:
            return reading.rows
    own = _kept_for_sides(node)
    below = (one if place in own else _replaced(one, readings) for place, one in enumerate(node.inputs))
    made = node.with_inputs(*below)
    return _at_once(made) if isinstance(made, Map) else made


def _at_once(step: Map) -> Map:
    """``step``, with the one below it in itself, where that computes nothing and only one has a condition."""
    below = step.input
    if not isinstance(below, Map) or any(expr.plain is None for _, expr in below.columns):
        return step
    if step.where is not None and below.where is not None:
        return step
    chosen = dict(below.columns)
    columns = tuple((name, expr.substituted(chosen)) for name, expr in step.columns)
    return Map(below.input, columns, below.where if step.where is None else step.where.substituted(chosen))


def together(first: Subplan, second: Subplan) -> tuple[SharedScan, SharedScan] | None:
    """Both as readings of one operator; None where none would keep the rows of both."""
    found = both(first, second)
    if found is not None:
        return _readings(first, second, found[0], found[1])
    all_of_first, all_of_second = _all_rows(first), _all_rows(second)
    if all_of_first is not None and (found := both(all_of_first.node, second)) is not None:
        return _readings(first, second, *found, of_first=all_of_first.where)
    if all_of_second is not None and (found := both(first, all_of_second.node)) is not None:
        return _readings(first, second, *found, of_second=in_shared_columns(all_of_second.where, found))
    return None


def _readings(
    first: Subplan,
    second: Subplan,
    node: Node,
    names: Mapping[str, str],
    of_first: Expr | None = None,
    of_second: Expr | None = None,
) -> tuple[SharedScan, SharedScan]:
    own = {name: name for name in first.schema.names}
    chosen = {name: names[name] for name in second.schema.names}
    return SharedScan(first, node, own, of_first), SharedScan(second, node, chosen, of_second)


@dataclass(frozen=True)
class _AllRows:
    node: Keyed
    where: Expr


def _all_rows(node: Subplan) -> _AllRows | None:
    """A stream by its primary key without the condition on its rows: rows that fail it are taken for deletes, so to
    keep them and to leave them out above is the same. Of versions a deleted one lets an older one stand; and a delete
    is never late, as the row would be.
    """
    scan = node.input if isinstance(node, Keyed) else None
    if not isinstance(node, Keyed) or not isinstance(scan, Scan) or scan.where is None:
        return None
    if scan.stream.kind is not Kind.UPSERT or scan.stream.version or scan.records is not None or scan.watermark:
        return None
    return _AllRows(replace(node, input=replace(scan, where=None)), scan.where)
