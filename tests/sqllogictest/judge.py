"""Whether the rows of an answer are those that a record expects."""

from __future__ import annotations

import pyarrow as pa

from tests.sqllogictest import values
from tests.sqllogictest.check import Status
from tests.sqllogictest.script import Record


def judged(record: Record, table: pa.Table, *, ordered: bool) -> Status:
    """``ordered``: whether the order of rows is a part of the answer, as the query says."""
    rows = values.rows(table)
    if record.sort == "valuesort":
        got = [values.canonical(value) for row in rows for value in row]
    else:
        got = [values.canonical(" ".join(row)) for row in rows]
    want = [values.canonical(line) for line in record.results]
    if got == want:
        return Status.PASS
    if sorted(got) != sorted(want):
        return Status.WRONG
    return Status.ORDER if ordered and record.sort == "nosort" else Status.PASS


def shown(table: pa.Table) -> tuple[str, ...]:
    return tuple(" ".join(row) for row in values.rows(table))
