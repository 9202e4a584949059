"""Queries as rows of the catalog, within a transaction that the caller has begun."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.changelog.suggest import suggestion
from dovetail.sql.catalog.metadata_tables import QUERIES
from dovetail.sql.catalog.records import RUNNER_GONE, Actual, Desired, Query

_LIVING = QUERIES.c.desired != Desired.DROPPED.value


def listed(connection: Connection) -> list[Query]:
    """All, the dropped ones too, in order of creation."""
    return [_read(row) for row in connection.execute(sa.select(QUERIES).order_by(QUERIES.c.id)).mappings()]


def find(connection: Connection, name: str) -> Query | None:
    living = sa.select(QUERIES).where(QUERIES.c.name == name, _LIVING)
    row = connection.execute(living).mappings().first()
    return None if row is None else _read(row)


def fragments(connection: Connection, view: str) -> list[Query]:
    """The living queries that make up ``view``, upstream first; none where it has no query."""
    living = sa.select(QUERIES).where(QUERIES.c.view == view, _LIVING).order_by(QUERIES.c.id)
    return [_read(row) for row in connection.execute(living).mappings()]


def expect(connection: Connection, name: str) -> Query:
    query = find(connection, name)
    if query is None:
        living = sa.select(QUERIES.c.name).where(_LIVING)
        known = connection.execute(living).scalars().all()
        raise UnknownName(f'there is no query "{name}"', fix=suggestion(name, known))
    return query


def add(connection: Connection, query: Query, now_ms: int) -> Query:
    if find(connection, query.name) is not None:
        raise SqlError(f'there is a query "{query.name}" already', fix=f"TERMINATE {query.name}")
    query = replace(query, view=query.view or query.name)
    values = {column.name: getattr(query, column.name) for column in QUERIES.c if column.name != "id"}
    values |= {
        "desired": query.desired.value,
        "actual": query.actual.value,
        "progress": dict(query.progress),
        "created_ms": now_ms,
        "updated_ms": now_ms,
    }
    key = connection.execute(QUERIES.insert().values(values)).inserted_primary_key
    return replace(query, id=int(key[0]) if key else 0, created_ms=now_ms, updated_ms=now_ms)


def update(connection: Connection, query_id: int, **values: Any) -> None:
    connection.execute(QUERIES.update().where(QUERIES.c.id == query_id).values(values))


def exchange(connection: Connection, view: Query, ahead: Query, now_ms: int) -> None:
    """``view`` goes on as the query that ``ahead`` is; that is dropped, with what the former one has left."""
    both = ("sql", "plan", "fingerprint", "checkpoint", "progress", "created_ms")
    taken = {name: getattr(ahead, name) for name in both}
    left = {name: getattr(view, name) for name in both}
    update(connection, view.id, **taken, desired=Desired.RUNNING.value, error="", updated_ms=now_ms)
    update(connection, ahead.id, **left, desired=Desired.DROPPED.value, updated_ms=now_ms)


def note_runner_gone(connection: Connection, engine: str) -> None:
    """None of an engine's queries runs: what ran them has gone, and what it said of them last is not so any more."""
    ran = (QUERIES.c.engine == engine) & (QUERIES.c.actual == Actual.RUNNING.value)
    gone = {"actual": Actual.RECOVERING.value, "error": RUNNER_GONE}
    connection.execute(QUERIES.update().where(ran).values(gone))


def claim(connection: Connection, query_id: int, checkpoint: str) -> str:
    """The checkpoint of a query, which is ``checkpoint`` if it had none."""
    none = QUERIES.update().where(QUERIES.c.id == query_id, QUERIES.c.checkpoint == "")
    connection.execute(none.values(checkpoint=checkpoint))
    return str(connection.execute(sa.select(QUERIES.c.checkpoint).where(QUERIES.c.id == query_id)).scalar() or "")


def switch(connection: Connection, query_id: int, before: str, after: str) -> bool:
    """Whether the checkpoint of a query was ``before``, and is ``after`` now."""
    here = QUERIES.update().where(QUERIES.c.id == query_id, QUERIES.c.checkpoint == before)
    return connection.execute(here.values(checkpoint=after)).rowcount == 1


def remove(connection: Connection, query_id: int) -> None:
    connection.execute(QUERIES.delete().where(QUERIES.c.id == query_id))


def _read(row: RowMapping) -> Query:
    return Query(**{**row, "desired": Desired(row["desired"]), "actual": Actual(row["actual"])})
