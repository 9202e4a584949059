"""What a join of two streams can be: one class for each kind, in a file of its own.

    Bidirectional   both sides are kept, and both trigger
    Range           as that, of rows near in time; state goes with the watermark
    Enrichment      each left row once, with the right rows held then
    AsofOnce        each left row once, with the nearest right row held then
    Latest          each left row once, with the right row inserted last
    Asof            each left row with the nearest right row, matched anew
    Temporal        each left row with the right row valid at its time
    DynamicFilter   every left row with the one row of the right side
    Apply           a subquery in a condition: the rule ``unnest`` makes one of the others of it
    UnresolvedJoin  not chosen yet: the rule ``strategy`` makes one of the others of it

Passes over a plan ask ``join.method`` rather than which kind it is: what a method answers stands in ``JoinMethod``.
"""

from __future__ import annotations

from dovetail.sql.plan.joins.apply import Apply
from dovetail.sql.plan.joins.asof import Asof
from dovetail.sql.plan.joins.asof_once import AsofOnce
from dovetail.sql.plan.joins.bidirectional import Bidirectional
from dovetail.sql.plan.joins.dynamic_filter import DynamicFilter
from dovetail.sql.plan.joins.enrichment import Enrichment
from dovetail.sql.plan.joins.latest import Latest
from dovetail.sql.plan.joins.method import JoinMethod
from dovetail.sql.plan.joins.range import Range
from dovetail.sql.plan.joins.temporal import Temporal
from dovetail.sql.plan.joins.unresolved_join import UnresolvedJoin

__all__ = [
    "Apply",
    "Asof",
    "AsofOnce",
    "Bidirectional",
    "DynamicFilter",
    "Enrichment",
    "JoinMethod",
    "Latest",
    "Range",
    "Temporal",
    "UnresolvedJoin",
]
