"""SESSION in FROM: its arguments, and the rows of a FROM item that are to be in sessions.

SESSION(t, time, gap [, longest])     RisingWave
session(s [, time], gap [, longest])     Timeplus; without a column over _tp_time

Among which rows they are, only the GROUP BY tells: ``sql.bind.groups.session_keys``.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.from_clause.windows import as_table, check_length, name_of, time_of, window_columns, with_bounds
from dovetail.sql.bind.scope import Visible, place_of
from dovetail.sql.plan.nodes import Sessions
from dovetail.sql.syntax.intervals import milliseconds

_FORM = "SESSION(stream, time, INTERVAL '5' MINUTE) or session(stream, time, 5m); the longest session may follow"


@dataclass(frozen=True)
class SessionCall:
    """``source`` is the FROM item in sessions: a name, or changelog(..) or table(..)."""

    source: exp.Table
    time: exp.Expr
    gap_ms: int
    longest_ms: int | None
    place: str

    @staticmethod
    def of(table: exp.Expr) -> SessionCall:
        """Raises SqlError for arguments that are not as above."""
        place = place_of(table, "FROM")
        arguments = list(table.this.expressions)
        lengths = [milliseconds(argument) for argument in arguments]
        given = [length for length in lengths if length is not None]
        names = [argument for argument, length in zip(arguments, lengths, strict=True) if length is None]
        if lengths[: len(names)] != [None] * len(names) or not 1 <= len(given) <= 2 or not 1 <= len(names) <= 2:
            raise SqlError(
                "SESSION takes other arguments: the gap is an INTERVAL, the same for all rows", where=place, fix=_FORM
            )
        for length in given:
            check_length(length, "the gap and the longest session", place, _FORM)
        longest = int(given[1]) if len(given) == 2 else None
        source = as_table(names[0], "session", place, _FORM)
        return SessionCall(source, time_of(names), int(given[0]), longest, place)

    @property
    def name(self) -> str:
        """What the item is called without an alias: as its source."""
        return name_of(self.source)


def in_sessions(call: SessionCall, from_item: FromItem, time: Visible) -> FromItem:
    """``from_item``, the source of ``call``, in sessions by ``time``."""
    start, end = window_columns(from_item, time, call.place)
    node = Sessions(from_item.node, time.internal, call.gap_ms, call.longest_ms, start, end, place=call.place)
    return with_bounds(from_item, node, time)
