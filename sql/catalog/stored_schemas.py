"""Schemas in the catalog: the first parts of the names of relations, and those that were made with nothing in them."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dovetail.sql.catalog import stored_relations
from dovetail.sql.catalog.metadata_tables import SCHEMAS
from dovetail.sql.catalog.records import Relation


def listed(connection: Connection) -> list[str]:
    made = connection.execute(sa.select(SCHEMAS.c.name)).scalars()
    names = stored_relations.names(connection)
    return sorted({*made, *(name.partition(".")[0] for name in names if "." in name)})


def inside(connection: Connection, schema: str) -> list[Relation]:
    """In order of creation."""
    return [one for one in stored_relations.listed(connection) if one.name.startswith(f"{schema}.")]


def add(connection: Connection, name: str) -> None:
    connection.execute(SCHEMAS.insert().values(name=name))


def remove(connection: Connection, name: str) -> None:
    connection.execute(SCHEMAS.delete().where(SCHEMAS.c.name == name))
