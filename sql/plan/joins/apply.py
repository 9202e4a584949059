"""What a subquery in a condition asks of each row, before the rule ``unnest`` makes a join of it.

The right side of an Apply is a query that may read columns of the left: it is asked anew for each left row. SEMI keeps
the left rows for which it gives a row that fulfils ``on``, ANTI those for which it gives none; INNER and LEFT add its
one row to each.

Source: Galindo-Legaria and Joshi, "Orthogonal Optimization of Subqueries and Aggregation" (SIGMOD 2001); Neumann and
Kemper, "Unnesting Arbitrary Queries" (BTW 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.canonical_values import Form
from dovetail.sql.plan.joins.method import JoinInputs, JoinMethod


@dataclass(frozen=True)
class Apply(JoinMethod):
    """``single``: the right side gives one row at most, whose column is a value: INNER or LEFT."""

    single: bool = False

    operator: ClassVar[str] = "Apply"

    @property
    def canonical(self) -> Form:
        raise InternalError("a join that was not chosen yet has no state")

    def updates(self, kind: JoinKind, left: bool, right: bool) -> bool:
        return True

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        return "not chosen yet"
