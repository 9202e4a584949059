"""The nodes of the logical plan of a query: a tree of frozen dataclasses, each in a file of its own.

    Output
    └─ LookupJoin         each row answered once, from what stands there now
       ├─ Join            Bidirectional, Range, Enrichment, Asof, ..: ``method`` says which; of several a MultiwayJoin
       │  │               or a DeltaJoin
       │  ├─ Map          computed columns, a filter
       │  │  └─ Window    TUMBLE or HOP: a row for each window; Sessions: with its own
       │  │     └─ ArrayJoin   a row for each element of its arrays
       │  │        └─ Scan     a stream under its alias
       │  └─ Keyed        upserts to changes
       │     └─ Scan      or a query as upserts, by changelog(query, k)
       └─ LookupTable     a dictionary, an external table, the rows of a keyed stream

Columns have internal names, ``<alias>.<column>``, hidden ones ``__k0``, ..., unique in the tree. Expressions are typed
trees over those names. A node answers for itself what rules, EXPLAIN and the compiler ask of it: ``node.Node``.
"""

from __future__ import annotations

from collections.abc import Callable

from dovetail.sql.plan.nodes.aggregate import Aggregate
from dovetail.sql.plan.nodes.array_join import ArrayJoin
from dovetail.sql.plan.nodes.bounded.content import Content
from dovetail.sql.plan.nodes.bounded.sorted import Sorted
from dovetail.sql.plan.nodes.bounded.value_rows import ValueRows
from dovetail.sql.plan.nodes.delta_join import DeltaJoin
from dovetail.sql.plan.nodes.join import Join
from dovetail.sql.plan.nodes.join_chain import JoinChain
from dovetail.sql.plan.nodes.keyed import Keyed
from dovetail.sql.plan.nodes.lookup_join import LookupJoin
from dovetail.sql.plan.nodes.lookup_table import Cover, LookupTable
from dovetail.sql.plan.nodes.map import Map
from dovetail.sql.plan.nodes.multiway_join import MultiwayJoin
from dovetail.sql.plan.nodes.node import (
    HIDDEN,
    Chained,
    Cut,
    Exchange,
    Exchanged,
    Leaf,
    Node,
    OneInput,
    Operator,
    Partitioned,
    RowByRow,
    Table,
)
from dovetail.sql.plan.nodes.output import Output, OutputClock
from dovetail.sql.plan.nodes.over import Over
from dovetail.sql.plan.nodes.passage import Passage
from dovetail.sql.plan.nodes.scan import EventTimeOrigin, Scan
from dovetail.sql.plan.nodes.sessions import Sessions
from dovetail.sql.plan.nodes.set_operation import SetOperation
from dovetail.sql.plan.nodes.shared import Shared
from dovetail.sql.plan.nodes.static import Static
from dovetail.sql.plan.nodes.static_join import StaticJoin
from dovetail.sql.plan.nodes.top_n import TopN
from dovetail.sql.plan.nodes.union_all import UnionAll
from dovetail.sql.plan.nodes.waiting import Waiting
from dovetail.sql.plan.nodes.window import Window

__all__ = [
    "HIDDEN",
    "Aggregate",
    "ArrayJoin",
    "Chained",
    "Content",
    "Cover",
    "Cut",
    "DeltaJoin",
    "EventTimeOrigin",
    "Exchange",
    "Exchanged",
    "Join",
    "JoinChain",
    "Keyed",
    "Leaf",
    "LookupJoin",
    "LookupTable",
    "Map",
    "MultiwayJoin",
    "Node",
    "OneInput",
    "Operator",
    "Output",
    "OutputClock",
    "Over",
    "Partitioned",
    "Passage",
    "RowByRow",
    "Scan",
    "Sessions",
    "SetOperation",
    "Shared",
    "Sorted",
    "Static",
    "StaticJoin",
    "Table",
    "TopN",
    "UnionAll",
    "ValueRows",
    "Waiting",
    "Window",
    "rebuilt",
]


def rebuilt(node: Node, rule: Callable[[Node], Node]) -> Node:
    """``node`` over what ``rule`` makes of its inputs: what most rules do with the nodes that they are not about."""
    return node.with_inputs(*(rule(below) for below in node.inputs))
