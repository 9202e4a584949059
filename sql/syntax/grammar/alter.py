"""ALTER STREAM and TABLE: the columns by which records are read; ALTER VIEW: the settings of its query."""

from __future__ import annotations

from dovetail.changelog.errors import Unsupported
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.settings import assignments
from dovetail.sql.syntax.statements import AddColumn, Alteration, AlterStream, AlterView, DropColumn, RenameColumn

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


def alter(cursor: Cursor) -> AlterStream | AlterView:
    """``ALTER STREAM [IF EXISTS] s ADD COLUMN [IF NOT EXISTS] c type [..], DROP COLUMN [IF EXISTS] d,
    RENAME COLUMN [IF EXISTS] e TO f``; ``ALTER VIEW [IF EXISTS] v SET (name = value, ..)``."""
    cursor.clause = "ALTER"
    cursor.expect("ALTER")
    if cursor.accept("MATERIALIZED VIEW", "VIEW"):
        return _alter_view(cursor)
    cursor.expect("STREAM", "MUTABLE STREAM", "EXTERNAL STREAM", "TABLE", "SOURCE", "VIEW")
    if_exists = bool(cursor.accept("IF EXISTS"))
    return AlterStream(cursor.path("the name of a stream"), cursor.listed(lambda: _action(cursor)), if_exists)


def _alter_view(cursor: Cursor) -> AlterView:
    """SET, with brackets or without, as RisingWave has it; MODIFY SETTING, as ClickHouse and Timeplus have it."""
    if_exists = bool(cursor.accept("IF EXISTS"))
    name = cursor.path("the name of a view")
    if cursor.at("RENAME TO"):
        cursor.fail(f"RENAME TO is not taken: {_REFUSED['RENAME TO'][0]}", fix="CREATE VIEW .. AS SELECT * FROM it")
    cursor.expect("SET", "MODIFY SETTING", fix="ALTER VIEW v SET (buckets = n)")
    wrapped = bool(cursor.accept("("))
    settings = assignments(cursor)
    if wrapped:
        cursor.expect(")")
    return AlterView(name, settings, if_exists)


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
        return AddColumn(name, cursor.script[start : declared[-1].end + 1], if_not_exists)
    if cursor.accept("RENAME COLUMN", "RENAME"):
        if_exists = bool(cursor.accept("IF EXISTS"))
        name = cursor.name("a column")
        cursor.expect("TO")
        return RenameColumn(name, cursor.name("the new name of the column"), if_exists)
    cursor.expect("ADD COLUMN", "RENAME COLUMN", "DROP COLUMN", "DROP")
    if_exists = bool(cursor.accept("IF EXISTS"))
    return DropColumn(cursor.name("a column"), if_exists)
