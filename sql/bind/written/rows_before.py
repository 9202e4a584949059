"""lag() and lags() of Timeplus without OVER: of the rows that arrived before, in the stream that PARTITION BY makes.

lag(v, 2) .. PARTITION BY k      lag(v, 2) OVER (PARTITION BY k ORDER BY _tp_sn)
lags(v, 1, 3)                    [lag(v, 1) OVER (..), lag(v, 2) OVER (..), lag(v, 3) OVER (..)]

Rows arrive in the order of ``_tp_sn``; where a subquery has not kept it, of ``_tp_time``. Of groups of windows the one
before is that of the window before.
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.schema import SEQUENCE, TIME
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.bind.written.substreams import SUBSTREAMS
from dovetail.sql.syntax.calls import function_name

_IN_ORDER = "in the order of arrival"
_WINDOW_BOUNDS = ("window_start", "window_end")
_MOST = 1000
_FORM = "lags(v, 1, 3): the first and the last distance, then what stands for no row"


def over_rows_before(query: exp.Query) -> exp.Query:
    """The query with a window around each such call. Raises SqlError for arguments that lags() does not take."""
    for select in query.find_all(exp.Select):
        keys = select.args.get(SUBSTREAMS)
        for call in [call for item in select.expressions for call in item.find_all(exp.Lag, exp.Anonymous)]:
            if call.find_ancestor(exp.Select) is not select or isinstance(_around(call), exp.Window):
                continue
            by = [key.copy() for key in keys.expressions] if keys is not None else []
            if isinstance(call, exp.Lag):
                call.replace(_in_order(call, by))
            elif function_name(call) == "lags":
                lags = [_in_order(lag, by) for lag in _lags(call)]
                call.replace(exp.Array(expressions=lags))
    return query


def ordered_by_arrival(select: exp.Select, scope: Scope, *, grouped: bool) -> None:
    """Has the windows that ``over_rows_before`` made in ``select`` their order. Raises Unsupported where rows have
    none.
    """
    for window in select.find_all(exp.Window):
        if not window.meta.pop(_IN_ORDER, False):
            continue
        group = select.args.get("group")
        bounds = [key for key in (group.expressions if group else ()) if key.name in _WINDOW_BOUNDS]
        known = [] if grouped else [exp.column(name) for name in (SEQUENCE, TIME) if scope.has(name)]
        order = bounds if grouped else known
        if not order:
            raise Unsupported(
                f"{window.this.sql(dialect='clickhouse')} is of the row that arrived before, and these rows have no "
                "order of arrival",
                where=place_of(window, "SELECT"),
                fix=f"select {TIME} in the subquery or the view; or say the order: lag(v) OVER (ORDER BY t)",
            )
        window.set("order", exp.Order(expressions=[exp.Ordered(this=order[0].copy())]))


def _around(call: exp.Expr) -> exp.Expr | None:
    """What stands around a call, IGNORE NULLS and FILTER apart."""
    around = call.parent
    while isinstance(around, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        around = around.parent
    return around


def _in_order(call: exp.Expr, by: list[exp.Expr]) -> exp.Window:
    window = exp.Window(this=call.copy(), partition_by=[key.copy() for key in by])
    window.meta[_IN_ORDER] = True
    return window


def _lags(call: exp.Anonymous) -> list[exp.Expr]:
    given = call.expressions
    bounds = [int(one.this) for one in given[1:3] if isinstance(one, exp.Literal) and one.this.isdecimal()]
    if len(given) not in (3, 4) or len(bounds) != 2 or not 0 < bounds[0] <= bounds[1] <= _MOST:
        raise SqlError("lags takes other arguments", where=place_of(call, "SELECT"), fix=_FORM)
    default = given[3] if given[3:] else None
    return [
        exp.Lag(this=given[0].copy(), offset=exp.Literal.number(distance), default=default and default.copy())
        for distance in range(bounds[0], bounds[1] + 1)
    ]
