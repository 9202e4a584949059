"""CREATE TABLE .. AS: a table with the rows that a query gives now."""

from __future__ import annotations

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.wording import counted
from dovetail.services.session.context import Context
from dovetail.services.session.if_not_exists import exists_already
from dovetail.services.session.result import Done
from dovetail.services.session.rows import insert_answer, snapshot_for
from dovetail.services.session.schemas.type_texts import type_text
from dovetail.services.session.streams import create_stream, differences
from dovetail.sql.catalog import Relation
from dovetail.sql.compile.snapshot import Snapshot
from dovetail.sql.syntax.grammar.hints.filled_forms import written
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateStream, CreateTableAs

_WHERE = "CREATE TABLE .. AS"


def create_table_as(context: Context, statement: CreateTableAs) -> Done:
    """The table has a column for each of the query's, of its type. Later rows of what is read are not seen: that is a
    materialized view.
    """
    existing = context.catalog.find(statement.name)
    if existing is not None and statement.if_not_exists:
        return exists_already(existing, _difference(context, statement, existing))
    snapshot = snapshot_for(context.catalog, statement.name, Rules.RISINGWAVE, statement.query)
    created = create_stream(context, table_of(statement, snapshot))
    inserted = insert_answer(context, statement.name, (), snapshot)
    return Done(
        f"{created.text}; {inserted.text}, those that the query gives now: CREATE MATERIALIZED VIEW goes on with what "
        "comes later"
    )


def _difference(context: Context, statement: CreateTableAs, existing: Relation) -> str:
    """In columns alone: the rows are those of another moment. What the query reads may be gone since the first time."""
    try:
        snapshot = snapshot_for(context.catalog, statement.name, Rules.RISINGWAVE, statement.query)
    except SqlError:
        return ""
    return differences(existing.definition, table_of(statement, snapshot))


def table_of(statement: CreateTableAs, snapshot: Snapshot) -> CreateStream:
    """The table that the rows go into."""
    table = parse_one(f"CREATE TABLE {written(statement.name)} ({_columns(statement, snapshot)})", Rules.RISINGWAVE)
    assert isinstance(table, CreateStream)
    return table


def _columns(statement: CreateTableAs, snapshot: Snapshot) -> str:
    """The list of columns that the table is declared with."""
    named, found = statement.columns, tuple(snapshot.columns)
    if len(named) > len(found):
        raise SqlError(
            f"{counted(len(named), 'name')} for {counted(len(found), 'column')} of the query",
            where=_WHERE,
            fix=f"name these: {', '.join(found)}",
        )
    names = (*named, *found[len(named) :])
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SqlError(f'two columns are called "{twice}"', where=_WHERE, fix="give one of them another name with AS")
    texts = []
    for name, kind in zip(names, snapshot.columns.values(), strict=True):
        text, there_is = type_text(kind, Rules.RISINGWAVE)
        if not there_is:
            fix = f"CAST(.. AS ..) gives {name} another type"
            raise Unsupported(f'no column can be of type {text}, as "{name}" would be', where=_WHERE, fix=fix)
        texts.append(f"{written(name)} {text}")
    return ", ".join(texts)
