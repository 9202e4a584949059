"""Window functions as trees: ``sum(v) FILTER (WHERE w) OVER (PARTITION BY k ORDER BY t ROWS ..)``, part by part."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp


def called_in(window: exp.Window) -> exp.Expr:
    """The call that a window is of, its FILTER and IGNORE NULLS apart."""
    call = window.this
    found: exp.Expr = call.this if isinstance(call, exp.Filter | exp.IgnoreNulls) else call
    return found


def name_of(call: exp.Expr) -> str:
    return (call.name if isinstance(call, exp.Anonymous) else call.key).lower()


def arguments_of(call: exp.Expr) -> list[exp.Expr]:
    if isinstance(call, exp.Anonymous):
        return list(call.expressions)
    given = call.this
    return [given.this if isinstance(given, exp.Order) else given] if isinstance(given, exp.Expr) else []


def frame_kind(window: exp.Window) -> str:
    """ROWS, RANGE or GROUPS; '' where no frame is written."""
    spec = window.args.get("spec")
    return "" if spec is None else str(spec.args.get("kind") or "").upper()


def read_by(window: exp.Window) -> list[exp.Expr]:
    """What a window computes from: arguments, condition, PARTITION BY, ORDER BY."""
    parts = arguments_of(called_in(window))
    if isinstance(window.this, exp.Filter):
        parts.append(window.this.expression.this)
    parts += window.args.get("partition_by") or ()
    # An aggregate of a group that stands in ORDER BY may have an order of its own.
    orders = (window.args.get("order"), called_in(window).this)
    return parts + [term.this for order in orders if isinstance(order, exp.Order) for term in order.expressions]


def over_others(window: exp.Window, replaced: Callable[[exp.Expr], exp.Expr]) -> exp.Window:
    """A window with each part that it reads transformed; its own call stays."""
    made = window.copy()
    for part in read_by(made):
        part.replace(part.copy().transform(replaced))
    return made
