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

from dovetail.sql.plan.state.common_subplans import Subplan


def shape(node: Subplan) -> str:
    """32 letters; '' where no other operator is taken for the same, whatever it is made of."""
    form = node.shape
    return "" if form is None else hashlib.blake2b(repr(form).encode(), digest_size=16).hexdigest()
