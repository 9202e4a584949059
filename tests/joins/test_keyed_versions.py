"""Upserts whose row of the greatest version stands, against plain loops, on random records cut into random batches."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changelog.changes import DELTA
from changelog.schema import ARRIVAL
from joins.dataflow import Ingest, Keyed, Port
from joins.keyed import KeyedOperator
from joins.store import RunStore

SCHEMA = pa.schema([("k", pa.int64()), ("value", pa.string()), ("rev", pa.int64())])
Row = tuple[int, str, int | None]
Upsert = tuple[Row, int]

upserts = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 3))),
        st.sampled_from([1, 1, 1, -1]),
    ),
    min_size=1,
    max_size=8,
)


def operator(store: RunStore, first_stays: bool) -> KeyedOperator:
    port = Port(SCHEMA, ("k",), Ingest.UPSERT, ("k",), version="rev", first_stays=first_stays)
    return KeyedOperator(Keyed(port), store, "0")


def batch(records: list[Upsert], first: int) -> pa.Table:
    columns = [pa.array([row[i] for row, _ in records], field.type) for i, field in enumerate(SCHEMA)]
    table = pa.Table.from_arrays(columns, schema=SCHEMA)
    table = table.append_column(ARRIVAL, pa.array(range(first, first + len(records)), pa.int64()))
    return table.append_column(DELTA, pa.array([delta for _, delta in records], pa.int32()))


def changes(running: KeyedOperator, records: list[Upsert], first: int = 0) -> Counter[Row]:
    found = running.on_batch([batch(records, first)]).table.to_pylist()
    total: Counter[Row] = Counter()
    for row in found:
        total[row["k"], row["value"], row["rev"]] += row[DELTA]
    return Counter({row: count for row, count in total.items() if count})


def taken(held: dict[int, Row], records: list[Upsert], first_stays: bool) -> None:
    """The rows that stand after the records."""
    for row, delta in records:
        old = held.get(row[0])
        if delta < 0:
            held.pop(row[0], None)
        elif old is None or _rank(row) > _rank(old) or (_rank(row) == _rank(old) and not first_stays):
            held[row[0]] = row


def _rank(row: Row) -> int:
    return -1 if row[2] is None else row[2]


@settings(max_examples=200, deadline=None)
@given(first_stays=st.booleans(), batches=st.lists(upserts, max_size=6))
def test_the_row_of_the_greatest_version_stands(first_stays: bool, batches: list[list[Upsert]]) -> None:
    running, held = operator(RunStore(), first_stays), dict[int, Row]()
    for number, records in enumerate(batches):
        before = Counter(held.values())
        taken(held, records, first_stays)
        expected = Counter(held.values())
        expected.subtract(before)
        found = changes(running, records, number * 100)
        assert found == Counter({row: count for row, count in expected.items() if count})


@pytest.mark.parametrize(("first_stays", "stands"), [(True, "a"), (False, "c")])
def test_equal_versions(first_stays: bool, stands: str) -> None:
    running = operator(RunStore(), first_stays)
    changes(running, [((1, "a", 5), 1), ((1, "b", 4), 1)])
    changes(running, [((1, "c", 5), 1)], 10)
    found = changes(running, [((1, "", None), -1)], 20)
    assert found == {(1, stands, 5): -1}


def test_a_delete_takes_the_version_along() -> None:
    running = operator(RunStore(), first_stays=False)
    changes(running, [((1, "a", 9), 1), ((1, "", None), -1)])
    assert changes(running, [((1, "b", 2), 1)], 10) == {(1, "b", 2): 1}
