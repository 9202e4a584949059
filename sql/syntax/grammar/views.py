"""CREATE [MATERIALIZED] VIEW."""

from __future__ import annotations

from dataclasses import replace

from dovetail.changelog.errors import SyntaxFault
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.queries import first_of, query_with_tail
from dovetail.sql.syntax.statements import CreateView


def create_view(cursor: Cursor, or_replace: bool, materialized: bool) -> CreateView:
    """What follows CREATE MATERIALIZED VIEW: ``[IF NOT EXISTS] v [INTO target] [(a, b)] AS SELECT ..``."""
    cursor.clause = "CREATE MATERIALIZED VIEW" if materialized else "CREATE VIEW"
    if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
    name = cursor.path("the name of a view")
    into = cursor.path("the name of a stream") if cursor.accept("INTO") else None
    if into is not None and not materialized:
        cursor.fail(
            "a view that is not materialized writes to no stream", fix="CREATE MATERIALIZED VIEW", kind=SyntaxFault
        )
    view = view_of_query(cursor, name)
    return replace(view, into=into, materialized=materialized, if_not_exists=if_not_exists, or_replace=or_replace)


def view_of_query(cursor: Cursor, name: str) -> CreateView:
    """What follows the name of a materialized view: ``[(a, b)] AS SELECT .. [EMIT ..] [SETTINGS ..]``."""
    names = cursor.wrapped(lambda: cursor.name("the name of a column")) if cursor.at("(") else ()
    cursor.expect("AS")
    readings, tail = query_with_tail(cursor)
    return CreateView(
        name=name,
        query=first_of(readings),
        readings=readings,
        columns=names,
        emit=tail.emit,
        settings=tail.settings,
    )
