"""Opens what a definition names: its source, and the layout that keeps its rows.

The driver of a database is imported when the first of its dictionaries is opened: one takes as long as a whole command
that has no use for it.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa

from dovetail.changelog.errors import InternalError, Unsupported
from dovetail.changelog.schema import Column
from dovetail.dictionaries.check import check_source
from dovetail.dictionaries.contracts import Layout, Source
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, SourceSpec
from dovetail.dictionaries.definition.kinds import LOADED_LAYOUTS
from dovetail.dictionaries.layouts.direct import Direct
from dovetail.dictionaries.layouts.loaded import Loaded
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.resources import Resources
from dovetail.dictionaries.sources.file import FileSource
from dovetail.dictionaries.sources.one_row_per_key import OneRowPerKey
from dovetail.dictionaries.sources.stream import StreamSource

ON_DEMAND = (
    "dovetail.dictionaries.layouts.cache",
    "dovetail.dictionaries.layouts.hybrid",
    "dovetail.dictionaries.layouts.mutable_cache",
    "dovetail.dictionaries.sources.clickhouse",
    "dovetail.dictionaries.sources.http",
    "dovetail.dictionaries.sources.mysql",
    "dovetail.dictionaries.sources.postgresql",
    "dovetail.dictionaries.sources.sqlite",
)
"""What is imported when it is opened. A process that others are forked from imports it at its start."""


class Checkable(Source, Protocol):
    """A source that says at once whether it can be asked."""

    def check(self) -> None:
        """Connects, and reads no row, in bounded time.

        Raises ServiceUnavailable when it does not answer; SourceRefused for a wrong password, a missing database or
        table; UnknownName or Unsupported for a column that is missing or of a type that does not fit.
        """
        ...


class DescribedSource(Checkable, Protocol):
    """A source that knows the columns of what it reads."""

    def columns(self) -> list[Column]: ...

    def close(self) -> None: ...


def _mysql(definition: Definition, outside: Outside) -> DescribedSource:
    from dovetail.dictionaries.sources.mysql import MySqlSource

    return MySqlSource(definition, outside)


def _postgresql(definition: Definition, outside: Outside) -> DescribedSource:
    from dovetail.dictionaries.sources.postgresql import PostgreSqlSource

    return PostgreSqlSource(definition, outside)


def _clickhouse(definition: Definition, outside: Outside) -> DescribedSource:
    from dovetail.dictionaries.sources.clickhouse import ClickHouseSource

    return ClickHouseSource(definition, outside)


def _sqlite(definition: Definition, outside: Outside) -> DescribedSource:
    from dovetail.dictionaries.sources.sqlite import SqliteSource

    return SqliteSource(definition, outside)


def _http(definition: Definition, resources: Resources) -> Checkable:
    from dovetail.dictionaries.sources.http import HttpSource

    return HttpSource(definition, resources.outside)


_DESCRIBED: Mapping[str, Callable[[Definition, Outside], DescribedSource]] = {
    "mysql": _mysql,
    "postgresql": _postgresql,
    "clickhouse": _clickhouse,
    "sqlite": _sqlite,
}
_SOURCES: Mapping[str, Callable[[Definition, Resources], Checkable]] = {
    "timeplus": StreamSource,
    "table": StreamSource,
    "file": lambda definition, resources: FileSource(definition, resources.outside),
    "http": _http,
}


def open_source(definition: Definition, resources: Resources) -> Checkable:
    """The source of a checked definition. Nothing is connected to before it is first asked."""
    kind = definition.source.kind
    if kind in _DESCRIBED:
        return _DESCRIBED[kind](definition, resources.outside)
    return _SOURCES[kind](definition, resources)


def open_described(definition: Definition, resources: Resources) -> DescribedSource:
    """As ``open_source``. Raises Unsupported for a source that does not know its columns."""
    kind = definition.source.kind
    if kind not in _DESCRIBED:
        raise Unsupported(
            f"the columns of {kind.upper()} are not known by themselves",
            where=f'"{definition.name}"',
            fix="name the columns",
        )
    return _DESCRIBED[kind](definition, resources.outside)


def reflect(source: SourceSpec, outside: Outside) -> list[Column]:
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
    minimal = Definition(str(checked.parameters["table"]), unknown, (), checked, LayoutSpec("direct"))
    opened = _DESCRIBED[checked.kind](minimal, outside)
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
        from dovetail.dictionaries.layouts.cache import Cache

        return Cache(definition, source, resources.redis_url)
    if kind == "hybrid_hash_cache":
        from dovetail.dictionaries.layouts.hybrid import Hybrid

        return Hybrid(definition, source, resources.redis_url, local_dir=resources.local_dir)
    if kind == "mutable_cache" and resources.writable is not None:
        from dovetail.dictionaries.layouts.mutable_cache import MutableCache

        stream = str(definition.layout.parameters["stream"])
        return MutableCache(definition, source, resources.writable(stream))
    raise InternalError(f"the layout {kind} cannot be opened", where=f'dictionary "{definition.name}"')
