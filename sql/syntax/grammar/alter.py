"""ALTER STREAM and TABLE: the columns by which records are read; ALTER VIEW: the settings of a query, or another."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from sqlglot import exp

from dovetail.changelog.errors import TextPlace, Unsupported
from dovetail.sql.syntax.cursor import Cursor, word_of
from dovetail.sql.syntax.grammar.settings import assignments
from dovetail.sql.syntax.grammar.views import view_of_query
from dovetail.sql.syntax.statements import (
    AddColumn,
    Alteration,
    AlterQuery,
    AlterStream,
    AlterView,
    CreateView,
    DropColumn,
    DryRun,
    RenameColumn,
    Rollback,
)

_REFUSED = {
    "RENAME TO": (
        "views and sessions know the stream by its name",
        "CREATE VIEW v AS SELECT * FROM the stream, or SETTINGS topic = '..' in a CREATE of the new name",
    ),
    "MODIFY": (
        "the records that are there were written by the old definition",
        "CREATE OR REPLACE the stream, which keeps its records; those that do not fit become dead letters",
    ),
}
_REFUSED["ALTER"] = _REFUSED["MODIFY"]
_DRY_RUN = "DRY RUN"


def alter(cursor: Cursor) -> AlterStream | AlterQuery | AlterView | Rollback | DryRun:
    """``ALTER STREAM [IF EXISTS] s ADD COLUMN [IF NOT EXISTS] c type [..], DROP COLUMN [IF EXISTS] d,
    RENAME COLUMN [IF EXISTS] e TO f``; ``ALTER VIEW [IF EXISTS] v SET (name = value, ..)``;
    ``ALTER VIEW v AS SELECT .. [DRY RUN]``; ``ALTER VIEW v ROLLBACK``."""
    cursor.clause = "ALTER"
    dry_run = cursor.accept_last(_DRY_RUN)
    cursor.expect("ALTER")
    if cursor.accept("MATERIALIZED VIEW", "VIEW"):
        return _alter_view(cursor, dry_run=dry_run)
    if dry_run:
        _refuse_dry_run(cursor)
    cursor.expect("STREAM", "MUTABLE STREAM", "EXTERNAL STREAM", "TABLE", "SOURCE", "VIEW")
    if_exists = bool(cursor.accept("IF EXISTS"))
    return AlterStream(cursor.path("the name of a stream"), cursor.listed(lambda: _action(cursor)), if_exists)


def explain_alter(cursor: Cursor) -> CreateView:
    """What follows EXPLAIN ALTER: ``[MATERIALIZED] [VIEW] v AS SELECT ..``; the view as it would be."""
    cursor.expect("ALTER")
    cursor.accept("MATERIALIZED VIEW", "VIEW")
    return _with_query(cursor, cursor.path("the name of a view"))


def _with_query(cursor: Cursor, name: str) -> CreateView:
    """With a text that can be read again, as that of a view is."""
    start, before = cursor.offset, f"CREATE MATERIALIZED VIEW {exp.to_identifier(name).sql()} "
    view = view_of_query(cursor, name)
    text = before + cursor.script[start : cursor.tokens[-1].end + 1]
    return replace(view, text=text, spans=tuple(part.moved(len(before) - start) for part in cursor.settings))


def _alter_view(cursor: Cursor, *, dry_run: bool) -> AlterQuery | AlterView | Rollback | DryRun:
    """SET, with brackets or without, as RisingWave has it; MODIFY SETTING, as ClickHouse and Timeplus have it."""
    if_exists = bool(cursor.accept("IF EXISTS"))
    name = cursor.path("the name of a view")
    if if_exists and cursor.at("AS", "(", "ROLLBACK"):
        cursor.fail("IF EXISTS is not taken with another query: what is not there has no rows to change")
    if cursor.at("AS", "("):
        view = _with_query(cursor, name)
        return DryRun(view) if dry_run else AlterQuery(view)
    if dry_run:
        _refuse_dry_run(cursor)
    if cursor.at("RENAME TO"):
        cursor.fail(f"RENAME TO is not taken: {_REFUSED['RENAME TO'][0]}", fix="CREATE VIEW .. AS SELECT * FROM it")
    if cursor.accept("ROLLBACK"):
        return Rollback(name)
    cursor.expect("SET", "MODIFY SETTING", fix="ALTER VIEW v SET (buckets = n); ALTER VIEW v AS SELECT ..")
    wrapped = bool(cursor.accept("("))
    settings = assignments(cursor)
    if wrapped:
        cursor.expect(")")
    return AlterView(name, settings, if_exists)


def _refuse_dry_run(cursor: Cursor) -> NoReturn:
    cursor.fail("a dry run is one of another query of a view", fix="ALTER VIEW v AS SELECT .. DRY RUN")


def _action(cursor: Cursor) -> Alteration:
    for word, (why, fix) in _REFUSED.items():
        if cursor.at(word):
            cursor.fail(f"{word} is not taken: {why}", fix=fix, kind=Unsupported)
    if cursor.accept("ADD COLUMN", "ADD"):
        if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
        start = cursor.offset
        name = cursor.name("a column")
        if not (declared := cursor.nested()):
            cursor.fail(f"expected the type of {name}, found {cursor.found}")
        placed = next((token for token in declared if word_of(token) in ("FIRST", "AFTER")), None)
        if placed is not None and placed is not declared[0]:
            cursor.fail(
                "the members of a record have no order: a new column is the last",
                fix=f"ADD COLUMN {cursor.script[start : placed.start].strip()}",
                kind=Unsupported,
                offset=placed.start,
            )
        declaration = cursor.script[start : declared[-1].end + 1]
        return AddColumn(name, TextPlace.of(declaration, cursor.script, start), if_not_exists)
    if cursor.accept("RENAME COLUMN", "RENAME"):
        if_exists = bool(cursor.accept("IF EXISTS"))
        name = cursor.name("a column")
        cursor.expect("TO")
        return RenameColumn(name, cursor.name("the new name of the column"), if_exists)
    cursor.expect("ADD COLUMN", "RENAME COLUMN", "DROP COLUMN", "DROP")
    if_exists = bool(cursor.accept("IF EXISTS"))
    return DropColumn(cursor.name("a column"), if_exists)
