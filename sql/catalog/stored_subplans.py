"""Which operators the queries of the catalog keep: what is known of a plan by its fingerprint, which never changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dovetail.sql.catalog.metadata_tables import QUERIES, SUBPLANS
from dovetail.sql.catalog.records import Desired, KeptShape

_OF_VIEWS = sa.and_(QUERIES.c.desired != Desired.DROPPED.value, QUERIES.c.engine == "spark", QUERIES.c.lease_ms == 0)


def put(connection: Connection, fingerprint: str, shapes: Iterable[KeptShape]) -> None:
    """What the plan of ``fingerprint`` keeps, if that is not known yet; nothing is known as well."""
    if connection.execute(sa.select(SUBPLANS.c.shape).where(SUBPLANS.c.fingerprint == fingerprint)).first() is not None:
        return
    whole = {one.shape: False for one in shapes} | {one.shape: True for one in shapes if one.whole} or {"": False}
    rows = [{"fingerprint": fingerprint, "shape": shape, "whole": of_all} for shape, of_all in whole.items()]
    connection.execute(SUBPLANS.insert(), rows)


def views_with(connection: Connection, shapes: Collection[str]) -> list[str]:
    """The views with an operator of one of these shapes: first those of which it is all, then in order of creation."""
    joined = sa.select(QUERIES.c.view).join(SUBPLANS, SUBPLANS.c.fingerprint == QUERIES.c.fingerprint)
    wanted = joined.where(_OF_VIEWS, SUBPLANS.c.shape.in_(shapes)).order_by(SUBPLANS.c.whole.desc(), QUERIES.c.id)
    return list(dict.fromkeys(connection.execute(wanted).scalars()))


def views_without(connection: Connection) -> list[str]:
    """The views with a query of which nothing is known yet, in order of creation."""
    known = sa.select(SUBPLANS.c.fingerprint)
    unknown = sa.select(QUERIES.c.view).where(_OF_VIEWS, QUERIES.c.fingerprint.not_in(known)).order_by(QUERIES.c.id)
    return list(dict.fromkeys(connection.execute(unknown).scalars()))


def forget(connection: Connection, query_id: int) -> None:
    """What was known of a query, unless another one has the same plan."""
    own = connection.execute(sa.select(QUERIES.c.fingerprint).where(QUERIES.c.id == query_id)).scalar()
    others = sa.select(QUERIES.c.id).where(QUERIES.c.fingerprint == own, QUERIES.c.id != query_id)
    if own is not None and connection.execute(others).first() is None:
        connection.execute(SUBPLANS.delete().where(SUBPLANS.c.fingerprint == own))
