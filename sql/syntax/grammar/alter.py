"""ALTER STREAM and TABLE: the columns by which records are read; ALTER VIEW: the settings of a query, or another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from sqlglot import exp

from dovetail.changelog.errors import TextPlace, Unsupported
from dovetail.sql.syntax.cursor import Cursor, word_of
from dovetail.sql.syntax.grammar.hints.filled_forms import written
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

_WRITTEN = "the records that are there were written by the old definition"
_OF_IT = "settings are of the declaration"
_DECLARED = "keys and indexes are declared with the columns"
_REPLACED = (
    "CREATE OR REPLACE STREAM {name} (k int, ..), with all of its columns: it keeps its records, and those that do not "
    "fit become dead letters; drop the views that read it before, and create them again"
)
_INDEX = "CREATE INDEX i ON {name} (k); a key: CREATE OR REPLACE TABLE {name} (k int, .., PRIMARY KEY (k))"
_SETTINGS = "CREATE OR REPLACE STREAM {name} (k int, ..) SETTINGS name = value, with all of its columns"
_REFUSED: Mapping[str, tuple[str, str]] = {
    "RENAME TO": (
        "views and sessions know it by its name",
        "CREATE VIEW {other} AS SELECT * FROM {name};  -- or CREATE it under that name, with SETTINGS topic = '..'",
    ),
    **dict.fromkeys(("MODIFY SETTING", "RESET SETTING", "SETTING", "SET"), (_OF_IT, _SETTINGS)),
    **dict.fromkeys(("MODIFY", "ALTER", "CHANGE"), (_WRITTEN, _REPLACED)),
    **dict.fromkeys(("ADD PRIMARY KEY", "ADD INDEX"), (_DECLARED, _INDEX)),
    **dict.fromkeys(("DROP CONSTRAINT", "DROP PRIMARY KEY"), (_DECLARED, _REPLACED)),
    "DROP INDEX": ("an index has a statement of its own", "DROP INDEX i"),
    "OWNER": ("a stream has no owner", "dovetail user add ann --role writer, in a shell"),
    "REFRESH SCHEMA": ("columns are added by their names", "ALTER STREAM {name} ADD COLUMN c int"),
}
_KINDS = {
    "DICTIONARY": "CREATE OR REPLACE DICTIONARY d (k int, ..) PRIMARY KEY k SOURCE(..) LAYOUT(..) LIFETIME(..)",
    "FUNCTION": "CREATE OR REPLACE FUNCTION f(n int) RETURNS int LANGUAGE python AS $$ .. $$",
    "INDEX": "DROP INDEX i, and CREATE INDEX i ON t (k)",
    "SYSTEM": "environment variables, docs/configuration.md",
    **dict.fromkeys(("DATABASE", "SCHEMA"), "CREATE SCHEMA s, and CREATE what is in it again"),
    **dict.fromkeys(("USER", "ROLE"), "dovetail user add ann --role reader, in a shell"),
}
"""What is not altered -> what does the same."""
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
    if kind := cursor.refused(_KINDS):
        cursor.fail(f"ALTER {kind} is not taken", fix=_KINDS[kind], kind=Unsupported)
    cursor.expect("STREAM", "MUTABLE STREAM", "EXTERNAL STREAM", "TABLE", "SOURCE", "VIEW")
    if_exists = bool(cursor.accept("IF EXISTS"))
    stream = cursor.path("the name of a stream")
    return AlterStream(stream, cursor.listed(lambda: _action(cursor, written(stream))), if_exists)


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
        cursor.fail(
            f"RENAME TO is not taken: {_REFUSED['RENAME TO'][0]}", fix=f"CREATE VIEW w AS SELECT * FROM {written(name)}"
        )
    if cursor.accept("ROLLBACK"):
        return Rollback(name)
    if cursor.refused(["MODIFY QUERY"]):
        cursor.index += 2
        query = cursor.script[cursor.offset : cursor.tokens[-1].end + 1]
        cursor.fail("MODIFY QUERY is AS here", fix=f"ALTER VIEW {written(name)} AS {query}", kind=Unsupported)
    cursor.expect("SET", "MODIFY SETTING", fix="ALTER VIEW v SET (buckets = n); ALTER VIEW v AS SELECT ..")
    wrapped = bool(cursor.accept("("))
    settings = assignments(cursor)
    if wrapped:
        cursor.expect(")")
    return AlterView(name, settings, if_exists)


def _refuse_dry_run(cursor: Cursor) -> NoReturn:
    cursor.fail("a dry run is one of another query of a view", fix="ALTER VIEW v AS SELECT .. DRY RUN")


def _action(cursor: Cursor, stream: str) -> Alteration:
    if words := cursor.refused(_REFUSED):
        why, fix = _REFUSED[words]
        other = cursor.script[cursor.tokens[-1].start : cursor.tokens[-1].end + 1]
        cursor.fail(f"{words} is not taken: {why}", fix=fix.format(name=stream, other=other), kind=Unsupported)
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
