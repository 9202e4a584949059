"""Window functions of a SELECT: nodes of the plan that compute them, with a Map below for what they read.

SELECT k, v - lag(v) OVER (PARTITION BY k ORDER BY upper(s)) AS d .. QUALIFY d > 1

Map    .., __w0 = upper(s)
Over   by k: lag(v) OVER (ORDER BY __w0, ..)
Map    where v - lag .. > 1
the select list over its columns

All windows with one PARTITION BY are one node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.joins.state.order import is_ordered
from dovetail.sql.bind.partitions.ties import is_tie
from dovetail.sql.expressions.expression import Expr, Structure, as_formed, column_named, structure
from dovetail.sql.expressions.partitions.window_calls import arguments_of, called_in, frame_kind, name_of
from dovetail.sql.plan.column_names import unused
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import Map, Node, Over

PART = "__w"
"""What the names of computed columns begin with that windows read."""
_SUPPORTED = frozenset(
    {
        *("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "first", "last"),
        *("nth_value", "count", "sum", "avg", "min", "max"),
    }
)


@dataclass
class WindowFunctions:
    """Those over the rows of ``input``. ``seen``: their columns, and those of the query around, which none may read."""

    input: Node
    seen: pa.Schema
    computed: dict[str, Expr] = field(default_factory=dict)
    calls: dict[tuple[str, ...], dict[str, Expr]] = field(default_factory=dict)
    called: dict[Structure, str] = field(default_factory=dict)
    """Each window -> the column that holds its value."""

    def over(self, tree: exp.Expr, place: str) -> exp.Expr:
        """An expression with a column in the place of each window."""

        def replaced(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Window):
                return node
            return column_named(self._column_of(node, place))

        return as_formed(tree.transform(replaced), tree)

    def node(self) -> Node:
        """The rows with the values of all windows that were asked for."""
        node = self.input
        if self.computed:
            node = Map(node, (*identity(node), *self.computed.items()))
        for by, calls in self.calls.items():
            node = Over(node, by, tuple(calls.items()))
        return node

    def _column_of(self, window: exp.Window, place: str) -> str:
        known = structure(window)
        if known in self.called:
            return self.called[known]
        _refuse(window, place)
        by = tuple(dict.fromkeys(self._part(one, place) for one in window.args.get("partition_by") or ()))
        call = self._over_columns(window, place)
        taken = {*self.input.schema.names, *self.called.values()}
        name = unused(f"{name_of(called_in(window))}() over {','.join(by) or 'all'}", taken, mark=" #")
        self.called[known] = name
        self.calls.setdefault(by, {})[name] = Expr.over(call, self._schema, place)
        return name

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([*self.input.schema, *(pa.field(name, expr.type) for name, expr in self.computed.items())])

    def _over_columns(self, window: exp.Window, place: str) -> exp.Window:
        """``window`` over columns of the rows, without PARTITION BY."""
        made = window.copy()
        made.set("partition_by", [])
        if isinstance(made.this, exp.Filter):
            condition = made.this.expression.this
            condition.replace(column_named(self._part(condition, place)))
        call = called_in(made)
        for argument in arguments_of(call):
            if argument.find(exp.Column) is not None:
                argument.replace(column_named(self._part(argument, place)))
        for order in (made.args.get("order"), call.this if isinstance(call.this, exp.Order) else None):
            if order is not None:
                self._order_by_columns(order, place)
        return made

    def _order_by_columns(self, order: exp.Order, place: str) -> None:
        terms = []
        for term in order.expressions:
            column = self._part(term.this, place)
            if is_ordered(self._schema.field(column).type):
                term.set("this", column_named(column))
                terms.append(term)
            elif not is_tie(term):
                raise Unsupported(
                    f"rows have no order by {Expr(term.this, pa.null()).readable}: {self._schema.field(column).type}",
                    where=place,
                    fix="order by a number, a time or a text: ORDER BY length(a)",
                )
        if terms:
            order.set("expressions", terms)
        else:
            order.pop() if order.arg_key == "order" else order.replace(order.this)

    def _part(self, tree: exp.Expr, place: str) -> str:
        """The column that holds what a window reads: one of the rows itself, if it is a plain one."""
        expr = Expr.over(tree, self.seen, place)
        if expr.plain is not None and expr.plain in self.input.schema.names:
            return expr.plain
        if not set(expr.columns) <= set(self.input.schema.names):
            raise Unsupported(
                "a window function that reads a column of the query around is not supported",
                where=place,
                fix="compute it in FROM: FROM (SELECT *, row_number() OVER (..) AS n FROM r) AS x, and compare there",
            )
        known = next((name for name, other in self.computed.items() if other == expr), None)
        if known is None:
            known = f"{PART}{len(self.computed)}"
            self.computed[known] = expr
        return known


def _refuse(window: exp.Window, place: str) -> None:
    call = called_in(window)
    name = name_of(call)
    if name not in _SUPPORTED:
        raise Unsupported(
            f"{name}() OVER (..) is not supported over streams",
            where=place,
            fix=f"join the groups: FROM l JOIN (SELECT k, {name}(n) AS m FROM l GROUP BY k) AS g ON l.k = g.k",
        )
    if call.find(exp.Distinct) is not None:
        raise Unsupported(
            f"DISTINCT in {name}() OVER (..) is not supported over streams",
            where=place,
            fix=f"join the groups: FROM l JOIN (SELECT k, {name}(DISTINCT n) AS m FROM l GROUP BY k) AS g ON l.k = g.k",
        )
    spec, order = window.args.get("spec"), window.args.get("order")
    terms = 0 if order is None else len(order.expressions)
    sides = () if spec is None else (spec.args.get("start"), spec.args.get("end"))
    measured = frame_kind(window) == "RANGE" and any(isinstance(side, exp.Expr) for side in sides)
    if measured and terms != 1:
        raise Unsupported(
            f"a frame of RANGE that is so wide needs one term of ORDER BY, and there are {terms}",
            where=place,
            fix="order by one column: sum(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW), or count "
            "rows: ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
        )
    if name == "nth_value" and frame_kind(window) != "ROWS":
        raise Unsupported(
            "nth_value() over a frame of RANGE is not supported over streams",
            where=place,
            fix="nth_value(n, 2) OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        )
