"""Rewrites of the logical plan, plan to plan; reading ``RULES`` in order is reading the design.

push_down      conditions move towards the scans, as far as the kinds of join above them allow
join_keys      equalities of a join condition become its keys, the rest its residual condition
keyed_inputs   an upsert stream whose primary key does not hold the join key gets a level of its own
"""

from __future__ import annotations

from collections.abc import Callable

from sql.plan import Node
from sql.rules.join_keys import join_keys
from sql.rules.keyed_inputs import keyed_inputs
from sql.rules.push_down import push_down

RULES: tuple[Callable[[Node], Node], ...] = (push_down, join_keys, keyed_inputs)


def rewritten(node: Node) -> Node:
    for rule in RULES:
        node = rule(node)
    return node
