"""How near in time a condition wants the rows of two sides: its inequalities, by the pair that they compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor

import pyarrow as pa

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.linear import inequality
from dovetail.sql.expressions.predicates import halves

_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "="}


@dataclass
class Nearness:
    """What is said of ``left - right``, two expressions, each over one side.

    limits  operator and bound, in microseconds for times, else in numbers
    terms   the conditions that say so
    """

    left: Expr
    right: Expr
    limits: list[tuple[str, Fraction]] = field(default_factory=list)
    terms: list[Expr] = field(default_factory=list)

    def bounds(self, unit: int) -> tuple[int | None, int | None]:
        """The least and the greatest distance, in units of so many microseconds; the columns hold whole units."""
        scaled = [(operator, bound / unit) for operator, bound in self.limits]
        lower = [_least(operator, bound) for operator, bound in scaled if operator in (">", ">=", "=")]
        upper = [-_least(_TURNED[operator], -bound) for operator, bound in scaled if operator in ("<", "<=", "=")]
        return max(lower, default=None), min(upper, default=None)


def _least(operator: str, bound: Fraction) -> int:
    return floor(bound) + 1 if operator == ">" else ceil(bound)


def nearnesses(terms: Iterable[Expr], left: pa.Schema, right: pa.Schema) -> list[Nearness]:
    """In the order in which they are written. ``terms`` may hold BETWEEN, whose halves are taken apart."""
    found: dict[tuple[Expr, Expr], Nearness] = {}
    for half in (half for term in terms for half in halves(term)):
        limit = _limit(half, left, right)
        if limit is None:
            continue
        first, second, operator, bound = limit
        near = found.setdefault((first, second), Nearness(first, second))
        near.limits.append((operator, bound))
        near.terms.append(half)
    return list(found.values())


def rest(terms: Iterable[Expr], near: Nearness) -> list[Expr]:
    """The terms that ``near`` does not speak of."""
    left: list[Expr] = []
    for term in terms:
        kept = [half for half in halves(term) if half not in near.terms]
        left += [term] if len(kept) == len(halves(term)) else kept
    return left


def _limit(term: Expr, left: pa.Schema, right: pa.Schema) -> tuple[Expr, Expr, str, Fraction] | None:
    """``left - right <operator> bound``."""
    found = inequality(term, pa.schema([*left, *right]))
    if found is None or len(found.sum.terms) != 2:
        return None
    (first, factor), (second, other) = found.sum.terms.items()
    if factor != -other:
        return None
    if set(first.columns) <= set(right.names):
        first, second, factor = second, first, other
    if not _over(first, left) or not _over(second, right):
        return None
    operator = found.operator if factor > 0 else _TURNED[found.operator]
    return first, second, operator, -found.sum.constant / factor


def _over(value: Expr, side: pa.Schema) -> bool:
    return bool(value.columns) and set(value.columns) <= set(side.names)
