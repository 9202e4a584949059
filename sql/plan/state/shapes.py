"""What is told at a glance of an operator that keeps state: of which topics it is made, and by which kinds of nodes.

    Aggregate  by=u.city                          groups(1, join(inner, keyed(topic orders), topic users))
    └─ Bidirectional inner  o.customer=u.id   →
       ├─ Keyed  key=o.id
       │  └─ scan orders as o
       └─ scan users as u

Two that would keep the same rows (``sql.plan.state.common_rows``) have one shape; two of one shape need not.
"""

from __future__ import annotations

import hashlib
from typing import assert_never

from dovetail.sql.plan.joins import Bidirectional
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
from dovetail.sql.plan.state.common_subplans import Subplan

_Form = tuple[object, ...]


def shape(node: Subplan) -> str:
    """32 letters; '' where no other operator is taken for the same, whatever it is made of."""
    form = _form(node)
    return "" if form is None else hashlib.blake2b(repr(form).encode(), digest_size=16).hexdigest()


def _form(node: Node) -> _Form | None:
    match node:
        case Scan():
            return "topic", node.topic
        case Map():
            # Which columns, and under which condition: ``common_rows`` looks at them.
            return _form(node.input)
        case Keyed():
            return _over("keyed", node.input)
        case Window():
            return _over("window", node.input)
        case Aggregate():
            return _over(f"groups {len(node.by)}", node.input)
        case Join():
            return _over(f"join {node.kind.value}", *node.inputs) if isinstance(node.how, Bidirectional) else None
        case MultiwayJoin():
            return _over(f"multiway {node.joins}", *node.inputs)
        case (
            ArrayJoin() | LookupJoin() | LookupTable() | Over() | Sessions() | SetOperation() | Static() | StaticJoin()
        ):
            return None
        case DeltaJoin() | TopN() | UnionAll():
            return None
        case _:
            assert_never(node)


def _over(kind: str, *inputs: Node) -> _Form | None:
    forms = [_form(one) for one in inputs]
    return None if None in forms else (kind, *forms)
