"""The updating ASOF join: each left row with the nearest right row, matched anew whenever either side changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.inequality import UNKNOWN, TimeInequality
from dovetail.sql.plan.joins.method import JoinInputs, JoinMethod, Key, KeyedSides, kept, open_times
from dovetail.sql.plan.time_text import length_text


@dataclass(frozen=True)
class Asof(JoinMethod):
    """What is taken of the right rows for which ``inequality`` holds: the nearest.

    tie_breaks  columns by which the smallest of equal right rows is taken; empty: the last arrived
    tolerance   greatest distance, in the unit of the columns; None: any
    """

    inequality: TimeInequality = UNKNOWN
    tie_breaks: tuple[str, ...] = ()
    tolerance: int | None = None

    operator: ClassVar[str] = "AsofJoin"
    called: ClassVar[str] = "an ASOF"
    takes_one: ClassVar[bool] = True

    @property
    def columns_read(self) -> frozenset[str]:
        return self.inequality.columns | frozenset(self.tie_breaks)

    @property
    def canonical(self) -> Form:
        return members(
            kind="asof",
            inequality=self.inequality.canonical,
            tie_breaks=list(self.tie_breaks),
            tolerance=self.tolerance,
        )

    def updates(self, kind: JoinKind, left: bool, right: bool) -> bool:
        return True

    def unique_keys(self, sides: KeyedSides) -> list[Key]:
        """A left row leaves once: alone, or with one right row."""
        return sides.left

    def conditions(self, inputs: JoinInputs) -> list[str]:
        far = [] if self.tolerance is None else [f"at most {self._distance(inputs)} apart"]
        tie = f"of equals the least {','.join(self.tie_breaks)}" if self.tie_breaks else "of equals the last arrived"
        return [*self.inequality.text(), *far, tie]

    def _distance(self, inputs: JoinInputs) -> str:
        return "" if self.tolerance is None else length_text(self.tolerance, inputs.left.type_of(self.inequality.left))

    def keeps_both(self, inputs: JoinInputs) -> bool:
        return bool(open_times(inputs, self.inequality.left, self.inequality.right))

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        right = self.inequality.right
        if reason := open_times(inputs, self.inequality.left, right):
            return f"left {kept(inputs.left, reason)}, right {kept(inputs.right, reason)}"
        far = self._distance(inputs)
        if self.inequality.looks_back:
            newest = "of those before both watermarks the newest of each join key"
            reach = f"{newest}, if it is no more than {far} before them" if far else newest
            return f"left rows until the watermark of {right} has passed them, right rows: {reach}, and all after it"
        alone = f"those without one until {right} is {far} past them" if far else "those without one forever"
        return (
            f"left rows until both watermarks have passed their match, {alone}, right rows until both have passed them"
        )
