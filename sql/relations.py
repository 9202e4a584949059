"""What the names after FROM stand for, as the binder asks the catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.changelog.schema import StreamSchema
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.clock_table import CLOCK, clock
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import (
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateStream,
    CreateView,
    Index,
)


class Named(Protocol):
    """An entry of the catalog."""

    @property
    def definition(self) -> CreateStream | CreateView | CreateDictionary | CreateIndex | CreateFunction: ...

    @property
    def written(self) -> Stream | None:
        """The stream that a materialized view writes; None where only its plan tells."""
        ...


HasRows = CreateStream | CreateView | CreateDictionary | CreateIndex
"""What may stand in FROM."""

Sizes = Callable[[str], int | None]
"""Topic → about how many records it has; None where that is not known."""


def with_rows(definition: HasRows | CreateFunction, place: str) -> HasRows:
    """``definition``, which ``place`` names in FROM. Raises Unsupported for a function."""
    if isinstance(definition, CreateFunction):
        raise Unsupported(
            f'"{definition.name}" is a function, and has no rows',
            where=place,
            fix=f"SELECT {definition.name}(x) FROM a stream",
        )
    return definition


class Relations(Protocol):
    """The catalog, as far as planning needs it. ``get`` raises UnknownName with the nearest name."""

    def get(self, name: str) -> Named: ...

    def indexes(self, stream: str) -> Sequence[Index]:
        """The indexes of a stream or view: those in its declaration first."""
        ...

    def function(self, name: str) -> CreateFunction | None:
        """The function of this name, in lower case, that a user has made."""
        ...


@dataclass(frozen=True)
class Dependencies:
    """What the text of a query names beside the relations that it reads: functions that users have made, and views
    whose queries are parts of it, those that are not materialized.
    """

    functions: tuple[str, ...] = ()
    views: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """What a query and the views below it have asked of the catalog so far: each thing is found out once."""

    entries: dict[str, Named] = field(default_factory=dict)
    rules: dict[str, Rules] = field(default_factory=dict)
    """Of the expressions of a view."""
    written: dict[str, Stream] = field(default_factory=dict)
    """By materialized views."""


@dataclass(frozen=True)
class _Clock:
    definition: CreateStream
    written: Stream | None = None


@dataclass
class TrackedCatalog:
    """The catalog, with note taken of the functions that a query calls, and the views whose queries are parts of it."""

    catalog: Relations
    known: Known = field(default_factory=Known)
    called: set[str] = field(default_factory=set)
    inlined_views: set[str] = field(default_factory=set)

    @staticmethod
    def of(catalog: Relations) -> TrackedCatalog:
        """With no note taken yet: what one query reads may be another query, which calls functions of its own."""
        return (
            TrackedCatalog(catalog.catalog, catalog.known)
            if isinstance(catalog, TrackedCatalog)
            else TrackedCatalog(catalog)
        )

    @property
    def dependencies(self) -> Dependencies:
        return Dependencies(tuple(sorted(self.called)), tuple(sorted(self.inlined_views)))

    def get(self, name: str) -> Named:
        if name not in self.known.entries:
            self.known.entries[name] = self._found(name)
        return self.known.entries[name]

    def _found(self, name: str) -> Named:
        try:
            return self.catalog.get(name)
        except UnknownName:
            if name != CLOCK:
                raise
            # It is made with the first query that asks it, and planned before.
            return _Clock(clock())

    def indexes(self, stream: str) -> Sequence[Index]:
        return self.catalog.indexes(stream)

    def function(self, name: str) -> CreateFunction | None:
        found = self.catalog.function(name)
        if found is not None:
            self.called.add(found.name)
        return found


@dataclass(frozen=True)
class Stream:
    """A topic with its schema. ``trusted``: a query of Dovetail writes it, and tells ``upstream_watermarks``.
    ``timed``: ``_tp_time`` is part of ``*``.
    """

    schema: StreamSchema
    topic: str
    rules: Rules
    watermark: Watermark | None = None
    upstream_watermarks: tuple[Watermark, ...] = ()
    trusted: bool = False

    @property
    def timed(self) -> bool:
        return self.rules == Rules.TIMEPLUS and not self.trusted

    @staticmethod
    def declared(statement: CreateStream) -> Stream:
        return Stream(statement.schema, statement.topic or statement.name, statement.rules, statement.watermark)
