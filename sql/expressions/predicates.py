"""Conditions: cut into conjuncts, and joined again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from sqlglot import exp

from dovetail.sql.expressions.expression import Expr, structure


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """The terms that AND joins; of ``(a AND b) OR (a AND c)`` they are ``a`` and ``b OR c``."""
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.left), *conjuncts(condition.right)]
    if isinstance(condition, exp.Or):
        same = _null_safe_equality(condition)
        return _factored(condition) if same is None else [same]
    return [condition]


def _null_safe_equality(condition: exp.Or) -> exp.Expr | None:
    """``a = b OR (a IS NULL AND b IS NULL)`` is ``a IS NOT DISTINCT FROM b``."""
    first, second = condition.left.unnest(), condition.right.unnest()
    equality, nulls = (first, second) if isinstance(first, exp.EQ) else (second, first)
    if not isinstance(equality, exp.EQ) or not isinstance(nulls, exp.And):
        return None
    tests = [side.unnest() for side in (nulls.left, nulls.right)]
    if not all(isinstance(test, exp.Is) and isinstance(test.expression, exp.Null) for test in tests):
        return None
    if {structure(test.this) for test in tests} != {structure(side) for side in (equality.left, equality.right)}:
        return None
    return exp.NullSafeEQ(this=equality.left.copy(), expression=equality.right.copy())


def _factored(condition: exp.Or) -> list[exp.Expr]:
    """The terms common to every branch of an OR, and the OR of what is left of the branches."""
    branches = [[(structure(term), term) for term in conjuncts(branch)] for branch in _branches(condition)]
    shared = set.intersection(*({known for known, _ in branch} for branch in branches))
    common = [term for known, term in branches[0] if known in shared]
    if not common:
        return [condition]
    rests = [[term for known, term in branch if known not in shared] for branch in branches]
    if not all(rests):
        return common
    return [*common, exp.or_(*(exp.and_(*(term.copy() for term in rest)) for rest in rests))]


def _branches(condition: exp.Expr) -> list[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.Or):
        return [*_branches(condition.left), *_branches(condition.right)]
    return [condition]


def split(condition: Expr | None) -> list[Expr]:
    """The conjuncts of a condition of a plan; none of None."""
    return [] if condition is None else [Expr.condition(term) for term in conjuncts(condition.tree)]


def conjunction(terms: Iterable[Expr]) -> Expr | None:
    """All of them, as one condition; None for none."""
    listed = list(terms)
    if len(listed) < 2:
        return listed[0] if listed else None
    bracketed: list[exp.Expr] = [exp.Paren(this=term.tree.copy()) for term in listed]
    return Expr.condition(reduce(_both, bracketed))


def _both(first: exp.Expr, second: exp.Expr) -> exp.Expr:
    return exp.And(this=first, expression=second)


def halves(term: Expr) -> list[Expr]:
    """The two inequalities of ``x BETWEEN low AND high``; any other term is itself."""
    tree = term.tree.unnest()
    if not isinstance(tree, exp.Between) or tree.args.get("symmetric"):
        return [term]
    low = exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
    high = exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())
    return [Expr.condition(low), Expr.condition(high)]
