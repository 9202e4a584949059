"""``default_hash_join`` and ``default_hash_table``: state that may exceed memory, and how much of it is there."""

from __future__ import annotations

from dataclasses import replace

from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.nodes import Node, Output
from dovetail.sql.plan.properties import walk
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.query_settings import APPEND_BUFFERED_BYTES, QuerySettings


def hybrid(plan: QueryPlan) -> QueryPlan:
    """A fragment that keeps no such state is left as it is."""
    state = _hybrid_state(plan.settings)
    if state is None:
        return plan

    def spilling(fragment: Output) -> Output:
        kept = any(isinstance(node, Node) and node.memory(state) is not None for node in walk(fragment.input))
        return replace(fragment, hybrid=state) if kept else fragment

    return plan.with_fragments(spilling)


def _hybrid_state(settings: QuerySettings) -> HybridState | None:
    joins, groups = (settings.text(name) == "hybrid" for name in ("default_hash_join", "default_hash_table"))
    if not joins and not groups:
        return None
    given = settings.number("join_max_buffered_bytes")
    memory = StateMemory(APPEND_BUFFERED_BYTES if given is None else given, settings.number("max_hot_keys"))
    return HybridState(memory, joins, groups)
