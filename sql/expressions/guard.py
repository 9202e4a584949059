"""Expressions in which a call that fails for a row is NULL there, by itself: what stands around it goes on.

``coalesce(CAST(t AS INT), 0)`` is 0 where ``t`` is no number, and ``a = 7 OR CAST(t AS INT) > 5`` is true where ``a``
is 7. Rows are computed without guards first; they are put in where that has failed, as they take time.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from dovetail.sql.expressions import engine
from dovetail.sql.expressions.python_functions import is_volatile

_MAY_FAIL = (
    *(exp.Func, exp.Cast, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift),
    *(exp.Bracket, exp.RegexpLike, exp.SimilarTo, exp.Escape, exp.Like, exp.ILike),
    # The engine itself casts what IN and CASE x WHEN compare, a text to a number.
    *(exp.In, exp.Case),
)
_CANNOT_FAIL = (exp.TryCast, exp.Connector, exp.If, exp.Array, exp.Struct)
"""Functions to sqlglot, yet none of them a call: ``If`` is a branch of CASE."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.NullSafeEQ, exp.NullSafeNEQ)
"""They refuse to mix types, but of decimals of two scales the engine casts one to that of the other."""
_OF_MANY_ROWS = (exp.AggFunc, exp.Window, exp.Query, exp.Star, exp.Exists, exp.UDTF)
"""What TRY cannot hold, since it is no function of one row."""
_CALLS_OF_MANY_ROWS = ("unnest", "generate_series", "row_number", "rank", "dense_rank", "ntile", "lag", "lead")

ALWAYS_DISABLED = "aggregate_function_rewriter"
"""The optimizer that makes of sum(a + 1) a sum(a) and a count: where a + 1 fails for a row, it does not then."""
DISABLED_WITH_GUARDS = f"{ALWAYS_DISABLED},common_subexpressions,expression_rewriter,in_clause,statistics_propagation"
"""Those that must not run over guarded expressions either: common_subexpressions takes out what two guards hold,
in_clause what stands before IN, the others work out constants without their guard."""


@lru_cache(maxsize=1024)
def failure_condition(sql: str) -> str:
    """A condition that holds for the rows for which a call of the expression fails; '' where none can be seen to.

    A cast that gives NULL for what it does not take has failed where all that it reads is there. ``NULLIF(.., NULL)``
    around it, which changes nothing, says that its NULL is asked for: ``to_int_or_null``.
    """
    tests = [_fails(cast) for cast in engine.parsed(sql).find_all(exp.TryCast) if not _is_null_intended(cast)]
    return " OR ".join(test for test in dict.fromkeys(tests) if test)


def _fails(cast: exp.TryCast) -> str:
    read = dict.fromkeys(engine.text(column) for column in cast.find_all(exp.Column))
    if not read or cast.find_ancestor(exp.Lambda) is not None:
        return ""
    there = " AND ".join(f"{column} IS NOT NULL" for column in read)
    return f"({engine.text(cast)} IS NULL AND {there})"


def _is_null_intended(cast: exp.TryCast) -> bool:
    around = cast.parent
    if not isinstance(around, exp.Anonymous) or str(around.this).lower() != "nullif":
        return False
    return isinstance(around.expressions[-1], exp.Null)


@lru_cache(maxsize=1024)
def without_signs(sql: str) -> str:
    """An expression without the signs before constants: the engine works these out as it reads them, within TRY too."""
    return engine.text(engine.parsed(sql).transform(_without_sign))


def _without_sign(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Neg) and node.find(exp.Column) is None else node


@lru_cache(maxsize=1024)
def guarded(sql: str) -> str:
    """An expression or a query of the engine, each of its calls in a guard."""
    return engine.text(engine.parsed(sql).transform(_guarded))


def _guarded(node: exp.Expr) -> exp.Expr:
    if not _may_fail(node) or not _of_one_row(node):
        return node
    made = exp.TryCast(**node.copy().args) if isinstance(node, exp.Cast) else node.copy()
    # LIKE and its ESCAPE are one call.
    call = made.this if isinstance(made, exp.Escape) else made
    for part in list(call.iter_expressions()):
        part.replace(exp.Paren(this=part.copy()).transform(_guarded).this)
    return made if isinstance(made, exp.TryCast) else exp.Anonymous(this="TRY", expressions=[made])


def _may_fail(node: exp.Expr) -> bool:
    if isinstance(node, _COMPARISONS):
        # A query joins by its comparisons, which it would not find behind a guard.
        return node.find_ancestor(exp.Query) is None
    return isinstance(node, _MAY_FAIL) and not isinstance(node, _CANNOT_FAIL)


def _of_one_row(node: exp.Expr) -> bool:
    """Whether the value of ``node`` comes from one row, so that TRY can hold it."""
    if any(isinstance(part, _OF_MANY_ROWS) for part in node.walk()):
        return False
    if node.find_ancestor(exp.Interval) is not None or (isinstance(node.parent, exp.Window) and node.arg_key == "this"):
        return False
    calls = list(node.find_all(exp.Anonymous))
    return not any(str(call.this).lower() in _CALLS_OF_MANY_ROWS or is_volatile(call) for call in calls)
