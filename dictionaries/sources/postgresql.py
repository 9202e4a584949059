"""PostgreSQL, by psycopg."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import errors
from psycopg.adapt import Loader

from dovetail.dictionaries.definition.tls import tls_of
from dovetail.dictionaries.sources.sql_database import Refusal, SqlSource, Unbindable, reason

_LEAST_CONNECT_S = 2  # libpq's
_NOTHING_FROM_HOME = {"passfile": f"{os.devnull}/none", "gssencmode": "disable"}
"""libpq would look for passwords in ~/.pgpass, for tickets of Kerberos, and for certificates in ~/.postgresql."""


class PostgreSqlSource(SqlSource):
    """SOURCE(POSTGRESQL(HOST PORT USER PASSWORD DB SCHEMA TABLE|QUERY SECURE ..)); TABLE may be 'schema.table'."""

    title = "PostgreSQL"

    @property
    def url(self) -> sa.URL:
        user, database = self.parameters.get("user"), self.parameters.get("db")
        return sa.URL.create(
            "postgresql+psycopg",
            username=None if user is None else str(user),
            host=self.host,
            port=self.port,
            database=None if database is None else str(database),
        )

    @property
    def schema(self) -> str | None:
        named = self.parameters.get("schema")
        if named is not None:
            return str(named)
        before, dot, _ = str(self.parameters.get("table", "")).partition(".")
        return before if dot else None

    @property
    def table_name(self) -> str:
        table = str(self.parameters["table"])
        return table if "schema" in self.parameters else table.rpartition(".")[2]

    def connect_arguments(self, timeout_s: float) -> Mapping[str, Any]:
        tls = tls_of(self.parameters, self.where, self.outside)
        files = {} if tls is None else {"sslrootcert": tls.ca, "sslcert": tls.certificate, "sslkey": tls.key}
        return {
            "connect_timeout": max(_LEAST_CONNECT_S, round(float(self.parameters["connect_timeout"]))),
            "options": f"-c timezone=UTC -c statement_timeout={round(timeout_s * 1000)}",
            "sslmode": "prefer" if tls is None else "verify-full",
            **{name: path for name, path in files.items() if path},
            # What the user of this process has of its own is not for whoever writes statements.
            **_NOTHING_FROM_HOME,
            **({} if tls is not None and tls.certificate else {"sslcertmode": "disable"}),
            # Statements of different lengths would each be prepared once, and no pooler in between likes them.
            "prepare_threshold": None,
        }

    def connection(self, keywords: Mapping[str, Any]) -> Any:
        """To the addresses that were judged, one after the other; the name is for the certificate."""
        addresses = self.outside.network.addresses(self.host, self.port, self.where)
        pinned = {"host": ",".join([self.host] * len(addresses)), "hostaddr": ",".join(addresses)}
        return psycopg.connect(**{**keywords, **pinned})

    def prepare(self, engine: sa.Engine) -> None:
        @sa.event.listens_for(engine, "connect")
        def pad_no_characters(connection: Any, record: Any) -> None:
            connection.adapters.register_loader("bpchar", _Unpadded)

    def bound(self, value: Any) -> Any:
        if isinstance(value, str) and "\0" in value:
            raise Unbindable
        return value

    def run(self, connection: sa.Connection, statement: sa.Select[Any], keys: Sequence[Any]) -> Sequence[Sequence[Any]]:
        with _deadline(connection, self.timeout_s):
            return super().run(connection, statement, keys)

    def refusal(self, error: BaseException) -> Refusal | None:
        user, database = self.parameters.get("user", ""), self.parameters.get("db", "")
        text = str(error)
        # A failed login is an OperationalError without a code; only its text tells.
        if isinstance(error, errors.InvalidPassword) or "authentication failed" in text or "no password" in text:
            return Refusal(
                f'{self.title}: the password of user "{user}" is refused', "correct USER and PASSWORD of the source"
            )
        if isinstance(error, errors.InvalidCatalogName) or (f'database "{database}" does not exist' in text):
            return Refusal(f'{self.title}: there is no database "{database}"', "create it, or correct DB of the source")
        if isinstance(error, errors.UndefinedTable):
            table = self.parameters.get("table", "")
            return Refusal(f'{self.title}: there is no table "{table}"', "create it, or correct TABLE and SCHEMA")
        if isinstance(error, errors.InsufficientPrivilege):
            return Refusal(f"{self.title}: {reason(error)}", "GRANT SELECT, or take another USER")
        if isinstance(error, errors.ProgrammingError | errors.DataError):
            return Refusal(f"{self.title}: {reason(error)}", "declare the columns with the types that the source has")
        return None


class _Unpadded(Loader):
    """CHAR(n) comes with blanks up to its length, which are no part of the value."""

    def load(self, data: Any) -> str:
        return bytes(data).decode().rstrip(" ")


@contextmanager
def _deadline(connection: sa.Connection, timeout_s: float) -> Iterator[None]:
    """Break the connection when a server that no longer runs keeps it open: psycopg would wait forever."""
    driver: Any = connection.connection.dbapi_connection

    def cut() -> None:
        with suppress(OSError), socket.socket(fileno=os.dup(driver.fileno())) as twin:
            twin.shutdown(socket.SHUT_RDWR)

    # The server itself ends the statement at timeout_s; what is later than that is not coming.
    timer = threading.Timer(timeout_s * 1.5, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
