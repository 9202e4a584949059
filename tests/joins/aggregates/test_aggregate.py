"""Groups against their reference and against exact sums: random rows cut into random batches, restarts between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.rows import Positions
from dovetail.changelog.schema import StreamSchema
from dovetail.joins.aggregates.aggregate import AggregateOperator, AggregateSpec
from dovetail.joins.aggregates.aggregation import Aggregation, Closing, Fold, GroupFunction
from dovetail.joins.aggregates.group_values import best
from dovetail.joins.dataflow.graph import Dataflow, Edge, OperatorNode, Outlet, Sink, TopicScan
from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.joins.reference.groups.aggregate import ReferenceAggregate
from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.reference.side import ReferenceSide
from dovetail.joins.state.durable_copy import DurableCopy
from dovetail.joins.state.order import is_ordered, ordinals
from dovetail.joins.state.store import SORT, RunStore
from tests.joins import harness
from tests.joins.harness import INPUTS, KEYED, decoded, net, table
from tests.tries import tries

ROWS = pa.schema([("k", pa.int64()), ("id", pa.string()), ("v", pa.int64()), ("d", pa.float64())])
FOLDS: tuple[tuple[Fold, str, bool], ...] = (
    (Fold.COUNT, "", False),
    (Fold.COUNT, "v", False),
    (Fold.COUNT, "v", True),
    (Fold.SUM, "v", False),
    (Fold.SUM, "v", True),
    (Fold.AVG, "v", False),
    (Fold.MIN, "v", False),
    (Fold.MAX, "v", False),
    (Fold.SUM, "d", False),
    (Fold.AVG, "d", True),
    (Fold.MIN, "d", False),
    (Fold.MAX, "id", False),
)


def aggregation(fold: Fold, argument: str, distinct: bool, schema: pa.Schema = ROWS) -> Aggregation:
    kind = pa.int64() if fold is Fold.COUNT else schema.field(argument).type
    if fold is Fold.AVG:
        kind = pa.float64()
    if fold is Fold.SUM and pa.types.is_decimal(kind):
        kind = pa.decimal128(38, kind.scale)
    if fold is Fold.SUM and kind == pa.uint64():
        kind = pa.int64()
    return Aggregation(f"{fold.value}({'distinct ' * distinct}{argument or '*'})", fold, argument, kind, distinct)


def dataflow(operator: AggregateSpec) -> Dataflow:
    keys = operator.port.keys
    return Dataflow(
        scans=(TopicScan(StreamSchema("t", ()), "t", (), (), 0),),
        nodes=(OperatorNode(1, operator, (0,), (Outlet(1),)),),
        edges=(Edge(0, 1, keys), Edge(1, 2, keys)),
        sink=Sink(1, (), keys, keys, True, False),
    )


@dataclass(frozen=True)
class SortedPairs:
    """A function of whole groups: ``id`` and ``v`` of all rows, in order, as one text."""

    arguments: tuple[str, ...] = ("id", "v")
    schema: pa.Schema = field(default_factory=lambda: pa.schema([("pairs", pa.string())]))

    def __call__(self, rows: pa.Table, group: Positions, groups: int) -> pa.Table:
        pairs = list(zip(*(rows.column(name).to_pylist() for name in self.arguments), strict=True))
        of_groups = [[pairs[place] for place in np.flatnonzero(group == one)] for one in range(groups)]
        return pa.table([[sorted_pairs(one) for one in of_groups]], schema=self.schema)


def sorted_pairs(pairs: Iterable[Sequence[object]]) -> str | None:
    return " ".join(sorted(f"{name}={value}" for name, value in pairs)) or None


def records(ingest: Ingest) -> st.SearchStrategy[list[Record]]:
    """Few values, so that groups fill and empty; of doubles such as do not add up in 53 bits."""
    return harness.records(
        ingest,
        st.sampled_from(["a", "bb", "a longer text than a word"]),
        st.sampled_from([None, 0, 1, 2, -3, 2**62]),
        st.sampled_from([None, 0.1, 0.2, 0.7, 1e16, -1e16, 5e-324]),
    )


@settings(max_examples=tries(50))
@given(
    keys=st.sampled_from([("k",), ("k", "id"), ()]),
    ingest=st.sampled_from(INPUTS),
    data=st.data(),
)
def test_groups(keys: tuple[str, ...], ingest: Ingest, data: st.DataObject) -> None:
    primary_key = ("k", "id") if ingest in KEYED else ()
    recomputed = data.draw(st.booleans())
    chosen = data.draw(st.lists(st.sampled_from(FOLDS), unique=True, min_size=0 if keys or recomputed else 1))
    operator = AggregateSpec(
        Port(ROWS, keys, ingest, primary_key),
        tuple(aggregation(*fold) for fold in chosen),
        insertions=ingest is Ingest.APPEND,
        recomputed=SortedPairs() if recomputed else None,
    )
    query = LocalQuery(dataflow(operator))
    positions = tuple(ROWS.names.index(key) for key in keys)
    side = ReferenceSide(ingest, positions, (0, 1) if primary_key else ())
    of_reference = [lambda rows: sorted_pairs((row[1], row[2]) for row in rows)] if recomputed else []
    folds = [(fold, ROWS.names.index(argument) if argument else None, distinct) for fold, argument, distinct in chosen]
    reference = ReferenceAggregate(side, folds, of_reference)
    content: Counter[Row] = Counter()
    for number, (batch, restart) in enumerate(
        data.draw(st.lists(st.tuples(records(ingest), st.booleans()), max_size=9))
    ):
        changes = net(query.feed({0: decoded(ROWS, batch, number * 100)}))
        assert changes == reference.on_batch(batch)
        content.update(changes)
        assert min(content.values(), default=0) >= 0
        if restart:
            query.restart()


def operator_of(
    aggregations: Sequence[Aggregation],
    schema: pa.Schema = ROWS,
    store: RunStore | None = None,
    recomputed: GroupFunction | None = None,
) -> AggregateOperator:
    spec = AggregateSpec(Port(schema, ("k",), Ingest.CHANGES), tuple(aggregations), recomputed=recomputed)
    return AggregateOperator(spec, store if store is not None else RunStore(), "0")


def fed(
    operator: AggregateOperator, schema: pa.Schema, rows: Sequence[Row], deltas: Sequence[int]
) -> list[tuple[Any, ...]]:
    """The changes, row by row, each with its count last."""
    changes = Changes.with_deltas(table(schema, rows), np.array(deltas, np.int64))
    return [tuple(row.values()) for row in operator.on_batch([changes.table]).table.to_pylist()]


def test_an_update_leaves_as_a_retraction_beside_its_insertion() -> None:
    operator = operator_of([aggregation(Fold.SUM, "v", False)])
    rows: list[Row] = [(k, "a", 1, None) for k in range(5)]
    assert sorted(fed(operator, ROWS, rows, [1] * 5)) == [(k, 1, 1) for k in range(5)]
    changes = fed(operator, ROWS, rows[1:4], [1] * 3)
    assert [change[1:] for change in changes] == [(1, -1), (2, 1)] * 3
    assert [change[0] for change in changes[::2]] == [change[0] for change in changes[1::2]]
    assert fed(operator, ROWS, rows[1:2] * 2, [-1] * 2) == [(1, 2, -1)]


def test_a_change_that_alters_no_aggregate_leaves_no_trace() -> None:
    operator = operator_of([aggregation(Fold.MAX, "v", False)])
    assert fed(operator, ROWS, [(1, "a", 5, None)], [1]) == [(1, 5, 1)]
    assert fed(operator, ROWS, [(1, "a", 3, None)], [1]) == []
    assert fed(operator, ROWS, [(1, "a", 5, None), (1, "b", 5, None)], [-1, 1]) == []


def test_nothing_is_left_of_rows_that_are_gone() -> None:
    store = RunStore()
    operator = operator_of([aggregation(*fold) for fold in FOLDS], store=store, recomputed=SortedPairs())
    rows: list[Row] = [(k % 7, f"id{k}", k, k / 7) for k in range(100)]
    fed(operator, ROWS, rows, [1] * 100)
    fed(operator, ROWS, rows, [-1] * 100)
    assert nothing_held(store)


def nothing_held(store: RunStore) -> bool:
    """Whether the rows of each arrangement cancel out."""
    held = [[Changes(run.table.drop_columns([SORT])) for run in runs] for runs in store.runs.values()]
    return all(len(Changes.concat(parts).consolidated()) == 0 for parts in held if parts)


# -- sums


doubles = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=tries(40))
@given(values=st.lists(doubles, min_size=1, max_size=12), data=st.data())
@example(values=[1e300, 1.0, -1e300], data=None)
@example(values=[8.676557854286233e263, -1.2432273786004598e232], data=None)
@example(values=[8.676557854286233e263, -1.2129047598923305e229], data=None)
@example(values=[-(2.0**95), -(2.0**31), 2.0**-70], data=None)
def test_a_sum_of_doubles_is_rounded_once(values: list[float], data: st.DataObject | None) -> None:
    """In whatever batches they come, and whatever else has come and gone."""
    operator = operator_of([aggregation(Fold.SUM, "d", False)])
    passing = data.draw(st.lists(doubles, max_size=5)) if data is not None else [1e-300]
    result = None
    for signed in ([(value, 1) for value in passing], [(value, 1) for value in values], [(v, -1) for v in passing]):
        for value, delta in signed:
            for *_, total, sign in fed(operator, ROWS, [(1, "a", None, value)], [delta]):
                result = total if sign > 0 else result
    exact = sum(map(Fraction, values), Fraction())
    assert result is not None
    if abs(exact) < 2**1023:
        assert result == float(exact)


def test_values_that_are_not_finite_can_be_taken_back() -> None:
    operator = operator_of([aggregation(Fold.SUM, "d", False), aggregation(Fold.MAX, "d", False)])
    rows: list[Row] = [(1, "a", None, value) for value in (1.5, math.inf, -math.inf, math.nan)]
    assert fed(operator, ROWS, rows[:2], [1, 1]) == [(1, math.inf, math.inf, 1)]
    (_, total, greatest, _), *_ = reversed(fed(operator, ROWS, rows[2:], [1, 1]))
    assert math.isnan(total)
    assert math.isnan(greatest)
    assert fed(operator, ROWS, rows[1:], [-1] * 3)[-1] == (1, 1.5, 1.5, 1)


def test_a_sum_beyond_64_bits_is_null_until_it_fits_again() -> None:
    operator = operator_of([aggregation(Fold.SUM, "v", False), aggregation(Fold.AVG, "v", False)])
    rows: list[Row] = [(1, "a", 2**63 - 1, None), (1, "b", 2**63 - 1, None)]
    assert fed(operator, ROWS, rows, [1, 1]) == [(1, None, float(2**63 - 1), 1)]
    assert fed(operator, ROWS, rows[:1], [-1])[-1] == (1, 2**63 - 1, float(2**63 - 1), 1)


whole: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1, -1, 3]) | st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.sampled_from([2**64 - 1, 2**63, 0, 3]) | st.integers(0, 2**64 - 1),
    pa.decimal128(38, 0): st.sampled_from([Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(1), Decimal(-1)]),
    pa.decimal128(10, 2): st.decimals(-(10**7), 10**7, places=2),
    pa.decimal128(38, 6): st.decimals(-(10**15), 10**15, places=6) | st.just(Decimal(-(10**31))),
}
RESULTS = {
    pa.int64(): [pa.int64(), pa.decimal128(38, 0)],
    pa.uint64(): [pa.int64(), pa.uint64()],
    pa.decimal128(38, 0): [pa.decimal128(38, 0)],
    pa.decimal128(10, 2): [pa.decimal128(38, 2)],
    pa.decimal128(38, 6): [pa.decimal128(38, 6)],
}


@pytest.mark.parametrize(("kind", "result"), [(kind, one) for kind, several in RESULTS.items() for one in several])
@settings(max_examples=tries(30))
@given(data=st.data())
def test_a_sum_is_what_its_type_holds_or_null_and_a_mean_is_rounded_once(
    kind: pa.DataType, result: pa.DataType, data: st.DataObject
) -> None:
    values = data.draw(st.lists(whole[kind], min_size=1, max_size=6))
    schema = pa.schema([("k", pa.int64()), ("n", kind)])
    aggregations = [Aggregation("sum", Fold.SUM, "n", result), Aggregation("avg", Fold.AVG, "n", pa.float64())]
    *_, (_, total, mean, _) = fed(
        operator_of(aggregations, schema), schema, [(1, value) for value in values], [1] * len(values)
    )
    exact = sum(map(Fraction, values), Fraction())
    assert total == (exact if _holds(result, exact) else None)
    assert mean == float(exact / len(values))


def _holds(kind: pa.DataType, number: Fraction) -> bool:
    if pa.types.is_decimal(kind):
        return bool(abs(number) * 10**kind.scale < 10**kind.precision)
    low = -(2**63) if kind == pa.int64() else 0
    return low <= number < low + 2**64


@pytest.mark.parametrize("kind", [pa.decimal128(10, 2), pa.uint64(), pa.decimal128(38, 4)])
def test_sums_of_other_numbers(kind: pa.DataType) -> None:
    schema = pa.schema([("k", pa.int64()), ("n", kind)])
    values = [Decimal(number) if pa.types.is_decimal(kind) else number for number in (7, 5, 900)]
    operator = operator_of([aggregation(f, "n", False, schema) for f in (Fold.SUM, Fold.AVG, Fold.MIN)], schema)
    fed(operator, schema, [(1, value) for value in values], [1, 1, 1])
    (last,) = [row for row in fed(operator, schema, [(1, values[2])], [-1]) if row[-1] > 0]
    assert last == (1, 12, 6.0, 5, 1)


# -- the least and the greatest


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ordered_types: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): doubles,
    pa.string(): texts,
    pa.bool_(): st.booleans(),
    pa.timestamp("us", "UTC"): st.integers(-(2**50), 2**50),
    pa.decimal128(20, 3): st.decimals(-(10**15), 10**15, places=3),
}


@pytest.mark.parametrize("kind", ordered_types)
@settings(max_examples=tries(20))
@given(data=st.data())
def test_ordinals_follow_the_order_of_values(kind: pa.DataType, data: st.DataObject) -> None:
    values = pa.array(data.draw(st.lists(ordered_types[kind], min_size=1, max_size=12)), kind)
    assert is_ordered(kind)
    order = ordinals(values)
    ascending = values.take(pa.array(np.argsort(order, kind="stable")))
    if kind not in (pa.string(), pa.decimal128(20, 3), pa.int64(), pa.uint64()):
        assert ascending.to_pylist() == sorted(values.to_pylist())
    for first, second in pairwise(values):
        a, b = (pa.array([value.as_py()], kind) for value in (first, second))
        if first.as_py() <= second.as_py():
            assert ordinals(a)[0] <= ordinals(b)[0]


@pytest.mark.parametrize("kind", ordered_types)
@settings(max_examples=tries(20))
@given(data=st.data())
def test_the_best_of_each_group(kind: pa.DataType, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 3), ordered_types[kind]), max_size=12))
    group = np.array([group for group, _ in pairs], dtype=np.int64)
    values = pa.array([value for _, value in pairs], kind)
    for greatest, choose in ((True, max), (False, min)):
        chosen = best(group, values, greatest)
        found = dict(zip(group[chosen].tolist(), values.take(pa.array(chosen)).to_pylist(), strict=True))
        known: dict[int, list[object]] = {}
        for number, value in zip(group.tolist(), values.to_pylist(), strict=True):
            known.setdefault(number, []).append(value)
        assert found == {number: choose(several) for number, several in known.items()}  # type: ignore[type-var]


def test_an_extreme_is_found_again_among_values_that_share_their_beginning() -> None:
    operator = operator_of([aggregation(Fold.MAX, "id", False)])
    rows: list[Row] = [(1, f"https://example.org/{n:04}", None, None) for n in range(300)]
    fed(operator, ROWS, rows, [1] * 300)
    assert fed(operator, ROWS, rows[200:], [-1] * 100)[-1][1] == "https://example.org/0199"


# -- windows

WINDOWS = pa.schema([("w", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.int64())])
SIZE_S = 10
START = datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def windowed(rows: Sequence[tuple[int, int, int]]) -> list[Row]:
    """(second, key, value) in windows of ten seconds."""
    return [(START + timedelta(seconds=second // SIZE_S * SIZE_S), key, value) for second, key, value in rows]


def closing(store: RunStore, *, closed: bool) -> AggregateOperator:
    shift = 1 - SIZE_S * 1000
    folds = ((Fold.SUM, "v", False), (Fold.COUNT, "v", True), (Fold.MAX, "v", False))
    spec = AggregateSpec(
        Port(WINDOWS, ("w", "k"), Ingest.CHANGES),
        tuple(aggregation(*fold, schema=WINDOWS) for fold in folds),
        closing=Closing("w", shift),
        closed=closed,
    )
    return AggregateOperator(spec, store, "0")


def ms(second: int) -> int:
    return round((START - datetime(1970, 1, 1)).total_seconds() * 1000) + second * 1000  # noqa: DTZ001


@settings(max_examples=tries(25))
@given(
    data=st.data(),
    steps=st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=8),
)
def test_closed_groups_leave_once_and_the_state_with_them(data: st.DataObject, steps: list[tuple[int, bool]]) -> None:
    store, durable = RunStore(), DurableCopy()
    written, output = list[Row](), Counter[Row]()
    operator, second = closing(store, closed=True), 0
    for forward, restart in [*steps, (1000, False)]:
        on_time = st.tuples(st.integers(second, second + 30), st.integers(0, 1), st.integers(0, 3))
        rows = windowed(data.draw(st.lists(on_time, max_size=5)))
        written += rows
        assert fed(operator, WINDOWS, rows, [1] * len(rows)) == []
        second += forward
        left = operator.on_watermark([ms(second)]).table.to_pylist()
        assert all(row["w"] + timedelta(seconds=SIZE_S) <= START + timedelta(seconds=second) for row in left)
        assert all(row.pop(DELTA) == 1 for row in left)
        output.update(tuple(row.values()) for row in left)
        if restart:
            durable.save(store)
            store = durable.restored()
            operator = closing(store, closed=True)
    groups: dict[Row, list[int]] = {}
    for window, key, value in written:
        groups.setdefault((window, key), []).append(value)  # type: ignore[arg-type]
    assert output == Counter((*key, sum(values), len(set(values)), max(values)) for key, values in groups.items())
    assert nothing_held(store)


def test_what_comes_for_a_closed_group_is_left_out() -> None:
    operator = closing(RunStore(), closed=False)
    rows = windowed([(3, 1, 5), (12, 1, 6)])
    assert len(fed(operator, WINDOWS, rows, [1, 1])) == 2
    assert len(operator.on_watermark([ms(10)])) == 0
    assert fed(operator, WINDOWS, rows, [-1, -1]) == [(rows[1][0], 1, 6, 1, 6, -1)]


def test_a_window_is_open_until_the_watermark_has_reached_its_end() -> None:
    operator = closing(RunStore(), closed=True)
    fed(operator, WINDOWS, windowed([(3, 1, 5)]), [1])
    assert len(operator.on_watermark([ms(10) - 1])) == 0
    assert len(operator.on_watermark([ms(10)])) == 1
    assert len(operator.on_watermark([ms(20)])) == 0
