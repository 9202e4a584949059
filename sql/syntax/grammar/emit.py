"""The EMIT clause.

EMIT [CHANGELOG | STREAM | CHANGES] [PERIODIC d [REPEAT]] [ON UPDATE [WITH BATCH d]] [AFTER WINDOW CLOSE [WITH DELAY d]]
     [ON WINDOW CLOSE | FINAL] [AFTER KEY EXPIRE [IDENTIFIED BY c] WITH [ONLY] MAXSPAN d] [AND TIMEOUT d] [PER EVENT]
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.changelog.errors import Unsupported
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.dialect import DURATION, DURATION_UNITS
from dovetail.sql.syntax.intervals import unit_ms
from dovetail.sql.syntax.statements import Emit

_OF_WHEN = ("", "periodic", "on update")
_BEGINNINGS = (
    "CHANGELOG",
    "STREAM",
    "CHANGES",
    "PERIODIC",
    "ON UPDATE",
    "ON WINDOW CLOSE",
    "AFTER",
    "PER EVENT",
    "FINAL",
    "TIMEOUT",
)


def at_emit(cursor: Cursor) -> bool:
    """Whether an EMIT clause begins here; a column may be called emit as well."""
    return cursor.at("EMIT") and not cursor.at_operand and cursor.word(1) not in (",", ")", ".", "=", "FROM", "AS")


def emit_clause(cursor: Cursor) -> Emit:
    cursor.expect("EMIT")
    cursor.clause = "EMIT"
    if not cursor.at(*_BEGINNINGS):
        cursor.expect(*_BEGINNINGS)
    # Changes as they come are what a query emits in any case; ksqlDB says it.
    emit = Emit(form="" if cursor.accept("CHANGES") else cursor.accept("CHANGELOG", "STREAM").lower())
    while not cursor.done:
        extended = _option(cursor, emit)
        if extended is None:
            break
        emit = extended
    return emit


def emit_within(cursor: Cursor) -> Emit:
    """The EMIT clause of a query in brackets. Raises Unsupported for one that says which rows come out of it."""
    offset = cursor.offset
    emit = emit_clause(cursor)
    others = emit.delay_ms, emit.timeout_ms, emit.max_span_ms, emit.repeat or None
    if emit.policy not in _OF_WHEN or any(one is not None for one in others):
        cursor.fail(
            "EMIT of a query in brackets says when alone: PERIODIC, or ON UPDATE",
            fix="put it at the end of the statement; or give the query a view of its own, with its EMIT",
            offset=offset,
            kind=Unsupported,
        )
    return emit


def _option(cursor: Cursor, emit: Emit) -> Emit | None:
    """``emit`` with the option that comes next; None where none does."""
    if cursor.accept("PERIODIC"):
        return replace(
            emit, policy=emit.policy or "periodic", every_ms=duration_ms(cursor), repeat=bool(cursor.accept("REPEAT"))
        )
    if cursor.accept("ON UPDATE"):
        every = duration_ms(cursor) if cursor.accept("WITH BATCH") else emit.every_ms
        return replace(emit, policy="on update", every_ms=every)
    if cursor.accept("ON WINDOW CLOSE", "AFTER WINDOW CLOSE", "AFTER WATERMARK", "FINAL"):
        return replace(emit, policy="after window close")
    if cursor.accept("WITH DELAY", "AND DELAY"):
        return replace(emit, delay_ms=duration_ms(cursor))
    if cursor.accept("AFTER KEY EXPIRE"):
        if cursor.accept("IDENTIFIED BY"):
            cursor.dotted("a column")
        return replace(emit, policy="after key expire")
    if cursor.accept("WITH ONLY MAXSPAN", "WITH MAXSPAN"):
        return replace(emit, max_span_ms=duration_ms(cursor))
    if cursor.accept("AND TIMEOUT", "WITH TIMEOUT", "TIMEOUT"):
        return replace(emit, timeout_ms=duration_ms(cursor))
    if cursor.accept("PER EVENT"):
        return replace(emit, policy="per event")
    return None


def duration_ms(cursor: Cursor) -> int:
    """``10s``, ``INTERVAL '10' SECOND`` or ``INTERVAL '10 seconds'`` in milliseconds."""
    offset = cursor.offset
    words = _interval_words(cursor) if cursor.accept("INTERVAL") else _short_words(cursor)
    scale = unit_ms(words[1]) if len(words) == 2 else None
    if scale is None or not words[0].isdigit():
        cursor.fail("expected a length of time", fix="write 5s, 2m, 1h, or INTERVAL '5 SECONDS'", offset=offset)
    length = int(words[0]) * scale
    if length % 1:
        cursor.fail("expected whole milliseconds", fix=f"write {int(length) + 1}ms", offset=offset)
    return int(length)


def _interval_words(cursor: Cursor) -> list[str]:
    words = cursor.advance().text.split()
    return words if len(words) == 2 else [*words, cursor.name("a unit of time")]


def _short_words(cursor: Cursor) -> list[str]:
    token = cursor.current
    match = DURATION.fullmatch(token.text) if token is not None else None
    if match is None:
        return []
    cursor.advance()
    return [match[1], DURATION_UNITS[match[2]]]
