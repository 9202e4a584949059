"""One-shot ASOF: each left row is answered once, when it comes, with the nearest of the right rows kept then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.alignment import AlignedJoinMethod
from dovetail.sql.plan.joins.inequality import UNKNOWN, TimeInequality
from dovetail.sql.plan.joins.method import JoinInputs


@dataclass(frozen=True)
class AsofOnce(AlignedJoinMethod):
    """``keep_versions``: right rows kept of each join key; of equals the last arrived is taken."""

    inequality: TimeInequality = UNKNOWN
    keep_versions: int = 1

    operator: ClassVar[str] = "AsofJoin"
    called: ClassVar[str] = "an ASOF"
    answers_once: ClassVar[bool] = True
    takes_one: ClassVar[bool] = True
    null_safe: ClassVar[bool] = False

    @property
    def columns_read(self) -> frozenset[str]:
        return super().columns_read | self.inequality.columns

    @property
    def canonical(self) -> Form:
        return members(
            kind="asof_once",
            inequality=self.inequality.canonical,
            keep_versions=self.keep_versions,
            alignment=self.canonical_alignment,
        )

    def conditions(self, inputs: JoinInputs) -> list[str]:
        return [*self.inequality.text(), f"keep_versions={self.keep_versions}", *super().conditions(inputs)]

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        return f"the last {self.keep_versions} right rows of each join key, forever"
