"""The tables of the catalog, and an engine that several processes can share."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import ConnectionPoolEntry, StaticPool

from dovetail.changelog.errors import StackError
from dovetail.changelog.work.sqlite_file import write_ahead

BUSY_TIMEOUT_MS = 15_000
"""How long a process waits for another one to finish its transaction (SQLite)."""

METADATA = sa.MetaData()
_MYSQL = ("mysql", "mariadb")
# MySQL compares text without regard to case unless told otherwise; names here are case-sensitive.
_NAME = sa.String(255).with_variant(sa.String(255, collation="utf8mb4_bin"), *_MYSQL)
_ID = sa.String(64).with_variant(sa.String(64, collation="utf8mb4_bin"), *_MYSQL)
_LONG = sa.Text().with_variant(sa.Text(2**24 - 1), *_MYSQL)


def _table(name: str, *columns: sa.Column[Any], **options: Any) -> sa.Table:
    """Of the whole of Unicode, whatever the character set of the database is."""
    return sa.Table(name, METADATA, *columns, mysql_charset="utf8mb4", mariadb_charset="utf8mb4", **options)


RELATIONS = _table(
    "relations",
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", _NAME, nullable=False, unique=True),
    sa.Column("what", sa.String(16), nullable=False),
    sa.Column("ddl", _LONG, nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("written", _LONG),
    sa.Column("former_ddl", _LONG),
    sa.Column("altered_ms", sa.BigInteger),
)
"""``written``: of a materialized view, the stream that it writes.
``former_ddl``: of one that got another query while it ran, its definition before; ``altered_ms``: when that was.
"""

USES = _table(
    "uses",
    sa.Column("name", _NAME, primary_key=True),
    sa.Column("used", _NAME, primary_key=True),
)
"""``name`` cannot live without ``used``: a view and what it reads or writes, an index and its stream."""

QUERIES = _table(
    "queries",
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", _NAME, nullable=False, index=True),
    sa.Column("sql", _LONG, nullable=False),
    sa.Column("plan", _LONG, nullable=False),
    sa.Column("fingerprint", sa.String(128), nullable=False),
    sa.Column("engine", sa.String(16), nullable=False, server_default="spark"),
    sa.Column("view", _NAME, nullable=False, server_default=""),
    sa.Column("topic", sa.String(255), nullable=False),
    sa.Column("checkpoint", _LONG, nullable=False),
    sa.Column("desired", sa.String(16), nullable=False),
    sa.Column("actual", sa.String(16), nullable=False),
    sa.Column("error", _LONG, nullable=False),
    sa.Column("progress", sa.JSON, nullable=False),
    sa.Column("restarts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_try_ms", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("updated_ms", sa.BigInteger, nullable=False),
    sa.Column("lease_ms", sa.BigInteger, nullable=False, server_default="0"),
    sqlite_autoincrement=True,
)

MADE_TOPICS = _table(
    "made_topics",
    sa.Column("id", _ID, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("made_ms", sa.BigInteger, nullable=False),
)
"""``id`` is the broker's: a topic of the same name in another cluster, or made again by somebody else, is another."""

SCHEMAS = _table("schemas", sa.Column("name", _NAME, primary_key=True))

WORKERS = _table(
    "workers",
    sa.Column("id", sa.String(255), primary_key=True),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("address", sa.String(255), nullable=False),
    sa.Column("queries", sa.JSON, nullable=False),
    sa.Column("started_ms", sa.BigInteger, nullable=False),
    sa.Column("seen_ms", sa.BigInteger, nullable=False),
    sa.Column("secrets", sa.JSON),
)

LEADERS = _table(
    "leaders",
    sa.Column("name", _NAME, primary_key=True),
    sa.Column("holder", sa.String(255), nullable=False),
    sa.Column("until_ms", sa.BigInteger, nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
)


VERSION = 1
"""Raised by a release whose tables an earlier one could not read, or would write to the harm of the later one."""
FORMAT = _table("catalog_format", sa.Column("version", sa.Integer, primary_key=True, autoincrement=False))
"""One row. A catalog without it is older than the table, and of version 1."""
IDENTITY = _table("catalog_identity", sa.Column("identity", sa.String(64), primary_key=True))
"""One row at most: what tells the catalog from all others, whatever its address."""


def make(connection: Connection) -> None:
    """Makes the tables, and the columns that a catalog of an earlier release does not have.

    Raises StackError, and leaves everything as it is, where a later release has made the catalog.
    """
    made_by = _version(connection)
    if made_by is not None and made_by > VERSION:
        raise StackError(
            f"the catalog is of a later release: it has version {made_by}, and this release knows {VERSION}",
            where=connection.engine.url.render_as_string(hide_password=True),
            fix="run that release; or give this one a catalog of its own (DOVETAIL_CATALOG_URL, DOVETAIL_DATA_DIR)",
        )
    METADATA.create_all(connection)
    if made_by is None:
        connection.execute(FORMAT.insert().values(version=VERSION))
    added = (QUERIES.c.engine, QUERIES.c.view, QUERIES.c.restarts, QUERIES.c.next_try_ms, QUERIES.c.lease_ms)
    of_relations = (RELATIONS.c.written, RELATIONS.c.former_ddl, RELATIONS.c.altered_ms)
    for column in (*of_relations, *added, WORKERS.c.secrets):
        if column.name not in {there["name"] for there in sa.inspect(connection).get_columns(column.table.name)}:
            definition = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {definition}")
    unnamed = QUERIES.update().where(QUERIES.c.view == "")
    connection.execute(unnamed.values(view=QUERIES.c.name))


def identity(connection: Connection, wanted: str) -> str:
    """The identity that the catalog has; ``wanted`` where it had none."""
    found: str | None = connection.execute(sa.select(IDENTITY.c.identity)).scalar()
    if found is None:
        connection.execute(IDENTITY.insert().values(identity=wanted))
    return found or wanted


def _version(connection: Connection) -> int | None:
    if not sa.inspect(connection).has_table(FORMAT.name):
        return None
    found: int | None = connection.execute(sa.select(FORMAT.c.version)).scalar()
    return found


def engine_for(url: URL) -> Engine:
    """An engine for ``url``; the one of SQLite waits for other processes instead of failing."""
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True)
    in_memory = url.database in (None, "", ":memory:")
    engine = sa.create_engine(url, poolclass=StaticPool) if in_memory else sa.create_engine(url)
    sa.event.listen(engine, "connect", _share_file)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _share_file(connection: Any, _entry: ConnectionPoolEntry) -> None:
    # The driver begins transactions by itself, and late: ``_begin`` does it instead.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    write_ahead(connection)


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get("writes", False):
        connection.exec_driver_sql("BEGIN")
        return
    # With NORMAL the last transactions may be gone after a loss of power.
    connection.exec_driver_sql(f"PRAGMA synchronous = {'FULL' if options.get('durable', True) else 'NORMAL'}")
    # A writer takes its lock before it reads: one that read first could find its snapshot outdated, and fail.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
