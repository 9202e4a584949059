"""Opens what a definition names: its source, and the layout that keeps its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from changelog.errors import InternalError, Unsupported
from changelog.schema import Column
from dictionaries.check import check_source
from dictionaries.contracts import Layout, Source
from dictionaries.definition.definition import Definition, LayoutSpec, SourceSpec
from dictionaries.definition.kinds import LOADED_LAYOUTS
from dictionaries.layouts.cache import Cache
from dictionaries.layouts.direct import Direct
from dictionaries.layouts.hybrid import Hybrid
from dictionaries.layouts.loaded import Loaded
from dictionaries.layouts.mutable_cache import MutableCache
from dictionaries.resources import Resources
from dictionaries.sources.clickhouse import ClickHouseSource
from dictionaries.sources.file import FileSource
from dictionaries.sources.http import HttpSource
from dictionaries.sources.mysql import MySqlSource
from dictionaries.sources.one_row_per_key import OneRowPerKey
from dictionaries.sources.postgresql import PostgreSqlSource
from dictionaries.sources.sqlite import SqliteSource
from dictionaries.sources.stream import StreamSource


class Checkable(Source, Protocol):
    """A source that says at once whether it can be asked."""

    def check(self) -> None:
        """Connects, and reads no row, in bounded time.

        Raises ServiceUnavailable when it does not answer; SourceRefused for a wrong password, a missing database or
        table; UnknownName or Unsupported for a column that is missing or of a type that does not fit.
        """
        ...


class _Described(Protocol):
    def columns(self) -> list[Column]: ...

    def close(self) -> None: ...


_SOURCES: Mapping[str, Callable[[Definition, Resources], Checkable]] = {
    "mysql": lambda definition, _: MySqlSource(definition),
    "postgresql": lambda definition, _: PostgreSqlSource(definition),
    "clickhouse": lambda definition, _: ClickHouseSource(definition),
    "sqlite": lambda definition, resources: SqliteSource(definition, resources.data_dir),
    "timeplus": StreamSource,
    "table": StreamSource,
    "file": lambda definition, resources: FileSource(definition, resources.data_dir),
    "http": lambda definition, _: HttpSource(definition),
}
_DESCRIBED: Mapping[str, Callable[[Definition, Path], _Described]] = {
    "mysql": lambda definition, _: MySqlSource(definition),
    "postgresql": lambda definition, _: PostgreSqlSource(definition),
    "clickhouse": lambda definition, _: ClickHouseSource(definition),
    "sqlite": SqliteSource,
}


def open_source(definition: Definition, resources: Resources) -> Checkable:
    """The source of a checked definition. Nothing is connected to before it is first asked."""
    return _SOURCES[definition.source.kind](definition, resources)


def reflect(source: SourceSpec, data_dir: Path | None = None) -> list[Column]:
    """The columns of the table that ``source`` names, as its database declares them.

    Raises Unsupported for a source that declares none; otherwise as ``Checkable.check``.
    """
    checked = check_source(source, "reading the columns of a table")
    if checked.kind not in _DESCRIBED or "table" not in checked.parameters:
        raise Unsupported(
            f"{checked.kind.upper()} does not tell its columns",
            where="the column list",
            fix="declare the columns, or name a TABLE of MYSQL, POSTGRESQL, CLICKHOUSE or SQLITE",
        )
    unknown = (Column("unknown", pa.string()),)
    asked = Definition(str(checked.parameters["table"]), unknown, (), checked, LayoutSpec("direct"))
    opened = _DESCRIBED[checked.kind](asked, data_dir or Path())
    try:
        return opened.columns()
    finally:
        opened.close()


def open_layout(definition: Definition, resources: Resources) -> Layout:
    """The layout of a checked definition over its source."""
    source, kind = OneRowPerKey(definition, open_source(definition, resources)), definition.layout.kind
    if kind == "direct":
        return Direct(definition, source)
    if kind in LOADED_LAYOUTS:
        return Loaded(definition, source)
    if kind == "cache":
        return Cache(definition, source, resources.redis_url)
    if kind == "hybrid_hash_cache":
        return Hybrid(definition, source, resources.redis_url, local_dir=resources.local_dir)
    if kind == "mutable_cache" and resources.writable is not None:
        stream = str(definition.layout.parameters["stream"])
        return MutableCache(definition, source, resources.writable(stream))
    raise InternalError(f"the layout {kind} cannot be opened", where=f'dictionary "{definition.name}"')
