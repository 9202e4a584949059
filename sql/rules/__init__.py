"""Rewrites of a query's plan, plan to plan; reading ``RULES`` in order is reading the design.

unnest           subqueries of WHERE become SEMI and ANTI joins
strategy         a join becomes bidirectional, enrichment, asof, .., as its sides are
push_down        conditions move towards the scans, as far as the kinds of join above them allow
top_n            a condition on a rank lets the first rows of a partition through
join_order       chains of INNER and LEFT joins are joined in the order that keeps the fewest rows between them
join_keys        equalities of a join condition become its keys, the rest its residual condition
bands            inequalities of a time of each side make it a join of rows that are near in time
                 and groups by a window, or a time, go when the watermark has passed it
clock_filters    filters by a bound that rises move below the joins whose state they bound
delta_joins      chains that were chosen for it keep their inputs and nothing between them
keyed_inputs     an upsert stream whose primary key does not hold the join key gets a level of its own
multiway         joins in a chain that share a key become one
row_budgets      asked for, each side of a join has a budget of rows for a key
window_close     asked for final rows, the uppermost join lets each leave once
split_fragments  what Spark runs and what the Faust workers run are cut apart, with a topic between them
sink             what leaves gets its columns, its key, its topic
periods          the groups of EMIT PERIODIC take up what has come so often at most
hybrid           state that may be larger than memory gets its share of it
prune            only the columns that something above reads travel
self_joins       sides of a join that have the same rows are one
subplans         operators that would keep the same rows are one
"""

from __future__ import annotations

from collections.abc import Callable

from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.rules.bands import bands
from dovetail.sql.rules.clock_filters import clock_filters
from dovetail.sql.rules.hybrid import hybrid
from dovetail.sql.rules.join_keys import join_keys
from dovetail.sql.rules.join_order.delta_joins import delta_joins
from dovetail.sql.rules.join_order.rule import join_order
from dovetail.sql.rules.keyed_inputs import keyed_inputs
from dovetail.sql.rules.periods import periods
from dovetail.sql.rules.prune import prune
from dovetail.sql.rules.push_down import push_down
from dovetail.sql.rules.row_budgets import row_budgets
from dovetail.sql.rules.sharing.multiway import multiway
from dovetail.sql.rules.sharing.self_joins import self_joins
from dovetail.sql.rules.sharing.subplans import subplans
from dovetail.sql.rules.sink import sink
from dovetail.sql.rules.split_fragments import split_fragments
from dovetail.sql.rules.strategy import strategy
from dovetail.sql.rules.top_n import top_n
from dovetail.sql.rules.unnest import unnest
from dovetail.sql.rules.window_close import window_close

Rule = Callable[[QueryPlan], QueryPlan]

MEETING: tuple[Rule, ...] = (unnest, strategy, push_down, top_n, join_order, join_keys)
"""After these the plan says which rows meet; the rest is about how they are kept, run and written."""
RULES: tuple[Rule, ...] = (
    *MEETING,
    bands,
    clock_filters,
    delta_joins,
    keyed_inputs,
    multiway,
    row_budgets,
    window_close,
    split_fragments,
    sink,
    periods,
    hybrid,
    prune,
    self_joins,
    subplans,
)


def meeting(plan: QueryPlan) -> QueryPlan:
    """``plan`` as one tree that says which rows meet, and by which conditions."""
    for rule in MEETING:
        plan = rule(plan)
    return plan


def rewritten(plan: QueryPlan) -> QueryPlan:
    """``plan`` with its fragments, ready to be compiled. Raises SqlError and Unsupported for what no rule can make."""
    for rule in RULES:
        plan = rule(plan)
    return plan
