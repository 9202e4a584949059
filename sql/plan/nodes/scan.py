"""Scan: a stream as a query reads it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import pyarrow as pa

from dovetail.changelog.schema import TIME, Column, Included, Kind, StreamSchema
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.clock_table import CLOCK, TIME_OF_CLOCK
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import (
    Form,
    declaration,
    expression,
    members,
    stream,
    watermark,
)
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.event_time import EventTime
from dovetail.sql.plan.nodes.node import Cut, Leaf, Node, declared_forms, names_read
from dovetail.sql.plan.nodes.upserts import UPSERTS, Upserts, ruling
from dovetail.sql.plan.time_text import watermark_text
from dovetail.sql.syntax.rules import Rules


@dataclass(frozen=True)
class Scan(Leaf):
    """A stream, view or ``changelog(x, k)`` under its alias.

    columns  internal name and declared name of each column that travels
    where    a condition on internal names, applied before anything else
    trusted  the changes were made by a query of Dovetail: consistent by construction
    latest   a fresh start begins at the end of the topic; ``seek`` says where it begins otherwise, if not at the
             beginning
    records  the stream as its records are read, where that is not ``stream``: the right side of an ASOF join takes each
             upsert for a row of its own, a version, and leaves deletes out
    deletes  with ``records``: a hidden column that is true where the record is a delete; such a version begins at the
             time of the record. '': deletes are left out
    stated   the WATERMARK clause of the stream; ``watermark`` is what the query goes by
    shared_with  the alias of a scan that has the same rows, in the same join: read and kept as those of it. '':
                 they are for themselves
    upstream_watermarks  of a view: the watermarks that its query tells, by column; one is taken where it is asked for
    rekeyed  by ``changelog(x, k)``: the records are no upserts, but are read as such
    """

    alias: str
    stream: StreamSchema
    topic: str
    rules: Rules
    columns: tuple[tuple[str, str], ...]
    where: Expr | None = None
    trusted: bool = False
    latest: bool = False
    seek: str = ""
    watermark: Watermark | None = None
    records: StreamSchema | None = None
    deletes: str = ""
    stated: Watermark | None = None
    shared_with: str = ""
    upstream_watermarks: tuple[Watermark, ...] = ()
    rekeyed: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [pa.field(internal, self.stream.types[name]) for internal, name in self.columns]
        return pa.schema([*fields, pa.field(self.deletes, pa.bool_())] if self.deletes else fields)

    @cached_property
    def forms(self) -> Mapping[str, str]:
        return declared_forms(self.columns, self.stream.columns)

    def internal(self, declared: str) -> str:
        return next(internal for internal, name in self.columns if name == declared)

    def travels(self, declared: Set[str]) -> bool:
        """Whether all these declared columns leave."""
        return declared <= {name for _, name in self.columns}

    # -- changes --

    @property
    def updates(self) -> bool:
        return self.stream.kind != Kind.APPEND

    @property
    def grows(self) -> bool:
        return self.stream.kind == Kind.APPEND

    def column_rises(self, name: str) -> bool:
        return self.stream.name == CLOCK and (name, TIME_OF_CLOCK) in self.columns

    @cached_property
    def upserts(self) -> Upserts | None:
        if self.stream.kind not in UPSERTS:
            return None
        version = self.stream.version
        key = tuple(self.internal(name) for name in self.stream.primary_key)
        return Upserts(key, self.internal(version) if version else "")

    @property
    def compared(self) -> bool:
        return self.updates and not self.trusted

    # -- keys --

    @cached_property
    def unique_keys(self) -> list[Key]:
        known = self.stream.primary_key if self.stream.kind in UPSERTS or self.trusted else ()
        return [tuple(self.internal(name) for name in known)] if known and self.travels(set(known)) else []

    @cached_property
    def not_null(self) -> Set[str]:
        given = {column.name for column in self.stream.columns if not column.nullable}
        given |= set(self.stream.primary_key if self.stream.kind in UPSERTS else ())
        return {internal for internal, name in self.columns if name in given}

    @cached_property
    def arrival_columns(self) -> Set[str]:
        return {internal for internal, name in self.columns if self.stream.of_record(name)}

    @cached_property
    def partition_key(self) -> Cut | None:
        key, travels = self.stream.primary_key, {name for _, name in self.columns}
        return tuple(self.column(self.internal(name)) if name in travels else None for name in key) if key else None

    # -- event time --

    @cached_property
    def output_watermark(self) -> Watermark | None:
        if self.watermark is None or not self.travels({self.watermark.column}):
            return None
        return replace(self.watermark, column=self.internal(self.watermark.column))

    def column_time(self, name: str) -> EventTime | None:
        declared = next((declared for internal, declared in self.columns if internal == name), None)
        return None if declared is None else EventTimeOrigin(declared, Fraction(0), self)

    # -- rules --

    def pruned(self, needed: Set[str]) -> Node:
        """At least one column travels, so that a batch has a length; an upsert stream keeps its primary key."""
        kept = needed | names_read(self.where)
        if self.stream.kind in UPSERTS:
            kept |= {self.internal(name) for name in ruling(self.stream)}
        if self.watermark is not None:
            kept |= {self.internal(self.watermark.column)}
        if self.deletes:
            kept |= {self.internal(TIME)}
        columns = tuple(column for column in self.columns if column[0] in kept)
        return replace(self, columns=columns or self.columns[:1])

    # -- words --

    @property
    def line(self) -> str:
        parts = [f"scan {self.stream.name}" + (f" as {self.alias}" if self.alias != self.stream.name else "")]
        parts += [f"topic={self.topic}", f"kind={self.stream.kind.value}"]
        if self.stream.primary_key:
            parts.append(f"key={','.join(self.stream.primary_key)}")
        if self.stream.version:
            stands = "first" if self.stream.first_stays else "last"
            parts.append(f"version={self.stream.version} (of equals the {stands})")
        if self.records is not None:
            parts.append("versions: every record" + (", deletes too" if self.deletes else " but deletes"))
        parts.append(f"columns={','.join(name for _, name in self.columns) or 'none'}")
        if self.where is not None:
            parts.append(f"where {self.where.readable}")
        if self.watermark is not None:
            parts.append(watermark_text(self.watermark, self.stream.types[self.watermark.column]))
        parts.append(f"from={'latest' if self.latest else self.seek or 'earliest'}")
        parts += [f"read and kept with {self.shared_with}"] if self.shared_with else []
        return "  ".join(parts)

    @property
    def canonical(self) -> Form:
        declared = {column.name: column for column in self.stream.readable}
        return members(
            node="scan",
            alias=self.alias,
            topic=self.topic,
            rules=self.rules.value,
            stream=stream(self.stream),
            columns=[self._scanned(internal, name, declared.get(name)) for internal, name in self.columns],
            where=expression(self.where),
            trusted=self.trusted,
            begins="latest" if self.latest else self.seek,
            watermark=watermark(self.watermark),
            records=None if self.records is None else stream(self.records),
            deletes=self.deletes,
            kept_with=self.shared_with,
        )

    def _scanned(self, internal: str, name: str, column: Column | Included | None) -> Form:
        """A column that travels; ``column`` is None of one that every record has."""
        kind = str(self.schema.field(internal).type)
        return {"name": internal, "of": name, "type": kind, **(declaration(column) if column is not None else {})}

    @property
    def aliases(self) -> tuple[str, ...]:
        return () if self.shared_with else (self.alias,)


@dataclass(frozen=True)
class EventTimeOrigin(EventTime):
    """A column that follows the column of ``scan`` with the declared name ``column``."""

    scan: Scan

    @property
    def type(self) -> pa.DataType:
        return self.scan.schema.field(self.scan.internal(self.column)).type

    @property
    def upstream_watermark(self) -> Watermark | None:
        """The watermark over it that the query tells which writes what is scanned."""
        return next((one for one in self.scan.upstream_watermarks if one.column == self.column), None)
