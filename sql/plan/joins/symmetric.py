"""What the symmetric joins share: each row is answered with all that match it, on either side, now and later."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.joins.dataflow.ports import JoinKind, Pad
from dovetail.sql.plan.joins.method import JoinMethod, Key, KeyedSides


@dataclass(frozen=True)
class SymmetricJoinMethod(JoinMethod):
    def updates(self, kind: JoinKind, left: bool, right: bool) -> bool:
        """A padded row is taken back by the first match."""
        pads = kind not in (JoinKind.INNER, JoinKind.SEMI)
        return pads or left or right

    def unique_keys(self, sides: KeyedSides) -> list[Key]:
        """The keys of both sides together; those of one side alone where each of its rows meets at most one row of the
        other, because the other's key is part of the join key.
        """
        if sides.kind.is_existence:
            return sides.left
        # With defaults for NULLs a padded row of one side may look like one of the other.
        if sides.kind == JoinKind.FULL and sides.pad == Pad.DEFAULT:
            return []
        # NULL keys that equal one another are no exception: a primary key column is never NULL.
        one_right = any(set(key) <= {name for _, name in sides.pairs} for key in sides.right)
        one_left = any(set(key) <= {name for name, _ in sides.pairs} for key in sides.left)
        found: list[Key] = []
        if one_right and sides.kind in (JoinKind.INNER, JoinKind.LEFT):
            found += sides.left
        if one_left and sides.kind in (JoinKind.INNER, JoinKind.RIGHT):
            found += sides.right
        found += [tuple(dict.fromkeys(first + second)) for first in sides.left for second in sides.right]
        return sorted(dict.fromkeys(found), key=len)
