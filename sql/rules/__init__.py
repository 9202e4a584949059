"""Rewrites of the logical plan, plan to plan; reading ``rules`` in order is reading the design.

strategy       a join becomes bidirectional, enrichment, asof, .., as its sides are
push_down      conditions move towards the scans, as far as the kinds of join above them allow
join_keys      equalities of a join condition become its keys, the rest its residual condition
bands          inequalities of a time of each side make it a join of rows that are near in time
               groups by a window, or a time, go when the watermark has passed it
keyed_inputs   an upsert stream whose primary key does not hold the join key gets a level of its own
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sql.plan.nodes import Node
from sql.query_settings import QuerySettings
from sql.rules.bands import bands
from sql.rules.join_keys import join_keys
from sql.rules.keyed_inputs import keyed_inputs
from sql.rules.push_down import push_down
from sql.rules.strategy import strategy


def rules(settings: QuerySettings, once: bool) -> tuple[Callable[[Node], Node], ...]:
    return (
        partial(strategy, settings=settings),
        push_down,
        join_keys,
        partial(bands, settings=settings, once=once),
        keyed_inputs,
    )


def rewritten(node: Node, settings: QuerySettings, once: bool = False) -> Node:
    """``once``: rows are to leave when they are final (EMIT ON WINDOW CLOSE)."""
    for rule in rules(settings, once):
        node = rule(node)
    return node
