"""A statement as far as the catalog tells whether it can be run, and what it makes. Nothing is run."""

from __future__ import annotations

from dataclasses import replace

from dovetail.changelog.schema import Kind, StreamSchema
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.services.lsp.file_catalog import FileCatalog, NameChange
from dovetail.services.session.assignment import assigned_rows
from dovetail.services.session.functions import expect_new_meaning
from dovetail.services.session.rows import (
    changeable,
    filled_columns,
    in_dialect_of,
    matching,
    snapshot_for,
    with_columns,
    writable,
)
from dovetail.services.session.table_as import table_of
from dovetail.services.session.typed_rows import typed_rows
from dovetail.services.session.views import expect_endless
from dovetail.sql.bind.reading import with_dialect
from dovetail.sql.catalog import Relation, What
from dovetail.sql.catalog.records import RelationDefinition
from dovetail.sql.catalog.written_streams import as_text
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.relations import Stream
from dovetail.sql.stream_settings import expect_settings
from dovetail.sql.syntax.alterations import altered
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import (
    AlterQuery,
    AlterStream,
    AlterView,
    Computed,
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateStream,
    CreateTableAs,
    CreateView,
    Delete,
    Drop,
    DryRun,
    Explain,
    ExplainAlter,
    Insert,
    Rollback,
    Select,
    ShowCreate,
    Statement,
    Update,
    Why,
)


def dry_bound(statement: Statement, catalog: FileCatalog, rules: Rules) -> NameChange | None:
    """What the statement makes. Raises DovetailError where it cannot be run.

    rules  of a query that reads no relation
    """
    if (
        isinstance(statement, AlterStream | AlterView | Drop)
        and statement.if_exists
        and not catalog.has(statement.name)
    ):
        return None
    match statement:
        case CreateStream() | CreateDictionary() | CreateFunction() | CreateView() | CreateIndex():
            return None if catalog.taken(statement) else _created(statement, catalog, rules)
        case CreateTableAs():
            rows = snapshot_for(catalog, statement.name, Rules.RISINGWAVE, statement.query)
            table = replace(table_of(statement, rows), if_not_exists=statement.if_not_exists)
            return None if catalog.taken(table) else _made(table)
        case AlterStream() if isinstance(before := catalog.get(statement.name).definition, CreateStream):
            return _made(altered(before, statement.actions))
        case Drop():
            return _dropped(statement, catalog)
        case Insert() | Update() | Delete():
            _written(statement, catalog)
        case _:
            _asked(statement, catalog, rules)
    return None


def _asked(statement: Statement, catalog: FileCatalog, rules: Rules) -> None:
    match statement:
        case Select():
            _planned(statement, catalog, rules)
        case Explain():
            _planned(statement.statement, catalog, rules)
        case AlterQuery() | DryRun() | ExplainAlter():
            _planned(statement.view, catalog, rules)
        case AlterView() | Rollback() | ShowCreate():
            catalog.get(statement.name)
        case Why():
            catalog.get(statement.view)


def _created(statement: RelationDefinition, catalog: FileCatalog, rules: Rules) -> NameChange:
    match statement:
        case CreateStream():
            expect_settings(statement)
            return NameChange(statement.name) if statement.of_schema else _made(statement)
        case CreateDictionary():
            definition_of(statement)
            return _made(statement) if statement.columns else NameChange(statement.name)
        case CreateFunction():
            expect_new_meaning(statement)
        case CreateIndex():
            catalog.get(statement.stream)
        case CreateView():
            plan = _planned(statement, catalog, rules)
            if statement.materialized and not plan.constant:
                expect_endless(statement, plan, None)
            return _made(statement, as_text(_stream(plan)))
    return _made(statement)


def _made(definition: RelationDefinition, written: str = "") -> NameChange:
    return NameChange(definition.name, Relation(definition.name, What.of(definition), definition.text, 0, written))


def _stream(plan: Plan) -> Stream:
    if not plan.bounded or plan.constant:
        return plan.stream()
    return Stream(StreamSchema(plan.name, plan.declared, Kind.CHANGELOG), plan.name, plan.rules, trusted=True)


def _planned(statement: Select | CreateView, catalog: FileCatalog, rules: Rules) -> Plan:
    name = statement.name if isinstance(statement, CreateView) else "select"
    return plan_query(name, with_dialect(statement, catalog, rules), catalog)


def _dropped(statement: Drop, catalog: FileCatalog) -> NameChange | None:
    if statement.what in ("topic", "schema"):
        return None
    catalog.get(statement.name)
    return NameChange(statement.name, dropped=True)


def _written(statement: Insert | Update | Delete, catalog: FileCatalog) -> None:
    if not isinstance(statement, Insert):
        stream = changeable(catalog, statement.stream, "UPDATE" if isinstance(statement, Update) else "DELETE")
        matching(catalog, stream, in_dialect_of(stream, statement))  # type: ignore[type-var] # either of the two
        return
    stream = writable(catalog, statement.stream)
    statement = with_columns(stream.schema, statement)
    if statement.query is not None:
        query = snapshot_for(catalog, stream.schema.name, stream.rules, statement.query)
        filled_columns(stream.schema, statement.columns, query)
        return
    given = in_dialect_of(stream, statement)
    rows = [row for row in given.rows if not any(isinstance(value, Computed) for value in row)]
    of_table = stream.rules is Rules.RISINGWAVE
    typed_rows(stream.schema, given.columns, assigned_rows(stream.schema, given.columns, rows) if of_table else rows)
