"""The updating ASOF join against its reference and DuckDB, and what becomes of its state."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.operators.asof import AsofSpec
from dovetail.joins.reference.arrival import Arrived
from dovetail.joins.reference.asof import ReferenceAsofUpdating
from dovetail.joins.reference.rows import Record, Row
from tests.joins import harness
from tests.joins.alone import Alone
from tests.joins.hard_stream import answers, ports
from tests.joins.harness import (
    COMPARISONS,
    IDS,
    INNER_OR_LEFT,
    INPUTS,
    LEFT,
    RIGHT,
    Step,
    after,
    agree,
    poor_hashes,
    port,
    steps,
    table,
    watched,
)
from tests.tries import tries


def records(ingest: Ingest) -> st.SearchStrategy[list[Record]]:
    return harness.records(ingest, IDS, st.one_of(st.integers(0, 5), st.integers(0, 5), st.none()))


@settings(max_examples=tries(60))
@given(
    kind=INNER_OR_LEFT,
    comparison=st.sampled_from(COMPARISONS),
    inputs=st.tuples(st.sampled_from(INPUTS), st.sampled_from(INPUTS)),
    by_id=st.booleans(),
    tolerance=st.sampled_from([None, 0, 2]),
    null_safe=st.booleans(),
    data=st.data(),
)
def test_it_is_the_reference(
    kind: JoinKind,
    comparison: str,
    inputs: tuple[Ingest, Ingest],
    by_id: bool,
    tolerance: int | None,
    null_safe: bool,
    data: st.DataObject,
) -> None:
    left, right = inputs
    ties = ("r.id", "r.k") if by_id else ()
    spec = AsofSpec(
        kind, port(LEFT, left), port(RIGHT, right), "l.v", "r.w", comparison, ties, tolerance, (null_safe,) * null_safe
    )
    alone = Alone(spec)
    reference = ReferenceAsofUpdating(
        kind,
        Arrived(left, (0,), (0, 1)),
        Arrived(right, (0,), (0, 1)),
        (3, 3),
        (2, 2),
        comparison,
        (1, 0) if by_id else (),
        tolerance,
        (null_safe,),
    )
    agree(alone, reference, data.draw(steps(records(left), records(right))))


@settings(max_examples=tries(50))
@given(
    kind=INNER_OR_LEFT, comparison=st.sampled_from(COMPARISONS), left=st.lists(records(Ingest.CHANGES)), data=st.data()
)
def test_changes_of_an_operator_have_no_arrival(
    kind: JoinKind, comparison: str, left: list[list[Record]], data: st.DataObject
) -> None:
    """They are numbered as they come; their retractions are of rows that are there."""
    spec = AsofSpec(kind, port(LEFT, Ingest.CHANGES), port(RIGHT, Ingest.CHANGES), "l.v", "r.w", comparison)
    alone = Alone(spec)
    sides = Arrived(Ingest.CHANGES, (0,)), Arrived(Ingest.CHANGES, (0,))
    reference = ReferenceAsofUpdating(kind, *sides, (3, 3), (2, 2), comparison)
    held: Counter[Row] = Counter()
    for left_records in left:
        founded = []
        for row, delta in left_records:
            if held[row] + delta >= 0:
                held[row] += delta
                founded.append((row, delta))
        right_records = data.draw(records(Ingest.CHANGES))
        assert alone.on_batch(founded, right_records) == reference.on_batch(founded, right_records)


@settings(max_examples=tries(60))
@given(
    kind=INNER_OR_LEFT,
    comparison=st.sampled_from(COMPARISONS),
    by_id=st.booleans(),
    tolerance=st.sampled_from([None, 0, 2]),
    data=st.data(),
)
def test_cleaning_changes_no_output(
    kind: JoinKind, comparison: str, by_id: bool, tolerance: int | None, data: st.DataObject
) -> None:
    ties = ("r.id",) if by_id else ()
    left, right = (watched(port(schema, Ingest.APPEND)) for schema in (LEFT, RIGHT))
    alone = Alone(AsofSpec(kind, left, right, "l.v", "r.w", comparison, ties, tolerance))
    reference = ReferenceAsofUpdating(
        kind,
        Arrived(Ingest.APPEND, (0,)),
        Arrived(Ingest.APPEND, (0,)),
        (3, 3),
        (2, 2),
        comparison,
        (1,) if by_id else (),
        tolerance,
    )
    watermarks = [0, 0]
    move = st.integers(0, 3)
    rows = records(Ingest.APPEND)
    drawn = data.draw(st.lists(st.tuples(rows, rows, st.tuples(move, move), st.booleans()), max_size=10))
    for left_records, right_records, moves, restart in drawn:
        on_time = [after(part, first) for part, first in zip((left_records, right_records), watermarks, strict=True)]
        assert alone.on_batch(*on_time) == reference.on_batch(*on_time)
        watermarks = [held + moved for held, moved in zip(watermarks, moves, strict=True)]
        assert alone.on_watermark(*watermarks) == Counter()
        if restart:
            alone.restart()
    final = [((key, "z", 100), 1) for key in (0, 1, 2)]
    assert alone.on_batch(final, final) == reference.on_batch(final, final)
    alone.on_watermark(1000, 1000)
    assert alone.held("0.left") == 0
    assert alone.held("0.left.open") == (3 if comparison == "<" and tolerance is None else 0)
    assert alone.held() <= 3 if tolerance is None else alone.held() == 0


@settings(max_examples=tries(20))
@given(comparison=st.sampled_from(COMPARISONS), data=st.data())
def test_after_all_batches_it_is_the_join_of_duckdb(comparison: str, data: st.DataObject) -> None:
    """With times that no two right rows of a key share: for equal ones the engines have rules of their own."""
    rows = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.integers(0, 30)), max_size=25)
    left = data.draw(rows)
    right = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), unique=True, max_size=25))
    alone = Alone(
        AsofSpec(JoinKind.LEFT, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND), "l.v", "r.w", comparison)
    )
    current: Counter[Row] = Counter()
    for first in range(0, 25, 6):
        current.update(
            alone.on_batch(
                [(row, 1) for row in left[first : first + 6]],
                [((key, "r", at), 1) for key, at in right[first : first + 6]],
            )
        )
    tables = {"l": table(LEFT, left), "r": table(RIGHT, [(key, "r", at) for key, at in right])}
    with duckdb.connect() as engine:
        for name, content in tables.items():
            engine.register(name, content)
        found = engine.sql(
            f'SELECT * FROM l ASOF LEFT JOIN r ON l."l.k" = r."r.k" AND l."l.v" {comparison} r."r.w"'
        ).fetchall()
    assert +current == Counter(found)


@settings(max_examples=tries(20))
@given(comparison=st.sampled_from(COMPARISONS), drawn=steps(records(Ingest.UPSERT), records(Ingest.UPSERT)))
def test_equal_hashes_are_never_taken_for_equal_keys(comparison: str, drawn: list[Step]) -> None:
    sides = Arrived(Ingest.UPSERT, (0,), (0, 1)), Arrived(Ingest.UPSERT, (0,), (0, 1))
    reference = ReferenceAsofUpdating(JoinKind.LEFT, *sides, (3, 3), (2, 2), comparison, (1,))
    left, right = port(LEFT, Ingest.UPSERT), port(RIGHT, Ingest.UPSERT)
    with poor_hashes():
        agree(Alone(AsofSpec(JoinKind.LEFT, left, right, "l.v", "r.w", comparison, ("r.id",))), reference, drawn)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), [float("-inf"), -2.5, -0.0, 1e-300, 0.5, float("inf")]),
        (pa.decimal128(12, 2), [Decimal("-2.50"), Decimal("0.00"), Decimal("0.01"), Decimal("7.00")]),
        (pa.timestamp("us", tz="UTC"), [datetime(2024, 1, 1, second=n, tzinfo=UTC) for n in range(4)]),
        (pa.uint64(), [0, 1, 1 << 40, 1 << 63, (1 << 63) + 1, (1 << 64) - 1]),
        (pa.int64(), [-(1 << 63), -1, 0, (1 << 62) + 1, (1 << 63) - 1]),
    ],
)
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_any_column_that_has_an_order_does(kind: pa.DataType, values: list[object], comparison: str) -> None:
    left, right = (pa.schema([(f"{side}.k", pa.int64()), (f"{side}.v", kind)]) for side in "lr")
    alone = Alone(
        AsofSpec(
            JoinKind.LEFT,
            Port(left, ("l.k",), Ingest.APPEND),
            Port(right, ("r.k",), Ingest.APPEND),
            "l.v",
            "r.v",
            comparison,
        )
    )
    sides = Arrived(Ingest.APPEND, (0,)), Arrived(Ingest.APPEND, (0,))
    reference = ReferenceAsofUpdating(JoinKind.LEFT, *sides, (2, 2), (1, 1), comparison)
    rows: list[Record] = [((1, value), 1) for value in values]
    for batch in ((rows[::2], rows[1::2]), (rows[1::2], []), ([], rows[::2])):
        assert alone.on_batch(*batch) == reference.on_batch(*batch)


def test_many_rows_of_one_key_and_time_are_no_product() -> None:
    """20,000 left rows whose nearest time has 20,000 right rows: each is looked at once, not for each left row."""
    many = 20_000
    ties = ("r.id",)
    spec = AsofSpec(JoinKind.INNER, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND), "l.v", "r.w", ">=", ties)
    alone = Alone(spec)
    alone.on_batch([((1, "x", 10 + n), 1) for n in range(many)], [])
    joined = alone.on_batch([], [((1, f"{n:05}", 10), 1) for n in range(many)])
    assert len(joined) == many
    assert {row[4] for row in joined} == {"00000"}
    assert sum(alone.on_batch([], [((1, "", 10), 1)]).values()) == 0


def test_only_the_rows_up_to_the_next_right_time_are_matched_anew() -> None:
    alone = Alone(AsofSpec(JoinKind.LEFT, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND), "l.v", "r.w", ">="))
    lefts = [((1, str(at), at), 1) for at in range(10)]
    alone.on_batch(lefts, [((1, "a", 2), 1), ((1, "c", 8), 1)])
    changes = alone.on_batch([], [((1, "b", 5), 1)])
    assert {row[2] for row in changes} == {5, 6, 7}
    assert sorted(changes.values()) == [-1] * 3 + [1] * 3


def test_what_is_final_goes_when_the_watermarks_pass_it() -> None:
    left, right = (watched(port(schema, Ingest.APPEND)) for schema in (LEFT, RIGHT))
    alone = Alone(AsofSpec(JoinKind.LEFT, left, right, "l.v", "r.w", ">="))
    rows = [((1, "", at), 1) for at in range(100)]
    alone.on_batch(rows, rows)
    alone.on_watermark(50, 70)
    assert (alone.held("0.left"), alone.held("0.right"), alone.held("0.right.before")) == (30, 50, 1)
    alone.restart()
    alone.on_watermark(100, 100)
    assert (alone.held("0.left"), alone.held("0.right"), alone.held("0.right.before")) == (0, 0, 1)
    assert alone.on_batch([((1, "x", 200), 1)], []) == Counter({(1, "x", 200, 1, "", 99): 1})


def test_looking_forward_a_left_row_stays_until_a_right_row_that_it_found_has_been_passed() -> None:
    left, right = (watched(port(schema, Ingest.APPEND)) for schema in (LEFT, RIGHT))
    alone = Alone(AsofSpec(JoinKind.LEFT, left, right, "l.v", "r.w", "<="))
    alone.on_batch([((1, "x", 5), 1), ((2, "y", 6), 1)], [((1, "a", 7), 1)])
    alone.on_watermark(20, 20)
    assert (alone.held("0.left"), alone.held("0.left.open"), alone.held("0.right")) == (0, 1, 0)
    alone.restart()
    row = (2, "y", 6)
    assert alone.on_batch([], [((2, "b", 30), 1)]) == Counter({(*row, None, None, None): -1, (*row, 2, "b", 30): 1})
    assert alone.on_batch([], [((2, "c", 25), 1)]) == Counter({(*row, 2, "b", 30): -1, (*row, 2, "c", 25): 1})
    alone.on_watermark(26, 26)
    assert (alone.held("0.left.open"), alone.held("0.right")) == (0, 1)


def test_updating_inputs_keep_everything() -> None:
    left, right = watched(port(LEFT, Ingest.UPSERT)), watched(port(RIGHT, Ingest.APPEND))
    alone = Alone(AsofSpec(JoinKind.INNER, left, right, "l.v", "r.w", ">="))
    alone.on_batch([((1, "x", 5), 1)], [((1, "a", 3), 1), ((1, "b", 4), 1)])
    alone.on_watermark(100, 100)
    assert alone.on_batch([((1, "x", 3), 1)], []) == Counter({(1, "x", 5, 1, "b", 4): -1, (1, "x", 3, 1, "a", 3): 1})


def test_the_hard_stream() -> None:
    """Its late rows are left out: there are watermarks."""
    left, right = ports(Ingest.CHANGELOG, Ingest.CHANGELOG, timed=True)
    spec = AsofSpec(JoinKind.LEFT, left, right, "l.v", "r.w", ">=")
    assert answers(spec) == [
        ["+ - n 10 | - - -", "+ 1 a 10 | 1 s 10", "+ 2 b - | - - -"],
        ["+ 1 a 10 | 1 r 10", "+ 1 a 10 | 1 r 10", "- 1 a 10 | 1 s 10"],
        ["+ 1 e 30 | 1 w 25", "+ 3 c 20 | 3 u 18", "- 1 a 10 | 1 r 10"],
        [],
        ["+ 4 z 99 | 4 y 99"],
    ]
