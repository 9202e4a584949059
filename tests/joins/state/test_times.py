"""Arrangements in order of time, against plain loops: what is found near a time, and what has expired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.rows import Positions
from dovetail.joins.state.arrangement import Arrangement, Matches
from dovetail.joins.state.durable_copy import DurableCopy
from dovetail.joins.state.order import EARLIEST, LATEST, NEVER, shifted, times_of
from dovetail.joins.state.store import RunStore
from dovetail.joins.state.time_search import Approach, by_word_and_time, covered
from tests.joins import harness
from tests.joins.harness import net, poor_hashes
from tests.tries import tries

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("ms")), ("v", pa.string())])
Row = tuple[int | None, int | None, str]

keys = st.one_of(st.none(), st.integers(0, 2))
times = st.integers(0, 9)
rows = st.tuples(keys, st.one_of(times, times, times, st.none()), st.sampled_from("ab"))
spans = st.tuples(keys, st.one_of(times, st.just(EARLIEST)), st.one_of(times, st.just(LATEST)))


def table(content: Sequence[Row]) -> pa.Table:
    return harness.table(SCHEMA, content)


@dataclass
class Model:
    """An arrangement, its durable copy, and beside it a multiset of rows with which everything is done by loops."""

    null_safe: bool
    store: RunStore = field(default_factory=RunStore)
    durable: DurableCopy = field(default_factory=DurableCopy)
    live: Counter[Row] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.opened()

    def opened(self) -> None:
        self.arrangement = Arrangement(self.store, "a", SCHEMA, ["k"], ["k", "t", "v"], [self.null_safe], order="t")

    def insert(self, added: Sequence[Row], taken: int) -> None:
        """Insert ``added``, and retract the first ``taken`` rows that are live."""
        gone = sorted(self.live.elements(), key=repr)[:taken]
        self.live.update(added)
        self.live.subtract(gone)
        changes = [Changes.of(table(added)), Changes.of(table(gone), -1)]
        self.arrangement.insert(Changes.concat(changes).consolidated())

    def expire(self, bound: int) -> None:
        behind = self.behind(bound)
        assert counted(self.arrangement.expire(bound).table) == behind
        self.live -= behind

    def behind(self, bound: int) -> Counter[Row]:
        return Counter({row: n for row, n in self.live.items() if n and row[1] is not None and row[1] < bound})

    def restart(self) -> None:
        self.durable.save(self.store)
        self.store = self.durable.restored()
        self.opened()
        if self.arrangement.expired is not None:
            self.live -= self.behind(self.arrangement.expired)

    def under(self, key: int | None) -> Counter[Row]:
        if key is None and not self.null_safe:
            return Counter()
        return Counter({row: n for row, n in self.live.items() if n and row[0] == key})

    def between(self, key: int | None, low: int, high: int) -> Counter[Row]:
        found = self.under(key).items()
        return Counter({row: n for row, n in found if row[1] is not None and low <= row[1] <= high})

    def nearest(self, key: int | None, at: int, newest: bool, inclusive: bool) -> Counter[Row]:
        step = 0 if inclusive else 1
        fitting = self.between(key, EARLIEST, at - step) if newest else self.between(key, at + step, LATEST)
        if not fitting:
            return Counter()
        best = (max if newest else min)(row[1] for row in fitting if row[1] is not None)
        return Counter({row: n for row, n in fitting.items() if row[1] == best})


def counted(found: pa.Table) -> Counter[tuple[object, ...]]:
    return net(found.set_column(1, "t", found.column("t").cast(pa.int64())))


def by_probe(found: Matches, count: int) -> list[Counter[tuple[object, ...]]]:
    return [counted(found.rows.filter(pa.array(found.probe == probe))) for probe in range(count)]


@settings(max_examples=tries(75))
@given(null_safe=st.booleans(), poor=st.booleans(), data=st.data())
def test_everything_found_is_what_plain_loops_find(null_safe: bool, poor: bool, data: st.DataObject) -> None:
    with poor_hashes(poor):
        model = Model(null_safe)
        for _ in range(data.draw(st.integers(1, 12))):
            match data.draw(st.sampled_from(["insert", "insert", "insert", "expire", "restart"])):
                case "insert":
                    model.insert(data.draw(st.lists(rows, max_size=8)), data.draw(st.integers(0, 3)))
                case "expire":
                    model.expire(data.draw(st.integers(0, 10)))
                case _:
                    model.restart()
            checked(model, data.draw(st.lists(spans, max_size=4)))


def checked(model: Model, wanted: Sequence[tuple[int | None, int, int]]) -> None:
    arrangement, count = model.arrangement, len(wanted)
    probing = table([(key, None, "") for key, _, _ in wanted])
    low = np.array([low for _, low, _ in wanted], dtype=np.int64)
    high = np.array([high for _, _, high in wanted], dtype=np.int64)
    expected = [model.between(*span) for span in wanted]
    assert by_probe(arrangement.between(probing, low, high).summed(), count) == expected
    assert arrangement.counts_between(probing, low, high).tolist() == [found.total() for found in expected]
    assert arrangement.counts(probing).tolist() == [model.under(key).total() for key, _, _ in wanted]
    united: Counter[Row] = Counter()
    for found in expected:
        united |= found
    assert counted(arrangement.found_between(probing, low, high).table) == united
    only_a = arrangement.found_between(probing, low, high, None, lambda _, held: held.column("v").to_numpy() == "a")
    assert counted(only_a.table) == Counter({row: n for row, n in united.items() if row[2] == "a"})
    for newest in (True, False):
        for inclusive in (True, False):
            nearest = arrangement.nearest(probing, high if newest else low, newest, inclusive)
            at = [high if newest else low for _, low, high in wanted]
            assert by_probe(nearest, count) == [
                model.nearest(key, time_, newest, inclusive) for (key, _, _), time_ in zip(wanted, at, strict=True)
            ]
    known = sorted(model.live, key=repr)
    assert by_probe(arrangement.equal(table(known)), len(known)) == [
        Counter({row: model.live[row]} if model.live[row] else {}) for row in known
    ]


@settings(max_examples=tries(30))
@given(upserts=st.lists(st.lists(st.tuples(st.integers(0, 5), times), max_size=5), max_size=12))
def test_the_current_row_of_a_primary_key_is_found_whatever_its_time(upserts: list[list[tuple[int, int]]]) -> None:
    """The join key is one for all; the primary key is ``v``."""
    arrangement = Arrangement(RunStore(), "a", SCHEMA, ["k"], ["k", "v"], order="t")
    held: dict[str, int] = {}
    for batch in upserts:
        last = {str(key): at for key, at in batch}
        wanted = table([(0, None, name) for name in last])
        owners, old = arrangement.current(wanted, ["k", "v"])
        found = dict(zip(owners.tolist(), old.column("t").cast(pa.int64()).to_pylist(), strict=True))
        assert found == {place: held[name] for place, name in enumerate(last) if name in held}
        retracted = Changes.of(old.cast(SCHEMA), -1)
        arrangement.insert(Changes.concat([retracted, Changes.of(table([(0, at, v) for v, at in last.items()]))]))
        held.update(last)


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.date32(), pa.int16(), pa.uint64()])
def test_any_timestamp_date_or_integer_orders(kind: pa.DataType) -> None:
    schema = pa.schema([("k", pa.int64()), ("t", kind)])
    numbers = pa.array([5, 3, None, 9], pa.int32())
    held = pa.table({"k": [1] * 4, "t": numbers.cast(pa.int64() if kind.bit_width == 64 else kind).cast(kind)}, schema)
    arrangement = Arrangement(RunStore(), "a", schema, ["k"], order="t")
    arrangement.insert(Changes.of(held))
    first = EARLIEST + 1 if kind == pa.uint64() else 0
    found = arrangement.nearest(held.slice(0, 1), np.array([8]) + first, newest=True, inclusive=True)
    assert (times_of(found.rows.column("t")) - first).tolist() == [5]
    assert (times_of(arrangement.expire(6 + first).table.column("t")) - first).tolist() == [3, 5]
    assert arrangement.counts(held).tolist() == [2] * 4


def test_unsigned_numbers_are_ordered_to_the_last() -> None:
    column = pa.chunked_array([pa.array([2**64 - 1, None, 7, 2**63, 0], pa.uint64())])
    assert times_of(column).tolist() == [LATEST, NEVER, EARLIEST + 8, 1, EARLIEST + 1]


def test_the_greatest_number_is_no_null() -> None:
    column = pa.chunked_array([pa.array([2**63 - 1, None, -(2**63)], pa.int64())])
    assert times_of(column).tolist() == [LATEST, NEVER, EARLIEST + 1]


def test_a_decimal_beyond_64_bits_has_no_time() -> None:
    column = pa.chunked_array([pa.array([None, Decimal(2**63), Decimal(-(2**70)), Decimal(5)], pa.decimal128(38, 0))])
    assert times_of(column).tolist() == [NEVER, NEVER, NEVER, 5]


def test_a_shift_does_not_wrap_around() -> None:
    ends = np.array([EARLIEST, 0, LATEST])
    assert shifted(ends, 5).tolist() == [EARLIEST + 5, 5, LATEST]
    assert shifted(ends, -5).tolist() == [EARLIEST, -5, LATEST - 5]


def test_covered_positions_come_once() -> None:
    assert covered(np.array([5, 0, 2, 9]), np.array([7, 4, 3, 9])).tolist() == [0, 1, 2, 3, 5, 6]


def test_the_order_is_stable() -> None:
    words, at = np.array([2, 1, 2, 1, 2], dtype=np.uint64), np.array([3, 1, 1, 1, 3])
    assert by_word_and_time(words, at).tolist() == [1, 3, 2, 0, 4]


def test_a_long_stretch_of_retracted_rows_is_passed_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    step = Approach.step

    def counted_step(search: Approach, needles: Positions) -> list[tuple[Positions, Positions]]:
        steps.append(len(needles))
        return step(search, needles)

    monkeypatch.setattr(Approach, "step", counted_step)
    arrangement = Arrangement(RunStore(), "a", SCHEMA, ["k"], order="t")
    arrangement.insert(Changes.of(table([(1, n, "a") for n in range(20_000)])))
    arrangement.insert(Changes.of(table([(1, n, "a") for n in range(1, 16_000)]), -1))
    found = arrangement.nearest(table([(1, None, "")] * 5), np.full(5, 15_999), newest=True, inclusive=True)
    assert times_of(found.rows.column("t")).tolist() == [0] * 5
    assert 1 < len(steps) < 10


def test_a_bound_that_moves_on_drops_entries_and_rewrites_what_is_half_gone() -> None:
    store, durable = RunStore(), DurableCopy()
    arrangement = Arrangement(store, "a", SCHEMA, ["k"], order="t")
    for n in range(60):
        arrangement.insert(Changes.of(table([(key, n * 10 + key % 10, "x") for key in range(2000)])))
        arrangement.expire((n - 5) * 10)
        durable.save(store)
        assert store.rows <= 2 * 6 * 2000
        assert sum(entry.table.num_rows for entry in durable.entries.values()) <= 4 * 6 * 2000
    again = durable.restored()
    rebuilt = Arrangement(again, "a", SCHEMA, ["k"], order="t")
    assert rebuilt.counts(table([(7, None, "")])).tolist() == [6]
    assert counted(rebuilt.expire(10_000).table) == counted(arrangement.expire(10_000).table)
    assert store.rows == again.rows == 0


def test_rows_that_come_behind_the_bound_are_held_until_the_next_call() -> None:
    arrangement = Arrangement(RunStore(), "a", SCHEMA, ["k"], order="t")
    assert len(arrangement.expire(10)) == 0
    arrangement.insert(Changes.of(table([(1, 5, "a"), (1, 12, "a")])))
    everything = np.array([EARLIEST]), np.array([LATEST])
    assert len(arrangement.between(table([(1, None, "")]), *everything).probe) == 2
    assert counted(arrangement.expire(10).table) == {(1, 5, "a"): 1}
    assert len(arrangement.expire(10)) == 0
    assert len(arrangement.between(table([(1, None, "")]), *everything).probe) == 1


def test_what_has_expired_is_counted_with_its_retractions() -> None:
    arrangement = Arrangement(RunStore(), "a", SCHEMA, ["k"], order="t")
    arrangement.insert(Changes.of(table([(1, n, "a") for n in range(100)])))
    arrangement.insert(Changes.of(table([(1, 3, "a")]), -1))
    gone = arrangement.expire(5)
    assert counted(gone.table) == {(1, n, "a"): 1 for n in (0, 1, 2, 4)}
    assert min(gone.table.column(DELTA).to_pylist()) == 1
