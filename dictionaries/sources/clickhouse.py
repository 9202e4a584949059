"""ClickHouse, by clickhouse-driver and its native protocol."""

from __future__ import annotations

import logging
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
from clickhouse_driver import Client
from clickhouse_driver.errors import (
    Error,
    ErrorCodes,
    ServerException,
    SocketTimeoutError,
    UnexpectedPacketFromServerError,
)

from dovetail.changelog.errors import DovetailError, ServiceUnavailable, SourceRefused, UnknownName, Unsupported
from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.changelog.schema import Column
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import counted, type_words
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.definition.secrets import password_of
from dovetail.dictionaries.definition.tls import certificate_refused, tls_of
from dovetail.dictionaries.idle_pool import IdlePool
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.sources.column_types import INSTANT, fits, fix_of_type
from dovetail.dictionaries.sources.source_parameters import source_parameters
from dovetail.dictionaries.sources.source_rows import ROWS_PER_PIECE, SourceRowReader, in_pieces

# What the driver logs, with a traceback, is in the error that it raises as well.
logging.getLogger("clickhouse_driver").addHandler(logging.NullHandler())

_KEYS = "dictionary_keys"
_READONLY = 164
_AUTHENTICATION_FAILED = 516
_PASSING = frozenset(
    {
        *(ErrorCodes.NETWORK_ERROR, ErrorCodes.SOCKET_TIMEOUT, ErrorCodes.TIMEOUT_EXCEEDED, ErrorCodes.TOO_SLOW),
        *(ErrorCodes.TOO_MANY_SIMULTANEOUS_QUERIES, ErrorCodes.MEMORY_LIMIT_EXCEEDED, ErrorCodes.QUERY_WAS_CANCELLED),
        *(ErrorCodes.NO_FREE_CONNECTION, ErrorCodes.ALL_CONNECTION_TRIES_FAILED, ErrorCodes.NO_ACTIVE_REPLICAS),
    }
)
_WRAPPED = re.compile(r"^(?:Nullable|LowCardinality)\((.*)\)$", re.DOTALL)
_DECIMAL = re.compile(r"^Decimal\((\d+), *(\d+)\)$")
_INTEGER = re.compile(r"^(U?)Int(8|16|32|64)$")


class ClickHouseSource:
    """SOURCE(CLICKHOUSE(HOST PORT USER PASSWORD DB TABLE|QUERY SECURE SSL_CA SSL_CERT SSL_KEY ..)).

    The keys of a lookup travel beside the statement as a typed table, so there is nothing to quote and no limit on the
    statement's length, and the table's primary key is used. One thread at a time has a client, as the driver demands.
    """

    def __init__(self, definition: Definition, outside: Outside) -> None:
        self.definition = definition
        self.outside = outside
        self.parameters = source_parameters(definition)
        self.timeout_s = float(self.parameters["timeout"])
        host, port, database = (self.parameters.get(name) for name in ("host", "port", "db"))
        place = f"ClickHouse at {host}:{port}" + (f', database "{database}"' if database else "")
        self.where = f'dictionary "{definition.name}", {place}'
        self._reader = SourceRowReader(definition, self.where)
        self._clients = IdlePool(lambda: self._client(self.timeout_s), Client.disconnect)
        self._types: dict[str, str] = {}
        self._limited = True

    # -- the source --

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        return self._reader.fetch_in_statements(by, keys, lambda chunk: self._ask(by, chunk))

    def load(self) -> Iterator[list[Row]]:
        yield from self._stream("")

    def load_since(self, since_ms: int) -> Iterator[list[Row]]:
        """The rows whose ``update_field`` is not before ``since_ms``, less ``update_lag``."""
        since_s = since_ms // 1000 - int(self.parameters["update_lag"])
        yield from self._stream(f"{quoted(str(self.parameters['update_field']))} >= toDateTime({since_s})")

    def check(self) -> None:
        """Whether the source can be asked as declared: connects, and reads no row. In bounded time."""
        if "table" in self.parameters:
            self._check_columns()
        with self._translated("tell its columns"):
            types = self._column_types()
        for column in self.definition.columns:
            there = arrow_type(types[column.name])
            if not fits(there, column.type):
                raise Unsupported(
                    f'column "{column.name}" is {types[column.name]} in ClickHouse, which does not fit '
                    f"{type_words(column.type)}",
                    where=self.where,
                    fix=fix_of_type(column.name, there),
                )

    def columns(self) -> list[Column]:
        """The columns of the table, as the database declares them."""
        return [
            Column(name, arrow_type(kind), kind.startswith(("Nullable", "LowCardinality(Nullable")))
            for name, kind in self._described()
        ]

    def close(self) -> None:
        self._clients.close()

    # -- statements --

    def _ask(self, by: Sequence[str], keys: Sequence[Key]) -> Sequence[Sequence[Any]]:
        with self._translated(f"answer {counted(len(keys), 'key')}"):
            types = self._column_types()
            columns = [_KeyColumn(f"k{place}", types[name]) for place, name in enumerate(by)]
            sent = [row for row in (_key_row(columns, key) for key in keys) if row is not None]
            if not sent:
                return []
            left = ", ".join(column.compared(self._expression(name)) for column, name in zip(columns, by, strict=True))
            condition = f"({left}) IN {_KEYS}"
            table = {"name": _KEYS, "structure": [(key.name, key.sent_type) for key in columns], "data": sent}
            rows: Sequence[Sequence[Any]] = self._run(self._select(types, condition), external_tables=[table])
            return rows

    def _stream(self, condition: str) -> Iterator[list[Row]]:
        with self._translated("give its rows"), self._connected(float(self.parameters["load_timeout"])) as client:
            statement = self._select(self._column_types(), condition)
            rows = client.execute_iter(statement, settings={"max_block_size": ROWS_PER_PIECE})
            for piece in in_pieces(rows, ROWS_PER_PIECE):
                yield self._reader.read(piece)

    def _select(self, types: Mapping[str, str], condition: str) -> str:
        columns = []
        for column in self.definition.columns:
            written = self._expression(column.name)
            instant = pa.types.is_timestamp(column.type)
            columns.append(_instant_as_number(types[column.name], written) if instant else written)
        conditions = [f"({text})" for text in (self.parameters.get("where"), condition) if text]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {', '.join(columns)} FROM {self._from}{where}"

    def _expression(self, name: str) -> str:
        written = self.definition.expressions.get(name)
        return quoted(name) if written is None else f"({written})"

    @property
    def _from(self) -> str:
        query = self.parameters.get("query")
        if query is not None:
            return f"({str(query).strip().rstrip(';')})"
        database, table = self.parameters.get("db"), quoted(str(self.parameters["table"]))
        return table if database is None else f"{quoted(str(database))}.{table}"

    def _column_types(self) -> dict[str, str]:
        """The type of each declared column in ClickHouse; asked once, and again after a refusal."""
        if not self._types:
            columns = ", ".join(self._expression(name) for name in self.definition.names)
            _, found = self._run(f"SELECT {columns} FROM {self._from} LIMIT 0", with_column_types=True)
            self._types = {name: kind for name, (_, kind) in zip(self.definition.names, found, strict=True)}
        return self._types

    def _described(self) -> list[tuple[str, str]]:
        with self._translated("tell its columns"):
            return [(row[0], row[1]) for row in self._run(f"DESCRIBE TABLE {self._from}")]

    def _check_columns(self) -> None:
        there = [name for name, _ in self._described()]
        for name in self.definition.names:
            if name not in there and name not in self.definition.expressions:
                kind = "key column" if name in self.definition.key else "column"
                raise UnknownName(
                    f'ClickHouse table "{self.parameters["table"]}" has no {kind} "{name}"',
                    where=self.where,
                    fix=suggestion(name, there),
                )

    # -- clients --

    def _run(self, statement: str, **options: Any) -> Any:
        with self._clients.lent() as client:
            if not client.connection.connected:
                self._pin(client)
            return self._executed(client, statement, **options)

    def _pin(self, client: Client) -> None:
        """It will connect to the addresses that were judged, one after the other."""
        host, port = str(self.parameters["host"]), int(self.parameters["port"])
        addresses = self.outside.network.addresses(host, port, self.where)
        client.connection.hosts = deque((address, port) for address in addresses)

    def _executed(self, client: Client, statement: str, **options: Any) -> Any:
        settings = {"max_execution_time": math.ceil(self.timeout_s)} if self._limited else {}
        try:
            return client.execute(statement, settings=settings, **options)
        except ServerException as error:
            if error.code != _READONLY or not self._limited:
                raise
            # This user may change no setting: the time is bounded by the socket alone.
            self._limited = False
            return client.execute(statement, **options)

    @contextmanager
    def _connected(self, timeout_s: float) -> Iterator[Client]:
        client = self._client(timeout_s)
        self._pin(client)
        try:
            yield client
        finally:
            client.disconnect()

    def _client(self, timeout_s: float) -> Client:
        connect_s = float(self.parameters["connect_timeout"])
        tls = tls_of(self.parameters, self.where, self.outside)
        return Client(
            str(self.parameters["host"]),
            int(self.parameters["port"]),
            database=str(self.parameters.get("db", "")),
            user=str(self.parameters.get("user", "default")),
            password=password_of(self.parameters, self.where, self.outside),
            secure=tls is not None,
            # Without them it takes those of certifi.
            ca_certs=None if tls is None else tls.ca,
            certfile=None if tls is None else tls.certificate or None,
            keyfile=None if tls is None else tls.key or None,
            # The certificate is for the name, the connection is to an address.
            server_hostname=str(self.parameters["host"]),
            client_name="dovetail",
            connect_timeout=connect_s,
            send_receive_timeout=timeout_s,
            sync_request_timeout=min(connect_s, timeout_s),
        )

    # -- faults --

    @contextmanager
    def _translated(self, attempt: str) -> Iterator[None]:
        try:
            yield
        except (Error, OSError, EOFError) as error:
            self._types = {}
            raise self._fault(attempt, error) from error

    def _fault(self, attempt: str, error: Exception) -> DovetailError:
        code = getattr(error, "code", None)
        if (refused := certificate_refused(error)) is not None:
            return SourceRefused(f"ClickHouse: {refused[0]}", where=self.where, fix=refused[1])
        if not isinstance(error, ServerException) or code in _PASSING:
            silent = isinstance(error, SocketTimeoutError)
            other = silent or isinstance(error, UnexpectedPacketFromServerError)
            return ServiceUnavailable(
                f"ClickHouse did not {attempt}: {'no answer in time' if silent else _first_line(error)}",
                where=self.where,
                fix=f"see that it runs and is reached from here; TIMEOUT is {self.timeout_s:g} s"
                + ("; PORT is that of the native protocol, 9000 by default, not that of HTTP" if other else ""),
            )
        user, database = self.parameters.get("user", "default"), self.parameters.get("db", "default")
        login = (f'the password of user "{user}" is refused', "correct USER and PASSWORD of the source")
        named = {
            ErrorCodes.WRONG_PASSWORD: login,
            ErrorCodes.REQUIRED_PASSWORD: login,
            _AUTHENTICATION_FAILED: login,
            ErrorCodes.UNKNOWN_USER: (f'there is no user "{user}"', "correct USER of the source"),
            ErrorCodes.UNKNOWN_DATABASE: (f'there is no database "{database}"', "create it, or correct DB"),
            ErrorCodes.UNKNOWN_TABLE: (
                f'there is no table "{self.parameters.get("table", "")}"',
                "create it, or correct TABLE",
            ),
        }
        what, fix = named.get(code, (_first_line(error), "correct TABLE, QUERY or the columns of the dictionary"))
        return SourceRefused(f"ClickHouse: {what}", where=self.where, fix=fix)


class _KeyColumn:
    """One column of the keys sent: its type is that of the column in the table, so that its index serves."""

    def __init__(self, name: str, there: str) -> None:
        self.name = name
        base = unwrapped(there)
        self._as_text = base.startswith("Enum")
        self.sent_type = "String" if self._as_text else base
        self._convert = _key_converter(self.sent_type)

    def compared(self, expression: str) -> str:
        return f"toString({expression})" if self._as_text else expression

    def value(self, key: Any) -> Any:
        """Raises ValueError for what no value of the type equals."""
        return self._convert(key)


def _key_row(columns: Sequence[_KeyColumn], key: Key) -> dict[str, Any] | None:
    values = key if isinstance(key, tuple) else (key,)
    try:
        return {column.name: column.value(value) for column, value in zip(columns, values, strict=True)}
    except (ValueError, ArithmeticError, TypeError):
        return None


def _key_converter(kind: str) -> Callable[[Any], Any]:
    integer, decimal = _INTEGER.match(kind), _DECIMAL.match(kind)
    if integer is not None:
        bits = int(integer[2])
        low, high = (0, 2**bits) if integer[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return lambda key: _whole(key, low, high)
    if decimal is not None:
        return lambda key: _fixed(key, int(decimal[1]), int(decimal[2]))
    if kind.startswith("FixedString("):
        return lambda key: _bounded_text(key, int(kind[len("FixedString(") : -1]))
    if kind.startswith("DateTime64"):
        return lambda key: key if key.tzinfo is not None else key.replace(tzinfo=UTC)
    if kind.startswith("DateTime"):
        return _whole_seconds
    named: Mapping[str, Callable[[Any], Any]] = {"String": _as_text, "UUID": UUID}
    return named.get(kind, _same)


def _whole(key: Any, low: int, high: int) -> int:
    number = int(key)
    if not low <= number < high or (not isinstance(key, str) and number != key):
        raise ValueError
    return number


def _fixed(key: Any, precision: int, scale: int) -> Decimal:
    number = Decimal(key)
    if number != round(number, scale) or abs(number) >= Decimal(10) ** (precision - scale):
        raise ValueError
    return number


def _bounded_text(key: Any, length: int) -> str:
    text = _as_text(key)
    if not isinstance(text, str) or len(text.encode()) > length:
        raise ValueError
    return text


def _as_text(key: Any) -> Any:
    if not isinstance(key, str | bytes):
        raise ValueError
    return key


def _whole_seconds(key: datetime) -> int:
    """Seconds since 1970: with a ``datetime``, the driver would think of the server's zone."""
    seconds = (key if key.tzinfo is not None else key.replace(tzinfo=UTC)).timestamp()
    if not seconds.is_integer() or not 0 <= seconds < 2**32:
        raise ValueError
    return int(seconds)


def _same(key: Any) -> Any:
    return key


def _instant_as_number(there: str, expression: str) -> str:
    """An instant as a number since 1970, in which no zone of server or column can mislead."""
    base = unwrapped(there)
    if base.startswith("DateTime64"):
        return f"toUnixTimestamp64Micro({expression})"
    return f"toUnixTimestamp({expression})" if base.startswith("DateTime") else expression


def unwrapped(kind: str) -> str:
    """The type inside of Nullable and LowCardinality."""
    while (found := _WRAPPED.match(kind)) is not None:
        kind = found[1]
    return kind


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type of a ClickHouse type; what has a text form and nothing else is a string."""
    base = unwrapped(kind)
    if base in _TYPES:
        return _TYPES[base]
    if base.startswith("DateTime"):
        return INSTANT
    decimal = _DECIMAL.match(base)
    if decimal is not None and int(decimal[1]) <= 38:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if base.startswith("Array("):
        return pa.list_(arrow_type(base[len("Array(") : -1]))
    return pa.string()


_TYPES = {
    "Bool": pa.bool_(),
    **{f"Int{bits}": getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": getattr(pa, f"uint{bits}")() for bits in (8, 16, 32, 64)},
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Date": pa.date32(),
    "Date32": pa.date32(),
}


def quoted(name: str) -> str:
    """An identifier between backticks."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _first_line(error: BaseException) -> str:
    """What the server says, without the stack trace of its own that follows."""
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return " ".join(text.partition("Stack trace:")[0].split())
