"""Conditions as DuckDB SQL: cut into conjuncts, joined again, their columns replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sql.expressions.engine import parsed, text

__all__ = ["parsed", "text"]


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
    sides = {side.unnest() for side in (equality.left, equality.right)}
    if {test.this.unnest() for test in tests} != sides:
        return None
    return exp.NullSafeEQ(this=equality.left.copy(), expression=equality.right.copy())


def split(sql: str) -> list[str]:
    return [text(term) for term in conjuncts(parsed(sql))]


def halves(sql: str) -> list[str]:
    """The two inequalities of ``x BETWEEN low AND high``; any other term is itself."""
    tree = parsed(sql).unnest()
    if not isinstance(tree, exp.Between) or tree.args.get("symmetric"):
        return [sql]
    low = exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
    return [text(low), text(exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy()))]


def _factored(condition: exp.Or) -> list[exp.Expr]:
    """The terms common to every branch of an OR, and the OR of what is left of the branches."""
    branches = [conjuncts(branch) for branch in _branches(condition)]
    texts = [{term.sql() for term in branch} for branch in branches]
    common = [term for term in branches[0] if all(term.sql() in names for names in texts)]
    if not common:
        return [condition]
    names = {term.sql() for term in common}
    rests = [[term for term in branch if term.sql() not in names] for branch in branches]
    if not all(rests):
        return common
    return [*common, exp.or_(*(exp.and_(*(term.copy() for term in rest)) for rest in rests))]


def _branches(condition: exp.Expr) -> list[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.Or):
        return [*_branches(condition.left), *_branches(condition.right)]
    return [condition]


def conjunction(terms: Iterable[str]) -> str | None:
    """All of them, as one condition; None for none."""
    listed = list(terms)
    if not listed:
        return None
    return listed[0] if len(listed) == 1 else " AND ".join(f"({term})" for term in listed)


def substituted(sql: str, by_column: Mapping[str, str]) -> str:
    """The expression with each column replaced by another expression."""

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in by_column:
            replacement = parsed(by_column[node.name])
            return replacement if isinstance(replacement, exp.Column | exp.Literal) else exp.Paren(this=replacement)
        return node

    return text(parsed(sql).transform(replace))
