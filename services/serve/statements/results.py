"""What statements give, piece by piece, as the thread that runs them hands it over."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from threading import Event

import pyarrow as pa

from dovetail.services.session import Done, Live, Result, Rows, Session, Text
from dovetail.sql.syntax.statements import Statement


@dataclass(frozen=True)
class Begun:
    """A result begins. ``number``: of its statement, from 1. ``schema``: of its rows, None where it has none."""

    number: int
    kind: str
    schema: pa.Schema | None = None
    text: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowsPiece:
    """Some rows of the result that has begun."""

    rows: pa.Table


@dataclass(frozen=True)
class Finished:
    """It is complete. ``notes``: what was said while it was made."""

    number: int
    notes: tuple[str, ...] = ()


Piece = Begun | RowsPiece | Finished


def pieces(
    session: Session, statements: Sequence[Statement], notes: list[str], over: Event, *, until_idle: bool
) -> Generator[Piece, None, None]:
    """Carry out the statements in order, up to the first that fails. Ends early, between rows, once it is ``over``."""
    for number, statement in enumerate(statements, start=1):
        if over.is_set():
            return
        yield from _of(session.execute(statement), number, over, until_idle=until_idle)
        yield Finished(number, tuple(notes))
        notes.clear()


def _of(result: Result, number: int, over: Event, *, until_idle: bool) -> Iterator[Piece]:
    match result:
        case Done():
            yield Begun(number, "done", text=result.text)
        case Text():
            yield Begun(number, "text", text=result.text)
        case Rows():
            yield Begun(number, "rows", result.table.schema, notes=tuple(filter(None, [result.note])))
            yield RowsPiece(result.table)
        case Live():
            with result.changelog as changelog:
                yield Begun(number, "changelog", changelog.schema, notes=result.notes)
                for rows in changelog.batches(until_idle=until_idle):
                    if over.is_set():
                        return
                    if rows.num_rows:
                        yield RowsPiece(rows)
