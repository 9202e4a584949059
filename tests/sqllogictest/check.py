"""What a record of a file came to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from tests.sqllogictest.script import Record


class Status(StrEnum):
    """
    pass      as expected; also an error where one is expected
    refused   an error of the user's where the suite expects success
    wrong     another answer
    order     the same rows in another order, where the query has ORDER BY; ties are not told apart
    accepted  no error where the suite expects one
    crash     an exception that is no error of the user's, or too long a time
    blocked   needs what was refused or has crashed before in this file
    na        outside of what Dovetail is for (``outside``), or for other engines only
    """

    PASS = "pass"
    REFUSED = "refused"
    WRONG = "wrong"
    ORDER = "order"
    ACCEPTED = "accepted"
    CRASH = "crash"
    BLOCKED = "blocked"
    NA = "na"


FAULTS = (Status.CRASH, Status.WRONG, Status.ORDER, Status.ACCEPTED)
"""Those that no suite may have; a refusal says itself what it lacks."""

_WORST_FIRST = (*FAULTS, Status.REFUSED, Status.BLOCKED, Status.PASS, Status.NA)


@dataclass(frozen=True)
class Check:
    """``entry``: the file that was run, which may have included that of the record. ``mode``: 'view' where the query
    was asked as a materialized view. ``got`` and ``want``: the rows, where they differ.
    """

    entry: str
    record: Record
    status: Status
    detail: str = ""
    mode: str = ""
    got: tuple[str, ...] = ()
    want: tuple[str, ...] = ()
    trace: str = ""

    @property
    def place(self) -> tuple[str, str, int, str]:
        return self.entry, self.record.file, self.record.line, self.mode

    def as_json(self) -> dict[str, Any]:
        record = self.record
        of_record = {"file": record.file, "line": record.line, "kind": record.kind, "expect": record.expects}
        mine = {name: value for name, value in asdict(self).items() if name != "record"}
        return {**mine, **of_record, "sql": record.sql, "pattern": record.reason}


def once(checks: Iterable[Check]) -> list[Check]:
    """A part that a file includes several times counts once, by its worst status."""
    found: dict[tuple[str, str, int, str], Check] = {}
    for check in checks:
        known = found.get(check.place)
        if known is None or _WORST_FIRST.index(check.status) < _WORST_FIRST.index(known.status):
            found[check.place] = check
    return list(found.values())
