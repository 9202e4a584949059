"""Leases as rows of the catalog, within a transaction that the caller has begun.

A lease says who does a work that only one process may do, and until when that is sure without a further word from it.
Each holder has its own **epoch**: whoever renews with an older one has lost the lease, however sure of it it was.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sql.catalog.metadata_tables import LEASES
from sql.catalog.records import Lease


def find(connection: Connection, name: str) -> Lease | None:
    row = connection.execute(sa.select(LEASES).where(LEASES.c.name == name)).mappings().first()
    return None if row is None else Lease(**row)


def take(connection: Connection, wanted: Lease, now_ms: int, after: int | None) -> Lease:
    """The lease that stands: the wanted one, or that of another holder.

    It is free where its time is over, and where its epoch is ``after``: then its holder is known to be gone.
    """
    standing = find(connection, wanted.name)
    if standing is not None and standing.until_ms > now_ms and standing.epoch != after:
        return standing
    taken = replace(wanted, epoch=1 if standing is None else standing.epoch + 1)
    connection.execute(LEASES.delete().where(LEASES.c.name == wanted.name))
    connection.execute(LEASES.insert().values(asdict(taken)))
    return taken


def renew(connection: Connection, held: Lease, until_ms: int) -> bool:
    """Whether it was still held; an expired one that nobody has taken is."""
    ours = (LEASES.c.name == held.name) & (LEASES.c.epoch == held.epoch)
    return connection.execute(LEASES.update().where(ours).values(until_ms=until_ms)).rowcount == 1
