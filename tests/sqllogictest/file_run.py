"""One file of a suite against one session."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from dovetail.changelog.errors import Domain, DovetailError
from tests.sqllogictest.check import Check, Status
from tests.sqllogictest.judge import judged, shown
from tests.sqllogictest.outside import outside
from tests.sqllogictest.script import Record, RecordKind, records
from tests.sqllogictest.session import SuiteSession
from tests.sqllogictest.touched import Touched, is_ordered, is_query, without_order

_SHOWN_ROWS = 60
_T = TypeVar("_T")


class TooLong(Exception):
    """A statement takes more than its time."""


@dataclass(frozen=True)
class Limits:
    """Seconds that a statement, and a file, may take."""

    statement_s: int = 60
    file_s: float = 900.0


@dataclass
class Attempt:
    """What became of a statement: ``status`` is PASS where it was carried out."""

    status: Status
    detail: str = ""
    trace: str = ""
    table: pa.Table | None = None


@dataclass
class FileRun:
    """
    as_view   ask every query a second time, as a materialized view
    absent    the relations that could not be made, with the status that what needs them gets
    tainted   those that lack a change
    uses      the relations named in the statement that has made one
    views     how many queries were asked as views
    """

    session: SuiteSession
    root: Path
    path: Path
    as_view: bool
    limits: Limits = Limits()
    absent: dict[str, Status] = field(default_factory=dict)
    tainted: set[str] = field(default_factory=set)
    uses: dict[str, frozenset[str]] = field(default_factory=dict)
    views: int = 0

    def checks(self) -> Iterator[Check]:
        began = time.monotonic()
        for record in records(self.path, self.root):
            if time.monotonic() - began > self.limits.file_s:
                yield self._check(record, Status.NA, f"the file took more than {self.limits.file_s:g} s")
                continue
            yield from self._taken(record)

    def _check(self, record: Record, status: Status, detail: str = "", **more: object) -> Check:
        return Check(str(self.path.relative_to(self.root)), record, status, detail, **more)  # type: ignore[arg-type]

    def _taken(self, record: Record) -> Iterator[Check]:
        touched = Touched.by(record.sql)
        if record.kind is RecordKind.MISSING:
            yield self._check(record, Status.NA, f"{record.sql}: there is no such file")
        elif record.kind is RecordKind.SYSTEM:
            yield self._check(record, Status.NA, "a command of a shell")
        elif record.condition.startswith("onlyif"):
            yield self._check(record, Status.NA, record.condition)
        elif reason := outside(record.sql):
            self._leave_out(record, touched, Status.NA)
            yield self._check(record, Status.NA, reason)
        elif block := self._block(touched):
            self._leave_out(record, touched, block)
            yield self._check(record, block, "needs what was refused, or left out, before")
        elif record.kind is RecordKind.STATEMENT:
            yield self._statement(record, touched)
        else:
            yield self._query(record, touched)
            if self.as_view and not record.fails and is_query(record.sql):
                yield from self._asked_as_view(record)

    # -- what earlier failures leave --

    def _block(self, touched: Touched) -> Status | None:
        """The status of a statement that needs what is not there; None where it may be tried."""
        names = self._needed(touched)
        lacking = {self.absent[name] for name in names if name in self.absent}
        if lacking:
            return Status.NA if lacking == {Status.NA} else Status.BLOCKED
        defines = touched.made or touched.dropped or touched.changed
        return Status.BLOCKED if not defines and names & self.tainted else None

    def _needed(self, touched: Touched) -> set[str]:
        """The names of the statement, and of those by which they were made."""
        found, fresh = set[str](), set(touched.names)
        while fresh:
            found |= fresh
            fresh = {one for name in fresh for one in self.uses.get(name, ())} - found
        return found - ({touched.made} if touched.made not in self.uses else set())

    @property
    def _names(self) -> set[str]:
        """The relations of the file, those that could not be made among them."""
        return {relation.name.lower() for relation in self.session.relations} | self.absent.keys()

    def _leave_out(self, record: Record, touched: Touched, status: Status) -> None:
        """The statement is not tried: what it would have made is not there, what it would have changed is as it was."""
        if touched.dropped:
            self.absent.pop(touched.dropped, None)
            self._drop(touched.dropped)
        if record.fails:
            return
        if touched.made:
            self.absent[touched.made] = status
        if touched.changed and touched.changed not in self.absent:
            self.tainted.add(touched.changed)

    def _drop(self, name: str) -> None:
        for relation in self.session.relations:
            if relation.name.lower() == name:
                with suppress(DovetailError):
                    self.session.drop(relation)

    def _remember(self, touched: Touched, attempt: Attempt) -> None:
        """What stands after a statement that should have been carried out."""
        if attempt.status is Status.PASS:
            if touched.made:
                self.absent.pop(touched.made, None)
                self.uses[touched.made] = touched.names & self._names - {touched.made}
            if touched.dropped:
                self.uses.pop(touched.dropped, None)
            self.tainted -= {touched.made, touched.dropped}
        elif touched.made:
            self.absent[touched.made] = Status.BLOCKED
        elif touched.dropped:
            self._drop(touched.dropped)
            self.absent.pop(touched.dropped, None)
        elif touched.changed:
            self.tainted.add(touched.changed)

    # -- running --

    def _statement(self, record: Record, touched: Touched) -> Check:
        attempt = self._attempt(lambda: self.session.execute(record.sql))
        if record.fails:
            return self._refusal(record, touched, attempt)
        self._remember(touched, attempt)
        return self._check(record, attempt.status, attempt.detail, trace=attempt.trace)

    def _refusal(self, record: Record, touched: Touched, attempt: Attempt) -> Check:
        """Of a record that expects an error."""
        if attempt.status is Status.PASS:
            self._remember(touched, attempt)
            if touched.changed:
                self.tainted.add(touched.changed)
            return self._check(record, Status.ACCEPTED, f"expected: {record.reason or ' '.join(record.results)}")
        status = Status.PASS if attempt.status is Status.REFUSED else attempt.status
        return self._check(record, status, attempt.detail, trace=attempt.trace)

    def _query(self, record: Record, touched: Touched) -> Check:
        attempt = self._attempt(lambda: self.session.execute(record.sql))
        if record.fails:
            return self._refusal(record, touched, attempt)
        if attempt.status is not Status.PASS:
            self._remember(touched, attempt)
            return self._check(record, attempt.status, attempt.detail, trace=attempt.trace)
        if attempt.table is None:
            status = Status.WRONG if record.results else Status.PASS
            return self._check(record, status, "no rows: it is a statement")
        return self._compared(record, attempt.table, ordered=is_ordered(record.sql))

    def _asked_as_view(self, record: Record) -> Iterator[Check]:
        there = {relation.name.lower() for relation in self.session.relations}
        if there.isdisjoint(Touched.by(record.sql).names):
            return
        self.views += 1
        name = f"suite_view_{self.views}"
        attempt = self._attempt(lambda: self._view_rows(name, record.sql))
        if attempt.table is None:
            yield self._check(record, attempt.status, attempt.detail, mode="view", trace=attempt.trace)
        else:
            yield self._compared(record, attempt.table, ordered=False, mode="view")
        self._drop(name)

    def _view_rows(self, name: str, query: str) -> pa.Table:
        unordered = without_order(query).strip()
        if unordered.startswith("(") and unordered.endswith(")") and unordered.count("(") == 1:
            unordered = unordered[1:-1]
        with suppress(DovetailError):
            columns = self.session.columns_of(query)
            if len(set(columns)) < len(columns):
                name = f"{name} ({', '.join(f'c{place}' for place in range(len(columns)))})"
        self.session.execute(f"CREATE MATERIALIZED VIEW {name} AS {unordered}")
        return self.session.rows_of(name.partition(" ")[0])

    def _compared(self, record: Record, table: pa.Table, *, ordered: bool, mode: str = "") -> Check:
        status = judged(record, table, ordered=ordered)
        if status is Status.PASS:
            return self._check(record, status, mode=mode)
        rows = shown(table)[:_SHOWN_ROWS]
        return self._check(record, status, mode=mode, got=rows, want=record.results[:_SHOWN_ROWS])

    def _attempt(self, run: Callable[[], pa.Table | None]) -> Attempt:
        try:
            with _within(self.limits.statement_s):
                return Attempt(Status.PASS, table=run())
        except DovetailError as error:
            status = Status.REFUSED if error.domain is Domain.USER else Status.CRASH
            return Attempt(status, _line(error), "" if status is Status.REFUSED else traceback.format_exc())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
            return Attempt(Status.CRASH, _line(error), traceback.format_exc())


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """Raises TooLong in what takes more time."""

    def ring(*_: object) -> None:
        raise TooLong(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _line(error: BaseException) -> str:
    lines = (line.strip() for line in str(error).splitlines())
    return f"{type(error).__name__}: {' | '.join(line for line in lines if line)}"
