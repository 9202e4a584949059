"""CREATE SCHEMA, DROP SCHEMA: a schema is the first part of the names of relations, ``sales.orders``."""

from __future__ import annotations

from dovetail.sql.syntax.calls import SCHEMAS_OF_ALL
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.statements import CreateSchema, Drop


def create_schema(cursor: Cursor) -> CreateSchema:
    """``CREATE SCHEMA [IF NOT EXISTS] s``, behind its first two words."""
    cursor.clause = "CREATE SCHEMA"
    if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
    offset, name = cursor.offset, cursor.name("the name of a schema")
    if name.lower() in SCHEMAS_OF_ALL:
        cursor.fail(f'there is a schema "{name}" already', fix="another name", offset=offset)
    return CreateSchema(name, if_not_exists)


def drop_schema(cursor: Cursor) -> Drop:
    """``DROP SCHEMA [IF EXISTS] s [CASCADE | RESTRICT] [WITH DATA]``, behind its first two words."""
    if_exists = bool(cursor.accept("IF EXISTS"))
    name = cursor.name("the name of a schema")
    cascade = cursor.accept("CASCADE", "RESTRICT") == "CASCADE"
    return Drop("schema", name, if_exists, cascade, bool(cursor.accept("WITH DATA")))
