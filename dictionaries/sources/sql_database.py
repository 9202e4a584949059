"""What the sources that SQLAlchemy reaches have in common: pools, statements, bound keys, faults.

A lookup is one statement for each 1,000 distinct keys, ``SELECT columns FROM table WHERE key IN (..)``, with row values
for a key of several columns. Values are bound; identifiers are those that the definition declares, quoted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.elements import ColumnElement, quoted_name

from dovetail.changelog.errors import DovetailError, ServiceUnavailable, SourceRefused, UnknownName, Unsupported
from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.changelog.schema import Column
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import counted, type_words
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.definition.secrets import password_of
from dovetail.dictionaries.definition.tls import certificate_refused
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.sources.column_types import arrow_type, fits, fix_of_type
from dovetail.dictionaries.sources.source_parameters import source_parameters
from dovetail.dictionaries.sources.source_rows import ROWS_PER_PIECE, SourceRowReader

_RECYCLE_S = 1800


class Unbindable(Exception):
    """A key that no row of this database can have, since it cannot even be written to it."""


@dataclass(frozen=True)
class Refusal:
    """A fault that only a person can mend."""

    what: str
    fix: str


class SqlSource(ABC):
    """A table or a query of a database behind SQLAlchemy. Connects when it is first asked."""

    title: ClassVar[str]
    """The name of the database's kind in messages."""

    def __init__(self, definition: Definition, outside: Outside) -> None:
        self.definition = definition
        self.outside = outside
        self.parameters = source_parameters(definition)
        self.timeout_s = float(self.parameters["timeout"])
        self.load_timeout_s = float(self.parameters["load_timeout"])
        self.where = f'dictionary "{definition.name}", {self.place}'
        self._reader = SourceRowReader(definition, self.where)
        self._lookups: dict[tuple[str, ...], sa.Select[Any]] = {}

    # -- what differs from database to database --

    @property
    @abstractmethod
    def url(self) -> sa.URL:
        """Where to connect to, without the password."""

    @abstractmethod
    def connect_arguments(self, timeout_s: float) -> Mapping[str, Any]:
        """What the driver's connect() takes; ``timeout_s`` bounds each wait for an answer."""

    @abstractmethod
    def connection(self, keywords: Mapping[str, Any]) -> Any:
        """A new connection of the driver, to where statements may make one go. ``keywords``: as its connect() takes."""

    @abstractmethod
    def refusal(self, error: BaseException) -> Refusal | None:
        """What only a person can mend; None for a fault that may pass by itself."""

    def bound(self, value: Any) -> Any:
        """A key's value as the driver takes it. Raises Unbindable."""
        return value

    def prepare(self, engine: sa.Engine) -> None:  # noqa: B027
        """Last touches to a new engine: none, for most."""

    @property
    def schema(self) -> str | None:
        return None

    @property
    def host(self) -> str:
        return str(self.parameters["host"])

    @property
    def port(self) -> int:
        return int(self.parameters["port"])

    @property
    def place(self) -> str:
        """Where the rows are, as messages say it."""
        database = self.parameters.get("db")
        return f"{self.title} at {self.host}:{self.port}" + (f', database "{database}"' if database else "")

    # -- the source --

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        return self._reader.fetch_in_statements(by, keys, lambda chunk: self._ask(by, chunk))

    def load(self) -> Iterator[list[Row]]:
        yield from self._stream(self._selected)

    def load_since(self, since_ms: int) -> Iterator[list[Row]]:
        """The rows whose ``update_field`` is not before ``since_ms``, less ``update_lag``."""
        lag = timedelta(seconds=int(self.parameters["update_lag"]))
        changed: ColumnElement[Any] = sa.column(quoted_name(str(self.parameters["update_field"]), quote=True))
        since = datetime.fromtimestamp(since_ms / 1000, UTC).replace(tzinfo=None) - lag
        yield from self._stream(self._selected.where(changed >= sa.literal(self.bound(since), sa.types.NullType())))

    def check(self) -> None:
        """Whether the source can be asked as declared: connects, and reads no row. In bounded time."""
        with self._translated("tell its columns"), self._loading.connect() as connection:
            if "table" in self.parameters:
                self._check_columns(self.reflected(connection))
            connection.execute(self._selected.where(sa.false())).all()
        if self.definition.key:
            self._ask(self.definition.key, [self._sample_key])

    def columns(self) -> list[Column]:
        """The columns of the table, as the database declares them."""
        with self._translated("tell its columns"), self._loading.connect() as connection:
            reflected = self.reflected(connection)
            return [
                Column(found["name"], arrow_type(found["type"]), bool(found.get("nullable", True)))
                for found in reflected
            ]

    def close(self) -> None:
        for name in ("_engine", "_loading"):
            if name in self.__dict__:
                self.__dict__[name].dispose()

    # -- asking --

    def _ask(self, by: Sequence[str], keys: Sequence[Key]) -> Sequence[Sequence[Any]]:
        bound = self.bound_keys(keys)
        if not bound:
            return []
        with self._translated(f"answer {counted(len(bound), 'key')}"), self._engine.connect() as connection:
            return self.run(connection, self._lookup(tuple(by)), bound)

    def run(self, connection: sa.Connection, statement: sa.Select[Any], keys: Sequence[Any]) -> Sequence[Sequence[Any]]:
        return connection.execute(statement, {"keys": keys}).all()

    def bound_keys(self, keys: Sequence[Key]) -> list[Any]:
        """The keys as the driver takes them; those that the database cannot hold are left out."""
        bound = []
        for key in keys:
            try:
                bound.append(tuple(map(self.bound, key)) if isinstance(key, tuple) else self.bound(key))
            except Unbindable:
                continue
        return bound

    def _stream(self, statement: sa.Select[Any]) -> Iterator[list[Row]]:
        streaming = {"stream_results": True, "yield_per": ROWS_PER_PIECE}
        with self._translated("give its rows"), self._loading.connect() as connection:
            for piece in connection.execution_options(**streaming).execute(statement).partitions():
                yield self._reader.read(piece)

    # -- statements --

    def _lookup(self, by: tuple[str, ...]) -> sa.Select[Any]:
        if by not in self._lookups:
            self._lookups[by] = self._selected.where(self.among([self.column(name) for name in by]))
        return self._lookups[by]

    def among(self, columns: Sequence[ColumnElement[Any]]) -> ColumnElement[bool]:
        """Whether the columns equal one of the ``keys`` bound later."""
        keys: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)
        return columns[0].in_(keys) if len(columns) == 1 else sa.tuple_(*columns).in_(keys)

    def column(self, name: str) -> ColumnElement[Any]:
        expression = self.definition.expressions.get(name)
        if expression is not None:
            return sa.literal_column(f"({_escaped(expression)})")
        return sa.column(quoted_name(name, quote=True))

    @cached_property
    def _selected(self) -> sa.Select[Any]:
        columns = [self.column(name).label(quoted_name(name, quote=True)) for name in self.definition.names]
        query = self.parameters.get("query")
        if query is not None:
            text = sa.text(f"({_escaped(str(query).strip().rstrip(';'))}) AS dictionary_rows")
            return sa.select(*columns).select_from(text)
        selected = sa.select(*columns).select_from(self._table)
        condition = self.parameters.get("where")
        return selected if condition is None else selected.where(sa.text(f"({_escaped(str(condition))})"))

    @property
    def _table(self) -> sa.TableClause:
        schema = None if self.schema is None else quoted_name(self.schema, quote=True)
        return sa.table(quoted_name(self.table_name, quote=True), schema=schema)

    @property
    def table_name(self) -> str:
        return str(self.parameters["table"])

    # -- engines --

    @cached_property
    def _engine(self) -> sa.Engine:
        """For lookups: pooled, each statement a transaction of its own."""
        return self._made(
            self.timeout_s,
            isolation_level="AUTOCOMMIT",
            pool_size=int(self.parameters["pool_size"]),
            pool_timeout=self.timeout_s,
            pool_pre_ping=bool(self.parameters.get("bg_reconnect", True)),
            pool_recycle=_RECYCLE_S,
            pool_reset_on_return=None,
        )

    @cached_property
    def _loading(self) -> sa.Engine:
        """For whole loads and for checks: a connection each time, and more patience."""
        return self._made(self.load_timeout_s, poolclass=NullPool)

    def _made(self, timeout_s: float, **options: Any) -> sa.Engine:
        arguments = dict(self.connect_arguments(timeout_s))
        engine = sa.create_engine(self.url, connect_args=arguments, hide_parameters=True, **options)

        def connect(dialect: Any, record: Any, positional: Any, keywords: dict[str, Any]) -> Any:
            # The password is given at the last moment: no URL or engine holds it, so none can show it.
            return self.connection({**keywords, **self.secret()})

        sa.event.listen(engine, "do_connect", connect)
        self.prepare(engine)
        return engine

    def secret(self) -> Mapping[str, str | bytes]:
        """The password as the driver's connect() takes it."""
        password = password_of(self.parameters, self.where, self.outside)
        return {"password": password} if password else {}

    # -- checks --

    def reflected(self, connection: sa.Connection) -> list[ReflectedColumn]:
        """The columns of the table. Raises SourceRefused where there is none."""
        try:
            return sa.inspect(connection).get_columns(self.table_name, schema=self.schema)
        except sa.exc.NoSuchTableError:
            raise self.no_table() from None

    def no_table(self) -> DovetailError:
        return SourceRefused(
            f'there is no table "{self.table_name}"', where=self.where, fix="create it, or correct TABLE and DB"
        )

    def _check_columns(self, reflected: Sequence[ReflectedColumn]) -> None:
        types = {found["name"]: found["type"] for found in reflected}
        folded = {name.casefold() for name in types}
        for column in self.definition.columns:
            if column.name in self.definition.expressions:
                continue
            if column.name.casefold() not in folded:
                kind = "key column" if column.name in self.definition.key else "column"
                raise UnknownName(
                    f'{self.title} table "{self.table_name}" has no {kind} "{column.name}"',
                    where=self.where,
                    fix=suggestion(column.name, types),
                )
            self.check_type(column, types.get(column.name))

    def check_type(self, column: Column, found: sa.types.TypeEngine[Any] | None) -> None:
        """Raises Unsupported for a declared type that does not fit that of the database."""
        there = None if found is None else arrow_type(found)
        if there is None or fits(there, column.type):
            return
        raise Unsupported(
            f'column "{column.name}" is {found} in {self.title}, which does not fit {type_words(column.type)}',
            where=self.where,
            fix=fix_of_type(column.name, there),
        )

    @property
    def _sample_key(self) -> Key:
        types = {column.name: column.type for column in self.definition.columns}
        values = tuple(sample(types[name]) for name in self.definition.key)
        return values if len(values) > 1 else values[0]

    # -- faults --

    @contextmanager
    def _translated(self, attempt: str) -> Iterator[None]:
        try:
            yield
        except sa.exc.TimeoutError as error:
            raise ServiceUnavailable(
                f"{self.title} had no connection free to {attempt} within {self.timeout_s:g} s",
                where=self.where,
                fix="raise POOL_SIZE or TIMEOUT of the source",
            ) from error
        except sa.exc.DBAPIError as error:
            raise self._fault(attempt, error.orig or error) from error
        except (OSError, RuntimeError) as error:
            raise self._fault(attempt, error) from error

    def _fault(self, attempt: str, error: BaseException) -> DovetailError:
        if (certificate := certificate_refused(error)) is not None:
            return SourceRefused(f"{self.title}: {certificate[0]}", where=self.where, fix=certificate[1])
        refused = self.refusal(error)
        if refused is not None:
            return SourceRefused(refused.what, where=self.where, fix=refused.fix)
        return ServiceUnavailable(
            f"{self.title} did not {attempt}: {reason(error)}",
            where=self.where,
            fix=f"see that it runs and is reached from here; TIMEOUT is {self.timeout_s:g} s",
        )


def reason(error: BaseException) -> str:
    """The last thing that a driver says, on one line."""
    text = error.args[-1] if error.args else type(error).__name__
    return " ".join(str(text).split())


def sample(kind: pa.DataType) -> Any:
    """Some value of a type."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return ""
    if pa.types.is_binary(kind):
        return b""
    return pa.scalar(0, pa.int64() if kind.bit_width == 64 else pa.int32()).cast(kind).as_py()


def _escaped(text: str) -> str:
    """SQL text for SQLAlchemy, to which a colon begins a parameter."""
    return text.replace(":", "\\:")
