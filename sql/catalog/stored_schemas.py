"""Schemas in the catalog: the first parts of the names of relations, and those that were made with nothing in them."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dovetail.sql.catalog.metadata_tables import RELATIONS, SCHEMAS


def listed(connection: Connection) -> list[str]:
    made = connection.execute(sa.select(SCHEMAS.c.name)).scalars()
    names = connection.execute(sa.select(RELATIONS.c.name)).scalars()
    return sorted({*made, *(name.partition(".")[0] for name in names if "." in name)})


def add(connection: Connection, name: str) -> None:
    connection.execute(SCHEMAS.insert().values(name=name))


def remove(connection: Connection, name: str) -> None:
    connection.execute(SCHEMAS.delete().where(SCHEMAS.c.name == name))
