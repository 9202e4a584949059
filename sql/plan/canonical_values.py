"""The canonical form of what nodes are made of: objects, lists, texts, numbers, truth values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from dovetail.changelog.schema import JSON, Column, Included, RecordFormat, StreamSchema
from dovetail.joins.aggregates.aggregation import Aggregation, Closing
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.expressions.expression import Expr

Form = str | int | bool | list["Form"] | dict[str, "Form"]
"""What JSON can say."""
Pairs = Iterable[tuple[str, str]]


def members(**given: Form | None) -> dict[str, Form]:
    """An object of the members that say something: so one that is added later, and says nothing by default, leaves the
    form of all other plans as it was.
    """
    return {name: value for name, value in given.items() if value is not None and not _silent(value)}


def _silent(value: Form) -> bool:
    return value is False or value in ("", [], {})


def expression(value: Expr | None) -> Form | None:
    return None if value is None else _typed(value)


def expressions(values: Iterable[Expr]) -> Form:
    return [_typed(value) for value in values]


def computed(columns: Iterable[tuple[str, Expr]]) -> Form:
    return [{"name": name, **_typed(expr)} for name, expr in columns]


def _typed(value: Expr) -> dict[str, Form]:
    return {"sql": value.text, "type": str(value.type)}


def fields(schema: pa.Schema) -> Form:
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def pairs(of: Pairs) -> Form:
    return [[left, right] for left, right in of]


def stream(declared: StreamSchema) -> Form:
    """The stream without its columns: those that a query does not read are nothing to it."""
    return members(
        name=declared.name,
        kind=declared.kind.value,
        primary_key=list(declared.primary_key),
        event_time=declared.event_time,
        version=declared.version,
        first_stays=declared.first_stays,
        value=record_format(declared.value),
        key=record_format(declared.key),
    )


def record_format(of: RecordFormat) -> Form | None:
    return None if of == JSON else members(kind=of.kind, options=pairs(of.options), envelope=of.envelope)


def declaration(column: Column | Included) -> Mapping[str, Form]:
    """What a record that lacks the column gives it; or which part of the record it is."""
    if isinstance(column, Included):
        return members(part=column.part.value, header=column.header)
    record_time = None if column.record_time is None else column.record_time.value
    # A DEFAULT of '' says something.
    default: Form | None = None if column.default is None else [column.default]
    required = not column.nullable
    return members(required=required, default=default, record_time=record_time, former=list(column.former))


def watermark(of: Watermark | None) -> Form | None:
    if of is None:
        return None
    return members(
        column=of.column,
        delay_ms=of.delay_ms,
        idle_ms=of.idle_ms,
        shared=of.shared,
        max_future_ms=of.max_future_ms,
        drops_late=of.drops_late,
        told=of.from_heartbeats,
    )


def aggregation(of: Aggregation) -> Form:
    return members(name=of.name, fold=of.fold.value, argument=of.argument, type=str(of.type), distinct=of.distinct)


def closing(of: Closing | None) -> Form | None:
    if of is None:
        return None
    return {"column": of.column, "shift": of.shift, **members(through=of.through)}
