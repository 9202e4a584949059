"""CREATE: which one it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dovetail.changelog.errors import Unsupported
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.commands import WITH_DATA
from dovetail.sql.syntax.grammar.dictionaries import create_dictionary
from dovetail.sql.syntax.grammar.external_tables import create_external_table
from dovetail.sql.syntax.grammar.functions import create_function
from dovetail.sql.syntax.grammar.hints.other_statements import refuse_created
from dovetail.sql.syntax.grammar.hints.pasted_queries import refuse_sink
from dovetail.sql.syntax.grammar.schema_statements import create_schema
from dovetail.sql.syntax.grammar.settings import NO_SECRETS
from dovetail.sql.syntax.grammar.streams import create_stream
from dovetail.sql.syntax.grammar.tables import create_index, create_table
from dovetail.sql.syntax.grammar.views import create_view
from dovetail.sql.syntax.statements import (
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateSchema,
    CreateStream,
    CreateTableAs,
    CreateView,
)

_REFUSED = {
    "DATABASE": 'there is one database, "default"',
    "SECRET": NO_SECRETS,
    "AGGREGATE": "CREATE FUNCTION for a scalar; docs/aggregates.md lists the aggregates",
}
_REPLACED: Mapping[str, Callable[[Cursor, bool], CreateDictionary | CreateFunction]] = {
    "EXTERNAL TABLE": create_external_table,
    "DICTIONARY": create_dictionary,
    "FUNCTION": create_function,
}
_NOT_REPLACED: Mapping[str, Callable[[Cursor], CreateIndex | CreateSchema]] = {
    "INDEX": create_index,
    "SCHEMA": create_schema,
}
"""What has no topic of its own: may OR REPLACE stand before it?"""


def create(
    cursor: Cursor,
) -> CreateStream | CreateTableAs | CreateView | CreateIndex | CreateDictionary | CreateFunction | CreateSchema:
    cursor.clause = "CREATE"
    cursor.expect("CREATE")
    or_replace = bool(cursor.accept("OR REPLACE"))
    refuse_created(cursor)
    if cursor.accept("SINK"):
        cursor.clause = "CREATE SINK"
        refuse_sink(cursor)
    if words := cursor.refused(_REFUSED):
        cursor.fail(f"CREATE {words} is not taken", fix=_REFUSED[words], kind=Unsupported)
    found = cursor.expect(
        "STREAM",
        "MUTABLE STREAM",
        "EXTERNAL STREAM",
        "RANDOM STREAM",
        "TABLE",
        "SOURCE",
        "MATERIALIZED VIEW",
        "VIEW",
        *_REPLACED,
        *_NOT_REPLACED,
    )
    if found in _REPLACED:
        return _REPLACED[found](cursor, or_replace)
    if found in _NOT_REPLACED:
        if or_replace:
            cursor.fail(f"there is no CREATE OR REPLACE {found}", fix=f"DROP {found} IF EXISTS before it")
        return _NOT_REPLACED[found](cursor)
    # An order for this once, and no part of the definition: the text that the catalog keeps ends before it.
    with_data = cursor.accept_last(WITH_DATA)
    made = _over_a_topic(cursor, found, or_replace)
    if isinstance(made, CreateTableAs):
        if with_data:
            cursor.fail("a table that a query fills begins empty in any case", fix="leave WITH DATA out")
        return made
    return replace(made, with_data=with_data)


def _over_a_topic(cursor: Cursor, found: str, or_replace: bool) -> CreateStream | CreateTableAs | CreateView:
    if found.endswith("STREAM"):
        return create_stream(cursor, found.removesuffix("STREAM").strip(), or_replace)
    if found in ("TABLE", "SOURCE"):
        return create_table(cursor, or_replace, source=found == "SOURCE")
    return create_view(cursor, or_replace, materialized=found == "MATERIALIZED VIEW")
