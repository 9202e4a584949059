"""The one inequality of an ASOF join."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.sql.plan.canonical_values import Form, members


@dataclass(frozen=True)
class TimeInequality:
    """The right row is the nearest for which ``left <comparison> right`` holds. All are empty before the rule
    ``join_keys`` has found it.

    left, right  columns of one type, a time or a number
    comparison   >=, >, <= or <
    """

    left: str = ""
    comparison: str = ""
    right: str = ""

    @property
    def looks_back(self) -> bool:
        """Whether the right row is not after the left one."""
        return self.comparison in (">=", ">")

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.left, self.right})

    @property
    def canonical(self) -> Form:
        return members(left=self.left, comparison=self.comparison, right=self.right)

    def text(self) -> list[str]:
        """What EXPLAIN says; nothing before it is known."""
        return [f"{self.left} {self.comparison} {self.right}"] if self.comparison else []


UNKNOWN = TimeInequality()
