"""ALTER STREAM and TABLE: the columns by which records are read."""

from __future__ import annotations

from changelog.errors import Unsupported
from sql.syntax.cursor import Cursor
from sql.syntax.statements import AddColumn, Alteration, AlterStream, DropColumn, RenameColumn

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


def alter(cursor: Cursor) -> AlterStream:
    """``ALTER STREAM [IF EXISTS] s ADD COLUMN [IF NOT EXISTS] c type [..], DROP COLUMN [IF EXISTS] d,
    RENAME COLUMN [IF EXISTS] e TO f``."""
    cursor.clause = "ALTER"
    cursor.expect("ALTER")
    cursor.expect("STREAM", "MUTABLE STREAM", "EXTERNAL STREAM", "TABLE", "SOURCE")
    if_exists = bool(cursor.accept("IF EXISTS"))
    return AlterStream(cursor.path("the name of a stream"), cursor.listed(lambda: _action(cursor)), if_exists)


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
