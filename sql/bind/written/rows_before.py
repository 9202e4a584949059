"""lag() and lags() of Timeplus without OVER: of the rows that arrived before.

lag(v, 2)          lag(v, 2) OVER (ORDER BY _tp_sn)
lags(v, 1, 3)      [lag(v, 1) OVER (..), lag(v, 2) OVER (..), lag(v, 3) OVER (..)]

Rows arrive in the order of ``_tp_sn``; where a subquery has not kept it, of ``_tp_time``. Of groups of windows the one
before is that of the window before.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.schema import SEQUENCE, TIME
from dovetail.sql.bind.aggregates import selected_item
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.syntax.calls import function_name

_IN_ORDER = "in the order of arrival"
_WINDOW_BOUNDS = ("window_start", "window_end")
_MOST = 1000
_FORM = "lags(v, 1, 3): the first and the last distance, then what stands for no row"


def over_rows_before(query: exp.Query) -> exp.Query:
    """The query with a window around each such call. Raises SqlError for arguments that lags() does not take."""
    for select in query.find_all(exp.Select):
        clauses = [*select.expressions, *filter(None, [select.args.get("qualify")])]
        calls = [call for clause in clauses for call in clause.find_all(exp.Lag, exp.Anonymous)]
        # Those within others first: each is copied into its window.
        for call in reversed(calls):
            whole = _with_options(call)
            if call.find_ancestor(exp.Select) is not select or isinstance(whole.parent, exp.Window):
                continue
            if isinstance(call, exp.Lag):
                whole.replace(over_arrival(whole))
            elif function_name(call) == "lags":
                call.replace(exp.Array(expressions=[over_arrival(lag) for lag in _lags(call)]))
    return query


def over_arrival(call: exp.Expr, by: Sequence[exp.Expr] = ()) -> exp.Window:
    """The call over rows in the order in which they arrived, which ``ordered_by_arrival`` fills in."""
    window = exp.Window(this=call.copy(), partition_by=[key.copy() for key in by])
    window.meta[_IN_ORDER] = True
    return window


def ordered_by_arrival(select: exp.Select, scope: Scope, *, grouped: bool) -> None:
    """Has the windows of ``over_arrival`` in ``select`` their order. Raises Unsupported where rows have none."""
    for window in select.find_all(exp.Window):
        if window.find_ancestor(exp.Select) is not select or not window.meta.pop(_IN_ORDER, False):
            continue
        order = next(iter(_window_bounds(select, scope) if grouped else _arrival(scope)), None)
        if order is None:
            raise Unsupported(
                "rows are taken as they arrived, and these have no order of arrival",
                where=place_of(window.this, "SELECT"),
                fix=f"select {TIME} in the subquery or the view; or say the order: lag(v) OVER (ORDER BY t)",
            )
        window.set("order", exp.Order(expressions=[exp.Ordered(this=order.copy())]))


def _arrival(scope: Scope) -> list[exp.Expr]:
    """The columns that tell when a row arrived. Of a join there are several, of which none does."""
    named = [[column for column in scope.columns if column.name == name] for name in (SEQUENCE, TIME)]
    return [exp.column(found[0].name, table=found[0].table or None) for found in named if len(found) == 1]


def _window_bounds(select: exp.Select, scope: Scope) -> list[exp.Expr]:
    """The keys of groups that are bounds of windows."""
    group = select.args.get("group")
    keys = [selected_item(key, select, scope, "GROUP BY") for key in (group.expressions if group else ())]
    return [key for key in keys if isinstance(key, exp.Column) and key.name in _WINDOW_BOUNDS]


def _with_options(call: exp.Expr) -> exp.Expr:
    """The call with the IGNORE NULLS and FILTER around it."""
    while isinstance(call.parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.parent
    return call


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
