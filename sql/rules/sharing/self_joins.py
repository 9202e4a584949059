"""Sides of a join that have the same rows, under the same key, come in and are kept once.

    orders AS a JOIN orders AS b ON a.customer = b.customer      one reading, one arrangement
    orders AS a JOIN orders AS b ON a.customer = b.seller        two: no arrangement has both keys
    orders AS a JOIN orders AS b ON .. WHERE b.amount > 100      two: one of both would hold what b does not look at

The first of them gets the columns that the others need besides; its rows are there under the names of all. So are those
of an n-way join. Joins that bound their state by time keep of each side what that side needs, and so stay as they are.

It is one of the last rules: which columns travel is known, and only ``subplans`` meets sides that are not read.

``SETTINGS share_state = 0`` leaves them as they are.
"""

from __future__ import annotations

from dovetail.sql.plan.joins import Bidirectional
from dovetail.sql.plan.nodes import Join, Map, MultiwayJoin, Node, Output, rebuilt
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.plan.state.same_rows import SameRows, same_rows


def self_joins(plan: QueryPlan) -> QueryPlan:
    return plan.with_fragments(_of_fragment) if plan.settings["share_state"] else plan


def _of_fragment(fragment: Output) -> Output:
    return fragment.with_inputs(_made(fragment.input))


def _made(node: Node) -> Node:
    """``node``, which may have more columns than before."""
    below = rebuilt(node, _made if isinstance(node, Map) else _inside)
    if isinstance(below, Join) and isinstance(below.method, Bidirectional):
        keys = tuple(left for left, _ in below.keys), tuple(right for _, right in below.keys)
        return below.with_inputs(*_together(below.inputs, keys))
    if isinstance(below, MultiwayJoin):
        first, second, *others = _together(below.inputs, below.keys)
        return below.with_inputs(first, second, *others)
    return below


def _inside(node: Node) -> Node:
    """``node`` with the columns that it had."""
    made, names = _made(node), node.schema.names
    if made.schema.names == names:
        return made
    return Map(made, columns=tuple((name, made.column(name)) for name in names))


def _together(inputs: tuple[Node, ...], keys: tuple[tuple[str, ...], ...]) -> list[Node]:
    """``inputs``, those marked that have the rows of one before them, and these with the columns of both."""
    made: list[Node] = []
    for place, node in enumerate(inputs):
        for of, earlier in enumerate(made):
            found = None if earlier.shared_with else same_rows(earlier, node)
            if found is not None and _same_key(found, keys[of], keys[place]):
                made[of] = found.node
                made.append(found.repeated)
                break
        else:
            made.append(node)
    return made


def _same_key(found: SameRows, key: tuple[str, ...], again: tuple[str, ...]) -> bool:
    return tuple(found.names[name] for name in again) == key
