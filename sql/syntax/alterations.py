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
from dovetail.changelog.errors import InternalError, SqlError, UnknownName, Unsupported
from dovetail.changelog.suggest import suggestion
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.grammar.settings import assignment, at_settings
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
    _, end = _elements(stream)
    made = _read(f"{stream.text[:end]}, {action.declaration}{stream.text[end:]}")
    if made.schema.included_as(action.name) is not None:
        return made
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


def _dropped(stream: CreateStream, action: DropColumn) -> CreateStream:
    if not _has(stream, action, "DROP COLUMN"):
        return stream
    if len(stream.columns) == 1:
        raise Unsupported(
            f'"{action.name}" is the only column of "{stream.name}"', where="DROP COLUMN", fix="DROP the stream"
        )
    spans, place = _place(stream, action.name)
    start, end = spans[place][1:]
    start, end = (start, spans[place + 1][1]) if place + 1 < len(spans) else (spans[place - 1][2], end)
    return _read(stream.text[:start] + stream.text[end:])


def _renamed(stream: CreateStream, action: RenameColumn) -> CreateStream:
    if not _has(stream, action, "RENAME COLUMN"):
        return stream
    spans, place = _place(stream, action.name)
    start, end = spans[place][1:]
    first = Dovetail().tokenize(stream.text[start:end])[0]
    former, declared = stream.text[start : start + first.end + 1], stream.text[start + first.end + 1 : end]
    new = exp.to_identifier(action.new).sql()
    return _read(f"{stream.text[:start]}{new}{declared} FORMERLY {former}{stream.text[end:]}")


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


def _place(stream: CreateStream, column: str) -> tuple[list[tuple[str, int, int]], int]:
    """The elements of the definition, and which of them is the column."""
    spans, _ = _elements(stream)
    # The last of several elements of one name is none: names of columns are told once.
    return spans, next(place for place, (first, _, _) in enumerate(spans) if first == column)


def _uses(stream: CreateStream) -> dict[str, tuple[str, ...]]:
    indexed = [column for index in stream.indexes for column in (*index.columns, *index.storing)]
    return {
        "of the primary key": stream.primary_key,
        "the event time": (stream.event_time,) if stream.event_time is not None else (),
        "of the watermark": (stream.watermark.column,) if stream.watermark is not None else (),
        "the version": (stream.version,),
        "of an index": tuple(indexed),
    }


def _elements(stream: CreateStream) -> tuple[list[tuple[str, int, int]], int]:
    """What stands in the brackets of a definition: first word, start and end of each; and where the bracket closes."""
    cursor = Cursor(stream.text, Dovetail().tokenize(stream.text))
    while not cursor.accept("("):
        cursor.advance()
    spans = []
    while not cursor.at(")"):
        tokens = cursor.nested()
        if not tokens:
            raise InternalError("a definition has an element of nothing", where=stream.name)
        of_a_column = not (tokens[0].text.upper() in ("INDEX", "FAMILY") and len(tokens) > 2 and tokens[2].text == "(")
        spans.append((str(tokens[0].text) if of_a_column else "", int(tokens[0].start), int(tokens[-1].end) + 1))
        cursor.accept(",")
    return spans, cursor.offset


def _read(text: str) -> CreateStream:
    made = parse_one(text)
    if not isinstance(made, CreateStream):
        raise InternalError("an altered stream is none", where=text)
    return made


def with_setting(view: CreateView, name: str, value: int | str) -> CreateView:
    """``view`` with ``name = value`` in its SETTINGS, which get it where they have none."""
    cursor = Cursor(view.text, Dovetail().tokenize(view.text))
    start, end, said = _settings_end(cursor, name)
    written = exp.Literal.string(value).sql() if isinstance(value, str) else value
    made = parse_one(f"{view.text[:start]}{said} = {written}{view.text[end:]}")
    if not isinstance(made, CreateView) or made.settings != {**view.settings, name: value}:
        raise InternalError("an altered view is none", where=view.text)
    return replace(made, with_data=view.with_data)


def _settings_end(cursor: Cursor, name: str) -> tuple[int, int, str]:
    """Which part of the text gives way to a setting: its own, else nothing behind the last one, or at the end; and
    what comes before its value.
    """
    depth = 0
    while not cursor.done and not (depth == 0 and at_settings(cursor)):
        depth += (cursor.word() == "(") - (cursor.word() == ")")
        cursor.index += 1
    if cursor.done:
        return cursor.offset, cursor.offset, f" SETTINGS {name}"
    cursor.expect("SETTINGS")
    cursor.accept("(")
    while True:
        start, found, _ = assignment(cursor)
        end = int(cursor.tokens[cursor.index - 1].end) + 1
        if found == name:
            return start, end, name
        if not cursor.accept(","):
            return end, end, f", {name}"
