"""Workers as rows of the catalog, within a transaction that the caller has begun."""

from __future__ import annotations

from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from dovetail.sql.catalog.metadata_tables import WORKERS
from dovetail.sql.catalog.records import Worker


def put(connection: Connection, worker: Worker) -> None:
    """The worker as it is now, in the place of what was known of it."""
    remove(connection, worker.id)
    lists = {"queries": list(worker.queries), "secrets": None if worker.secrets is None else list(worker.secrets)}
    connection.execute(WORKERS.insert().values(asdict(worker) | lists))


def seen(connection: Connection, since_ms: int) -> list[Worker]:
    rows = sa.select(WORKERS).where(WORKERS.c.seen_ms >= since_ms).order_by(WORKERS.c.id)
    return [_worker(row) for row in connection.execute(rows).mappings()]


def _worker(row: RowMapping) -> Worker:
    secrets = None if row["secrets"] is None else tuple(row["secrets"])
    return Worker(**{**row, "queries": tuple(row["queries"]), "secrets": secrets})


def remove(connection: Connection, worker_id: str) -> None:
    connection.execute(WORKERS.delete().where(WORKERS.c.id == worker_id))
