"""What the names after FROM stand for, as the binder asks the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from changelog.schema import StreamSchema
from joins.dataflow.ports import Watermark
from sql.syntax.rules import Rules
from sql.syntax.statements import CreateDictionary, CreateIndex, CreateStream, CreateView, Index


class Named(Protocol):
    """An entry of the catalog."""

    @property
    def definition(self) -> CreateStream | CreateView | CreateDictionary | CreateIndex: ...


class Relations(Protocol):
    """The catalog, as far as planning needs it. ``get`` raises UnknownName with the nearest name."""

    def get(self, name: str) -> Named: ...

    def indexes(self, stream: str) -> Sequence[Index]:
        """The indexes of a stream or view: those in its declaration first."""
        ...


@dataclass(frozen=True)
class Stream:
    """A topic with its schema. ``trusted``: a query of Dovetail writes it. ``timed``: ``_tp_time`` is part of ``*``."""

    schema: StreamSchema
    topic: str
    rules: Rules
    watermark: Watermark | None = None
    trusted: bool = False

    @property
    def timed(self) -> bool:
        return self.rules == Rules.TIMEPLUS and not self.trusted

    @staticmethod
    def declared(statement: CreateStream) -> Stream:
        return Stream(statement.schema, statement.topic or statement.name, statement.rules, statement.watermark)
