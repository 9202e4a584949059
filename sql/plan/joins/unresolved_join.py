"""A join as the query writes it, before the rule ``strategy`` has chosen its method."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form
from dovetail.sql.plan.joins.method import JoinInputs, JoinMethod

LAG_BEHIND = "lag_behind"
"""The modifier of ON that makes a join wait for its right side."""


class JoinSyntax(StrEnum):
    """Which of the right rows under its key a left row is joined with."""

    ALL = "all"
    ASOF = "ASOF"
    LATEST = "LATEST"
    TEMPORAL = "FOR SYSTEM_TIME AS OF"
    PROCESS_TIME = "FOR SYSTEM_TIME AS OF PROCTIME()"


@dataclass(frozen=True)
class Lag:
    """``lag_behind(d, l.t, r.t)``: the two columns, in either order, and the distance."""

    columns: tuple[str, str]
    ms: int
    place: str


@dataclass(frozen=True)
class UnresolvedJoin(JoinMethod):
    """What a JOIN says beside its kind and its condition.

    as_of   TEMPORAL: an expression over the left row; None elsewhere
    lag     how long a left row is to wait for the right side; None: not at all
    """

    syntax: JoinSyntax = JoinSyntax.ALL
    as_of: Expr | None = None
    lag: Lag | None = None

    operator: ClassVar[str] = "Join"

    @property
    def canonical(self) -> Form:
        raise InternalError("a join that was not chosen yet has no state")

    def updates(self, kind: JoinKind, left: bool, right: bool) -> bool:
        return True

    def conditions(self, inputs: JoinInputs) -> list[str]:
        if self.syntax == JoinSyntax.ALL:
            return []
        return [str(self.syntax) if self.as_of is None else f"{self.syntax} {self.as_of.text}"]

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        return "not chosen yet"
