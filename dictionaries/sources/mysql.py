"""MySQL and MariaDB, by PyMySQL."""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from pymysql.connections import Connection
from pymysql.constants import CR, ER
from pymysql.err import MySQLError, OperationalError
from sqlalchemy.engine.interfaces import ReflectedColumn

from dovetail.dictionaries.definition.tls import tls_of
from dovetail.dictionaries.sources.sql_database import Refusal, SqlSource, Unbindable, reason

_PASSING = frozenset(
    {
        *(code for name, code in vars(CR).items() if name.startswith("CR_")),
        *(ER.CON_COUNT_ERROR, ER.OUT_OF_RESOURCES, ER.SERVER_SHUTDOWN, ER.NEW_ABORTING_CONNECTION),
        *(ER.TOO_MANY_USER_CONNECTIONS, ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK, ER.QUERY_INTERRUPTED),
        *(ER.LOCK_TABLE_FULL, ER.HOST_IS_BLOCKED, ER.USER_LIMIT_REACHED, 1927, 1969, 3024),
    }
)
"""Faults that may pass by themselves; 1927, 1969 and 3024: the connection or the statement was ended by the server."""


class MySqlSource(SqlSource):
    """SOURCE(MYSQL(HOST PORT USER PASSWORD DB TABLE|QUERY BG_RECONNECT SECURE SSL_CA SSL_CERT SSL_KEY ..)).

    BG_RECONNECT true (the default): a connection that broke in the pool is replaced before it is used.
    """

    title = "MySQL"

    @property
    def url(self) -> sa.URL:
        return sa.URL.create(
            "mysql+pymysql",
            username=_text(self.parameters.get("user")),
            host=self.host,
            port=self.port,
            database=_text(self.parameters.get("db")),
            query={"charset": "utf8mb4"},
        )

    def connect_arguments(self, timeout_s: float) -> Mapping[str, Any]:
        arguments: dict[str, Any] = {
            "connect_timeout": float(self.parameters["connect_timeout"]),
            "read_timeout": timeout_s,
            "write_timeout": timeout_s,
            # Else a server could ask for any file of this machine.
            "local_infile": False,
            # TIMESTAMP columns are read in the zone of the session.
            "init_command": "SET time_zone = '+00:00'",
        }
        if (tls := tls_of(self.parameters, self.where, self.outside)) is not None:
            arguments["ssl"] = tls.context()
        return arguments

    def connection(self, keywords: Mapping[str, Any]) -> Any:
        host, port, timeout_s = self.host, self.port, keywords["connect_timeout"]
        opened: Connection[Any] = Connection(**keywords, defer_connect=True)
        try:
            connected = self.outside.network.connected(host, port, timeout_s, self.where)
        except OSError as error:
            raise OperationalError(
                CR.CR_CONN_HOST_ERROR, f"Can't connect to MySQL server on {host!r} ({error})"
            ) from error
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        opened.connect(connected)
        return opened

    def secret(self) -> Mapping[str, str | bytes]:
        # Of a text the driver would send the bytes of Latin-1, and of most texts it could send none.
        return {name: str(text).encode() for name, text in super().secret().items()}

    def reflected(self, connection: sa.Connection) -> list[ReflectedColumn]:
        found = super().reflected(connection)
        for column in found:
            column["name"] = column["name"].replace("``", "`")  # SQLAlchemy leaves them as they were quoted
        return found

    def bound(self, value: Any) -> Any:
        if isinstance(value, float | Decimal) and not math.isfinite(value):
            raise Unbindable
        return value

    def refusal(self, error: BaseException) -> Refusal | None:
        if isinstance(error, RuntimeError):  # the driver lacks a library for this way of logging in
            return Refusal(
                f"{self.title} wants a login that needs encryption: {reason(error)}",
                "SECURE true, or a user with mysql_native_password",
            )
        code = error.args[0] if isinstance(error, MySQLError) and error.args else None
        if code is None or code in _PASSING or (isinstance(error, OperationalError) and code not in self._named):
            return None
        what, fix = self._named.get(code, (reason(error), "correct TABLE, QUERY or the columns of the dictionary"))
        return Refusal(f"{self.title}: {what}", fix)

    @property
    def _named(self) -> Mapping[Any, tuple[str, str]]:
        user, database = self.parameters.get("user", ""), self.parameters.get("db", "")
        login = (f'the password of user "{user}" is refused', "correct USER and PASSWORD of the source")
        denied = (f'user "{user}" has no right to read database "{database}"', "GRANT SELECT, or take another USER")
        return {
            ER.ACCESS_DENIED_ERROR: login,
            1698: login,
            ER.DBACCESS_DENIED_ERROR: denied,
            ER.TABLEACCESS_DENIED_ERROR: denied,
            ER.COLUMNACCESS_DENIED_ERROR: denied,
            ER.BAD_DB_ERROR: (f'there is no database "{database}"', "create it, or correct DB of the source"),
            ER.NO_DB_ERROR: ("no database is named", "give DB 'name' in the source"),
            ER.NO_SUCH_TABLE: (
                f'there is no table "{self.parameters.get("table", "")}"',
                "create it, or correct TABLE",
            ),
            ER.BAD_FIELD_ERROR: ("a column is not there", "declare the columns that the source has"),
        }


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
