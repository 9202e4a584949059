"""Leaderships as rows of the catalog, within a transaction that the caller has begun.

A leadership says who does a work that only one process may do, and until when that is sure without a further word from
it. Each leader has an **epoch** of its own: whoever renews with an older one leads no more, however sure of it it was.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dovetail.sql.catalog import stored_queries
from dovetail.sql.catalog.metadata_tables import LEADERS
from dovetail.sql.catalog.records import Leadership
from dovetail.sql.engines import Engine


def find(connection: Connection, name: str) -> Leadership | None:
    row = connection.execute(sa.select(LEADERS).where(LEADERS.c.name == name)).mappings().first()
    return None if row is None else Leadership(**row)


def take(connection: Connection, wanted: Leadership, now_ms: int, after: int | None) -> Leadership:
    """The leadership that stands: the wanted one, or that of another process.

    It is free where its time is over, and where its epoch is ``after``: then its holder is known to be gone. The
    queries that a leader before it ran do not run from then on, until the new one says that they do.
    """
    held = find(connection, wanted.name)
    if held is not None and held.until_ms > now_ms and held.epoch != after:
        return held
    taken = replace(wanted, epoch=1 if held is None else held.epoch + 1)
    connection.execute(LEADERS.delete().where(LEADERS.c.name == wanted.name))
    connection.execute(LEADERS.insert().values(asdict(taken)))
    for engine in Engine.of(wanted.name):
        stored_queries.note_runner_gone(connection, engine)
    return taken


def renew(connection: Connection, held: Leadership, until_ms: int) -> bool:
    """Whether it was still held; an expired one that nobody has taken is."""
    ours = (LEADERS.c.name == held.name) & (LEADERS.c.epoch == held.epoch)
    return connection.execute(LEADERS.update().where(ours).values(until_ms=until_ms)).rowcount == 1
