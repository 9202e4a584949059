"""EMIT ON WINDOW CLOSE over a materialized view that is read alone: the query is bound as if the view were a plain one.

So what the view itself lets go can wait until it is final. Groups over a view whose topic tells a watermark need
nothing of this.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dovetail.changelog.errors import UnknownName
from dovetail.sql.bind.aggregates import is_grouped
from dovetail.sql.bind.reading import inlined_reading
from dovetail.sql.query_settings import Value
from dovetail.sql.relations import Relations
from dovetail.sql.syntax.calls import WINDOWS, function_name
from dovetail.sql.syntax.statements import CreateView

_OF_OUTPUT = ("output", "output_format", "buckets", "late_topic")
"""Settings that are about the topics and the state of a view rather than about its rows."""


def inlined(
    query: exp.Query, catalog: Relations, tells: Callable[[CreateView], bool]
) -> tuple[exp.Query, dict[str, Value]]:
    """The query with the materialized view that it reads alone as a CTE, and the settings of that view; as it is where
    it has groups of its own and the view ``tells`` a watermark that may close them.
    """
    if not isinstance(query, exp.Select) or query.args.get("joins") or query.ctes:
        return query, {}
    source = query.args.get("from_") or query.args.get("from")
    name = "" if source is None else _read_by(source.this)
    try:
        view = catalog.get(name).definition if name else None
    except UnknownName:
        return query, {}
    if not isinstance(view, CreateView) or (is_grouped(query) and tells(view)):
        return query, {}
    inner, settings = inlined(inlined_reading(view, catalog)[0], catalog, tells)
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
