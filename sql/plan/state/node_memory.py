"""Whose state is hybrid."""

from __future__ import annotations

from typing import assert_never

from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.nodes import (
    Aggregate,
    ArrayJoin,
    DeltaJoin,
    Join,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    MultiwayJoin,
    Node,
    Output,
    Over,
    Scan,
    Sessions,
    SetOperation,
    Static,
    StaticJoin,
    TopN,
    UnionAll,
    Window,
)


def memory_of(node: Output | Node, hybrid: HybridState) -> StateMemory | None:
    """How much of the state of a node may be in memory at once; None: all of it, or it has none."""
    match node:
        case Keyed():
            return hybrid.memory
        case Aggregate() | Sessions():
            return hybrid.memory if hybrid.groups else None
        case Join() | MultiwayJoin() | DeltaJoin() | SetOperation() | Over() | TopN():
            return hybrid.memory if hybrid.joins else None
        case (
            Output() | Scan() | Static() | Map() | Window() | ArrayJoin() | StaticJoin() | LookupJoin() | LookupTable()
        ):
            return None
        case UnionAll():
            return None
        case _:
            assert_never(node)
