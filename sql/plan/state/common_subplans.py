"""Operators whose rows several others read: equal nodes of a tree, which are one stage.

The tree stays a tree: who reads such a node has it below itself, and what is told of a query from its tree is told as
if each reader had one of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.sql.plan.joins import Bidirectional
from dovetail.sql.plan.nodes import Aggregate, Join, Keyed, MultiwayJoin, Node, Output, Scan
from dovetail.sql.plan.properties import walk

Subplan = Keyed | Join | MultiwayJoin | Aggregate


def as_subplan(node: Output | Node) -> Subplan | None:
    """``node``, if several can read it; None if each reader needs one of its own."""
    if isinstance(node, Join):
        return node if isinstance(node.how, Bidirectional) else None
    return node if isinstance(node, Keyed | MultiwayJoin | Aggregate) else None


def aliases(node: Output | Node) -> str:
    """What the query calls the streams that it is made of."""
    return ", ".join(one.alias for one in walk(node) if isinstance(one, Scan) and not one.kept_with)


@dataclass
class Met:
    """The subplans of a fragment that a walk has met, parents first, left before right.

    once    equal ones are one; else each is for itself
    """

    once: bool
    subplans: list[Subplan] = field(default_factory=list)

    @staticmethod
    def none_of(tree: Output | Node) -> Met:
        return Met(isinstance(tree, Output) and tree.subplans_once)

    def again(self, node: Output | Node) -> bool:
        """Whether ``node`` is one that was met; it is from now on."""
        subplan = as_subplan(node) if self.once else None
        if subplan is None:
            return False
        if subplan in self.subplans:
            return True
        self.subplans.append(subplan)
        return False
