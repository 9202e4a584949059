"""Chains of joins that were chosen for it become delta joins, which keep their inputs and nothing between them.

    a JOIN b ON a.x = b.x JOIN c ON b.y = c.y       kept: a by x, b by x and by y, c by y, a once more
    └──── many to many: more than its inputs ─┘     not kept: what a and b make

The rule ``join_order`` chooses them, or the setting ``delta_join`` names them; here they have their keys, and get the
paths that their changes take. Rows of an input that are no changes yet, since a retraction may be dangling or a row
late, are so behind a level of its own: what every copy of the input is made of is decided once.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.joins import Bidirectional
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import DeltaJoin, Join, Map, Node, UnionAll, rebuilt
from dovetail.sql.plan.nodes.delta_steps import Conditions
from dovetail.sql.plan.nodes.upserts import UPSERTS
from dovetail.sql.plan.properties import source_of, walk
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.rules.join_order.delta_paths import delta_paths
from dovetail.sql.rules.join_order.input_names import input_name
from dovetail.sql.rules.join_order.straight_chain import straight


def delta_joins(plan: QueryPlan) -> QueryPlan:
    made = plan.with_rows(_made(plan.rows, [choice.inputs for choice in plan.deltas]))
    if sum(isinstance(node, DeltaJoin) for node in walk(made.rows)) < len(plan.deltas):
        raise InternalError("a chain of joins was chosen to be a delta join, and is not one")
    return made


def _made(node: Node, chosen: Sequence[tuple[str, ...]]) -> Node:
    for names in chosen if isinstance(node, Join) else ():
        found = as_delta_join(node, names)
        if found is not None:
            inputs = tuple(_as_changes(_made(below, chosen)) for below in found.inputs)
            made = found.with_inputs(*inputs)
            return made if made.schema.names == node.schema.names else Map(made, identity(node))
    return rebuilt(node, lambda below: _made(below, chosen))


def as_delta_join(node: Node, names: Sequence[str]) -> DeltaJoin | None:
    """The chain of the inputs ``names``, those of few rows first; None if ``node`` is another, or cannot be one."""
    chain = straight(node, len(names) - 1)
    if chain is None:
        return None
    links = DeltaJoin(chain, len(names) - 1, ()).links
    own = [input_name(one) for one in (links[0].left, *(link.right for link in links))]
    if sorted(own) != sorted(names) or not all(map(_is_inner, links)):
        return None
    paths = delta_paths(Conditions.of(links), [own.index(name) for name in names])
    return None if paths is None else DeltaJoin(chain, len(links), paths)


def _is_inner(join: Join) -> bool:
    return join.kind is JoinKind.INNER and isinstance(join.method, Bidirectional) and bool(join.keys)


def _as_changes(node: Node) -> Node:
    """``node``, whose rows all come to stay or to take back one that does."""
    source, watermark = source_of(node), node.output_watermark
    if source is None or source.stream.kind in UPSERTS:
        # The rule ``keyed_inputs`` gives upserts a level of their own.
        return node
    late = watermark is not None and watermark.drops_late
    return UnionAll((node,), node.schema) if late or source.stream.kind != Kind.APPEND else node
