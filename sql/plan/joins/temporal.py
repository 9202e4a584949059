"""FOR SYSTEM_TIME AS OF a time of the left row: each with the version of the right row that was valid then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import JoinInputs, JoinMethod, Key, KeyedSides


@dataclass(frozen=True)
class Temporal(JoinMethod):
    """The version whose time ``right`` is the last not after ``left``; both are columns, of one type from the rule
    ``join_keys`` on.

    deleted   a column of the right side that is true where the record is a delete; empty: there are none
    """

    left: str
    right: str
    deleted: str = ""

    operator: ClassVar[str] = "Temporal"
    called: ClassVar[str] = "a temporal"
    takes_one: ClassVar[bool] = True

    @property
    def columns_read(self) -> frozenset[str]:
        return frozenset({self.left, self.right, self.deleted})

    @property
    def canonical(self) -> Form:
        return members(kind="temporal", left=self.left, right=self.right, deleted=self.deleted)

    def unique_keys(self, sides: KeyedSides) -> list[Key]:
        """A left row leaves once: alone, or with one right row."""
        return sides.left

    def conditions(self, inputs: JoinInputs) -> list[str]:
        return [f"the version of {self.left} by {self.right}" + (", deletes ignored" if not self.deleted else "")]

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        answered = ", the answers of those that stand" if inputs.left.updates else ""
        return (
            f"left rows until both watermarks have passed them{answered}, "
            "right versions from the last of each key behind the watermarks on"
        )
