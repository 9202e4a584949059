"""Joins in a chain that share a key become one n-way join.

    a JOIN b ON a.k = b.k JOIN c ON b.k = c.k          LEFT JOIN d ON a.k = d.k
    └──────── one key: a.k = b.k = c.k ──────┘         d.k is of the key of rows that are always there

A chain of joins of two keeps what each of them makes, for the next one to look into; an n-way join keeps the inputs
alone. What joins of two offer beside that stays theirs: a chain goes as far as its joins

- are bidirectional, INNER or LEFT: no time bounds their state, and no row is answered once
- compare the whole key, with columns that are in it already: those of a padded side are not, as they may be NULL
- compare NULL alike, and have one limit of their state
- are LEFT without a residual condition, under which each row has matches of its own

``SETTINGS multiway_join = 0`` leaves it as it is.
"""

from __future__ import annotations

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.joins import Bidirectional
from dovetail.sql.plan.nodes import Join, MultiwayJoin, Node, rebuilt
from dovetail.sql.plan.query_plan import QueryPlan


def multiway(plan: QueryPlan) -> QueryPlan:
    return plan.with_rows(_merged(plan.rows)) if plan.settings["multiway_join"] else plan


def _merged(node: Node) -> Node:
    made = rebuilt(node, _merged)
    if not isinstance(made, Join) or not isinstance(made.left, Join | MultiwayJoin):
        return made
    below = made.left if isinstance(made.left, MultiwayJoin) else MultiwayJoin(made.left, joins=1)
    if not all(map(_is_symmetric, (made, *below.links))) or not _goes_on(below, made):
        return made
    return MultiwayJoin(made.with_inputs(below.chain, made.right), below.joins + 1)


def _is_symmetric(join: Join) -> bool:
    """Whether its rows under a key are every combination of the rows of both sides, or padded left rows."""
    if not isinstance(join.method, Bidirectional) or not join.keys:
        return False
    return join.kind is JoinKind.INNER or (join.kind is JoinKind.LEFT and join.residual is None)


def _goes_on(below: MultiwayJoin, join: Join) -> bool:
    """Whether ``join`` goes by the key of the joins below."""
    first = below.links[0]
    place: dict[str, int] = {left: number for number, (left, _) in enumerate(first.keys)}
    for link in below.links:
        if link.kind is JoinKind.INNER:
            place |= {right: place[left] for left, right in link.keys}
    compared = {place.get(left): safe for (left, _), safe in zip(join.keys, _null_safe(join), strict=True)}
    return (
        len(join.keys) == len(first.keys)
        and compared == dict(enumerate(_null_safe(first)))
        and (join.max_buffered_bytes, join.pad) == (first.max_buffered_bytes, first.pad)
    )


def _null_safe(join: Join) -> tuple[bool, ...]:
    return join.null_safe or (False,) * len(join.keys)
