"""What can be looked up: definitions of the catalog as right sides of lookup joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.changelog.formats.members import Member
from dovetail.changelog.schema import EVENT_TIME_TYPE, TIME, Column, Kind
from dovetail.changelog.suggest import suggestion
from dovetail.joins.dataflow.lookup import LookupTarget
from dovetail.sql.plan.nodes import Cover, LookupTable
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.statements import Clause, CreateDictionary, CreateStream, CreateView, Index
from dovetail.sql.transforms.static_join_step import default_of

_SHOWN = {"ttl": " s", "max_hot_key_count": "", "stream": "", "size_in_cells": ""}
"""The parameters of a layout that EXPLAIN shows, with their units."""


def of_dictionary(definition: CreateDictionary, alias: str) -> LookupTable:
    """A dictionary, or an external table."""
    names = tuple(column.name for column in definition.columns)
    return LookupTable(
        alias=alias,
        target=LookupTarget.EXTERNAL if definition.external else LookupTarget.DICTIONARY,
        name=definition.name,
        cover=Cover.ANY if definition.external else Cover.KEY,
        columns=tuple((f"{alias}.{name}", name) for name in names),
        declared=definition.columns,
        primary_key=definition.primary_key,
        kept=definition.source.name if definition.external else _kept(definition.layout),
    )


def _kept(layout: Clause) -> str:
    """The layout with the parameters that say how long and how much is kept."""
    shown = [f"{name}={layout.parameters[name]}{unit}" for name, unit in _SHOWN.items() if name in layout.parameters]
    return " ".join([layout.name, *shown])


def of_stream(
    stream: Stream, indexes: Sequence[Index], alias: str, cover: Cover, place: str, index: str = ""
) -> LookupTable:
    """The current rows of a keyed stream, TABLE or view; raises Unsupported where it has none."""
    schema = stream.schema
    if schema.kind == Kind.APPEND:
        raise Unsupported(
            f'"{schema.name}" is append-only: it has no current rows to look up',
            where=place,
            fix=f"declare {schema.name} as a TABLE or MUTABLE STREAM with a PRIMARY KEY, or join it as a stream",
        )
    if schema.version:
        raise Unsupported(
            f'"{schema.name}" keeps the row of the greatest {schema.version}, and a lookup the one that came last',
            where=place,
            fix=f"join {schema.name} as a stream, or declare it without version_column",
        )
    declared = {column.name for column in schema.columns}
    timed = stream.timed and TIME not in declared
    parts = tuple(Column(one.name, one.type) for one in schema.included)
    columns = (*schema.columns, *parts, *([Column(TIME, EVENT_TIME_TYPE)] if timed else ()))
    return LookupTable(
        alias=alias,
        target=LookupTarget.STREAM,
        name=schema.name,
        cover=cover,
        columns=tuple((f"{alias}.{column.name}", column.name) for column in columns),
        declared=columns,
        primary_key=schema.primary_key,
        indexes=tuple(one for one in indexes if set(one.columns) <= declared),
        index=index,
    )


def is_mutable(definition: object) -> bool:
    """Whether ``join_algorithm = 'direct'`` looks up its rows: a mutable stream, a table, a materialized view."""
    if isinstance(definition, CreateView):
        return definition.materialized
    return isinstance(definition, CreateStream) and definition.mutable


def attribute(definition: CreateDictionary, name: str, place: str) -> Column:
    """The column of a dictionary that dict_get names: any that is not part of its key."""
    attributes = {column.name: column for column in definition.columns if column.name not in definition.primary_key}
    if name not in attributes:
        raise UnknownName(
            f'the dictionary "{definition.name}" has no attribute "{name}"',
            where=place,
            fix=suggestion(name, attributes),
        )
    return attributes[name]


def attribute_defaults(definition: CreateDictionary) -> Mapping[str, Any]:
    """What dict_get gives for a missing key, by attribute: its DEFAULT, else the default of its type."""
    given = {column.name: Member.of(column).default for column in definition.columns}
    return {
        column.name: default_of(column.type).as_py() if given[column.name] is None else given[column.name]
        for column in definition.columns
        if column.name not in definition.primary_key
    }
