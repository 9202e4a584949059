"""A stream's definition with columns more, fewer or renamed, a view's with another setting: its text is what the
catalog keeps, so that is changed.

What is not named stays as the user wrote it, and what comes out is read like any definition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from dovetail.changelog.encodings.registry import format_kind
from dovetail.changelog.errors import InternalError, SqlError, TextPlace, UnknownName, Unsupported
from dovetail.changelog.suggest import suggestion
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.faults import place
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import AddColumn, Alteration, CreateStream, CreateView, DropColumn, RenameColumn


def altered(stream: CreateStream, actions: Iterable[Alteration]) -> CreateStream:
    """Raises UnknownName for a column that is not there, SqlError for one that is or that the stream cannot miss."""
    for action in actions:
        _expect_named(stream, action)
        match action:
            case AddColumn():
                stream = _added(stream, action)
            case DropColumn():
                stream = _dropped(stream, action)
            case RenameColumn():
                stream = _renamed(stream, action)
            case _:
                assert_never(action)
    return stream


def _expect_named(stream: CreateStream, action: Alteration) -> None:
    kind = format_kind(stream.schema.value.kind)
    if not kind.named and not isinstance(action, RenameColumn):
        raise Unsupported(
            f'the records of "{stream.name}" are {kind.name}, which tells columns by their places: none comes or goes',
            where="ALTER",
            fix="CREATE a stream of the other columns over another topic",
        )


def _added(stream: CreateStream, action: AddColumn) -> CreateStream:
    if any(column.name == action.name for column in stream.schema.readable):
        if action.if_not_exists:
            return stream
        raise SqlError(f'"{stream.name}" has a column "{action.name}" already', fix="ADD COLUMN IF NOT EXISTS")
    made = _read_with(stream, action.declaration)
    if made.schema.included_as(action.name) is not None:
        return made
    if len(made.columns) == len(stream.columns):
        raise Unsupported(
            f"ADD takes a column, and {action.declaration} is none",
            where=place(action.declaration.script, action.declaration.offset, "ADD"),
            fix=f'CREATE OR REPLACE "{stream.name}" with it, which keeps its records',
        )
    column = made.schema.column(action.name)
    if not column.nullable and column.default is None:
        raise SqlError(
            f'the records that are there have no "{action.name}", and it cannot be NULL',
            where="ADD COLUMN",
            fix=f"{action.declaration} DEFAULT ..",
        )
    if (made.primary_key, made.kind, len(made.columns)) != (stream.primary_key, stream.kind, len(stream.columns) + 1):
        raise Unsupported("a column that is added is no key", where="ADD COLUMN", fix="CREATE OR REPLACE the stream")
    return made


def _read_with(stream: CreateStream, declaration: TextPlace) -> CreateStream:
    """``stream`` with one more element in its list. An error is one in the statement that adds it."""
    end = stream.spans[-1].end
    before = f"{stream.text[:end]}, "
    try:
        return _read(f"{before}{declaration}{stream.text[end:]}")
    except SqlError as fault:
        if not isinstance(fault.where, TextPlace):
            raise
        within = min(max(fault.where.offset - len(before), 0), len(declaration))
        where = place(declaration.script, declaration.offset + within, "ADD COLUMN")
        raise type(fault)(fault.what, where=where, fix=fault.fix) from None


def _dropped(stream: CreateStream, action: DropColumn) -> CreateStream:
    if not _has(stream, action, "DROP COLUMN"):
        return stream
    if len(stream.columns) == 1:
        raise Unsupported(
            f'"{action.name}" is the only column of "{stream.name}"', where="DROP COLUMN", fix="DROP the stream"
        )
    spans, index = stream.spans, _index(stream, action.name)
    last = index + 1 == len(spans)
    start, end = (spans[index - 1].end, spans[index].end) if last else (spans[index].start, spans[index + 1].start)
    return _read(stream.text[:start] + stream.text[end:])


def _renamed(stream: CreateStream, action: RenameColumn) -> CreateStream:
    if not _has(stream, action, "RENAME COLUMN"):
        return stream
    _, start, end = stream.spans[_index(stream, action.name)]
    name_end = start + Dovetail().tokenize(stream.text[start:end])[0].end + 1
    new, former = exp.to_identifier(action.new).sql(), stream.text[start:name_end]
    return _read(f"{stream.text[:start]}{new}{stream.text[name_end:end]} FORMERLY {former}{stream.text[end:]}")


def _has(stream: CreateStream, action: DropColumn | RenameColumn, where: str) -> bool:
    """Whether there is the column; raises where it must not change."""
    name, known = action.name, [column.name for column in stream.columns]
    part = stream.schema.included_as(name)
    if part is not None:
        raise Unsupported(
            f'"{name}" of "{stream.name}" is the {part.part.value} of the record, which its records go on having',
            where=where,
            fix="CREATE OR REPLACE it without the column",
        )
    if name not in known:
        if action.if_exists:
            return False
        raise UnknownName(f'"{stream.name}" has no column "{name}"', where=where, fix=suggestion(name, known))
    for use, columns in _uses(stream).items():
        if name in columns:
            raise Unsupported(f'"{name}" is {use} of "{stream.name}"', where=where, fix="CREATE OR REPLACE it")
    return True


def _index(stream: CreateStream, column: str) -> int:
    return [span.name for span in stream.spans].index(column)


def _uses(stream: CreateStream) -> dict[str, tuple[str, ...]]:
    indexed = [column for index in stream.indexes for column in (*index.columns, *index.storing)]
    return {
        "of the primary key": stream.primary_key,
        "the event time": (stream.event_time,) if stream.event_time is not None else (),
        "of the watermark": (stream.watermark.column,) if stream.watermark is not None else (),
        "the version": (stream.version,),
        "of an index": tuple(indexed),
    }


def _read(text: str) -> CreateStream:
    made = parse_one(text)
    if not isinstance(made, CreateStream):
        raise InternalError("an altered stream is not a stream", where=text)
    return made


def with_setting(view: CreateView, name: str, value: float | str) -> CreateView:
    """``view`` with ``name = value`` in its SETTINGS, which get it where they have none."""
    start, end, said = _place_of_setting(view, name)
    written = exp.Literal.string(value).sql() if isinstance(value, str) else value
    made = parse_one(f"{view.text[:start]}{said}{written}{view.text[end:]}")
    if not isinstance(made, CreateView) or made.settings != {**view.settings, name: value}:
        raise InternalError("an altered view is not a view", where=view.text)
    return replace(made, with_data=view.with_data)


def _place_of_setting(view: CreateView, name: str) -> tuple[int, int, str]:
    """Which part of the text gives way to the value of a setting, and what comes before it."""
    for given, start, end in view.spans:
        if given == name:
            return start, end, ""
    end = view.spans[-1].end if view.spans else len(view.text)
    return end, end, f", {name} = " if view.spans else f" SETTINGS {name} = "
