"""What a query reads of a stream or view as it was: at a moment of its topic, or between two.

FROM table(v) AS OF '2026-11-24 10:00:00'        the rows that stood in v then
FROM changes(v, '2026-11-24', '2026-11-25')      what turns the rows of the one moment into those of the other
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import WIRE_DELTA, StreamSchema

FIX = "a time, '2026-11-24 10:00:00' or now() - INTERVAL '1' hour, or the last record of each partition, '0@123, 1@99'"
_RECORD = re.compile(r"(\d{1,9})@(\d{1,18}|-1)")
_MILLISECONDS_FROM = 10**11
"""A number that is not smaller counts milliseconds: as seconds it would be of the year 5138."""
_LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""


@dataclass(frozen=True)
class AtTime:
    """After all that was written at ``time_ms``, milliseconds since 1970 in UTC, or before."""

    time_ms: int

    def __str__(self) -> str:
        return str(datetime.fromtimestamp(self.time_ms / 1000, UTC).replace(tzinfo=None))[:23]


@dataclass(frozen=True)
class AtRecords:
    """After these records, of each partition one. ``last``: partition → offset, -1 where none of its records counts."""

    last: Mapping[int, int]

    def __str__(self) -> str:
        return ", ".join(f"{partition}@{offset}" for partition, offset in self.last.items())


@dataclass(frozen=True)
class ComputedMoment:
    """At a time that hangs on the clock. ``sql``: of the engine, over no columns; ``written``: by whoever asks."""

    sql: str
    written: str

    def __str__(self) -> str:
        return self.written


Moment = AtTime | AtRecords | ComputedMoment


@dataclass(frozen=True)
class Past:
    """What is read of ``relation``: its rows at ``until``, or with ``since`` the changes from the one moment to the
    other; None: up to now.
    """

    relation: str
    until: Moment | None
    since: Moment | None = None

    def __str__(self) -> str:
        if self.since is None:
            return f"{self.relation} as of {self.until}"
        return f"changes of {self.relation} from {self.since} to {self.until or 'now'}"


def moment_of_text(text: str, place: str) -> Moment:
    """Raises SqlError where ``text`` is none. A time without a zone is UTC."""
    pairs = [found for part in text.split(",") if (found := _RECORD.fullmatch(part.strip()))]
    if len(pairs) == text.count(",") + 1:
        last = {int(pair[1]): int(pair[2]) for pair in pairs}
        if len(last) < len(pairs):
            raise SqlError(f"'{text}' names a partition twice", where=place, fix="one record of each partition")
        return AtRecords(last)
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SqlError(f"'{text}' is no moment", where=place, fix=FIX) from None
    return moment_of_time(time if time.tzinfo else time.replace(tzinfo=UTC))


def moment_of_number(number: float) -> Moment:
    """``number``: seconds since 1970, or milliseconds where it is too large for that."""
    return AtTime(int(min(number if number >= _MILLISECONDS_FROM else number * 1000, _LAST_MS)))


def moment_of_time(time: datetime) -> AtTime:
    """``time`` has a zone."""
    return AtTime(int(time.timestamp() * 1000))


def changes_schema(stream: StreamSchema) -> pa.Schema:
    """The columns of ``changes(x, ..)``: those declared, and ``_tp_delta``, 1 or -1."""
    declared = [pa.field(column.name, column.type) for column in stream.columns]
    return pa.schema([*declared, pa.field(WIRE_DELTA, pa.int8())])
