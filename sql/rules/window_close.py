"""EMIT ON WINDOW CLOSE: each row once, when it is final.

The rows of a RANGE join are final when the watermarks of both sides have passed the later of their two times, or the
end of their window; padded ones when nothing can match them any more. A materialized view that is read alone is bound
like a plain view then: its topic tells what it holds at every moment, but carries no watermark that would say what of
it is final.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from changelog.errors import UnknownName, Unsupported
from joins.dataflow.ports import JoinKind
from sql.expressions.functions import WINDOWS, function_name
from sql.plan.closing import refuse_open
from sql.plan.joins import Range
from sql.plan.nodes import (
    Aggregate,
    Join,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    Node,
    Scan,
    Static,
    StaticJoin,
    Window,
)
from sql.plan.properties import inputs_of
from sql.query_settings import Value
from sql.relations import Relations
from sql.rules.bands import padded_once
from sql.syntax.statements import CreateView

_FIX = (
    "join within a range of time, or of windows: FROM TUMBLE(a, ts, INTERVAL '1' MINUTE) AS a JOIN TUMBLE(b, ts, "
    "INTERVAL '1' MINUTE) AS b ON a.k = b.k AND a.window_start = b.window_start; or leave EMIT out"
)
_OF_OUTPUT = ("output", "output_format", "buckets", "late_topic")
"""Settings that are about the topics and the state of a view rather than about its rows."""


def closed(node: Node) -> Node:
    """``node`` with its uppermost join closed, or as it is above groups, which are closed by a rule.

    Raises Unsupported where that is no RANGE join, or has no watermarks.
    """
    match node:
        case Map() | StaticJoin() | LookupJoin():
            return replace(node, input=closed(node.input))
        case Join():
            if isinstance(node.how, Range):
                return _closed_range(node, node.how)
            raise _endless()
        case Aggregate():
            refuse_open(node, "EMIT")
            return node
        case Scan() | Static() | Keyed() | Window() | LookupTable():
            raise _endless()
        case _:
            assert_never(node)


def _closed_range(join: Join, how: Range) -> Join:
    if reason := how.bound(inputs_of(join)).never_closed():
        raise Unsupported(
            f"the windows of this join never close: {reason}",
            where="EMIT",
            fix="declare WATERMARK FOR in both tables, SETTINGS watermark_delay = '5s' for streams; or leave EMIT out",
        )
    outer = join.kind not in (JoinKind.INNER, JoinKind.SEMI)
    return replace(join, how=replace(padded_once(join, how, "EMIT") if outer else how, closed=True))


def _endless() -> Unsupported:
    return Unsupported(
        "EMIT ON WINDOW CLOSE is for joins and groups that the watermark closes, and this query has none",
        where="EMIT",
        fix=_FIX,
    )


def opened(query: exp.Query, catalog: Relations) -> tuple[exp.Query, dict[str, Value]]:
    """The query with the materialized view that it reads alone as a CTE, and the settings of that view."""
    if not isinstance(query, exp.Select) or query.args.get("joins") or query.ctes:
        return query, {}
    source = query.args.get("from_") or query.args.get("from")
    name = "" if source is None else _read_by(source.this)
    try:
        view = catalog.get(name).definition if name else None
    except UnknownName:
        return query, {}
    if not isinstance(view, CreateView):
        return query, {}
    inner, settings = opened(view.query, catalog)
    of_rows = {name: value for name, value in view.settings.items() if name not in _OF_OUTPUT}
    return query.copy().with_(name, as_=inner.copy()), {**settings, **of_rows}


def _read_by(table: exp.Expr) -> str:
    """The name of the relation that a FROM item reads, as it is or in windows; '' for any other item."""
    if not isinstance(table, exp.Table) or table.db:
        return ""
    if not isinstance(table.this, exp.Anonymous):
        return table.name
    windowed = function_name(table.this) in WINDOWS and isinstance(table.this.expressions[0], exp.Column)
    return str(table.this.expressions[0].name) if windowed else ""
