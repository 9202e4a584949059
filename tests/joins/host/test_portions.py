"""A state that is larger than what may be in memory: what comes of it is what would come if all of it were there."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.errors import StateLimitExceeded
from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.joins.host import portions
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.joins.host.level import Arrival, LevelTask
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.dynamic_filter import DynamicFilterSpec
from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.state.portion import WHOLE, Portion
from dovetail.joins.state.store import RunStore
from tests.joins.harness import INPUTS, LEFT, RIGHT, decoded, port
from tests.joins.host.test_repartition import BOUND, AboveBound, drawn_steps, risen, specs, suits
from tests.joins.hosted import Hosted, dataflow_of
from tests.tries import tries

ONE_KEY = StateMemory(1 << 20, keys=1)
"""Each portion is cut until it has one key."""
JOIN = BidirectionalSpec(JoinKind.LEFT, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND))


@pytest.mark.parametrize("ingest", INPUTS)
@settings(max_examples=tries(15))
@given(data=st.data())
def test_portions_give_what_the_whole_gives(ingest: Ingest, data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from(specs(ingest)))
    whole, cut, content = Hosted(spec), Hosted(spec, ONE_KEY), Counter[Row]()
    for left, right, buckets in suits(spec, risen(data.draw(drawn_steps(ingest)))):
        changes = cut.on_batch(left, right)
        assert changes == whole.on_batch(left, right)
        content.update(changes)
        assert min(content.values(), default=0) >= 0
        if buckets == 5:
            cut.rescale(2)
        elif buckets > 1:
            cut.restart()


@pytest.mark.parametrize("keys", [("l.k",), ()], ids=["keyed", "keyless"])
@settings(max_examples=tries(10))
@given(data=st.data())
def test_a_row_that_each_bucket_holds_is_in_each_portion_once(keys: tuple[str, ...], data: st.DataObject) -> None:
    left = replace(port(LEFT, Ingest.APPEND), keys=keys)
    spec = DynamicFilterSpec(JoinKind.INNER, left, BOUND, bound=None, condition=AboveBound())
    whole, cut, held = Hosted(spec), Hosted(spec, ONE_KEY), None
    rows = st.lists(st.tuples(st.integers(0, 5), st.just("a"), st.none() | st.integers(0, 3)), max_size=8)
    steps = st.lists(st.tuples(rows, st.none() | st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=5)
    for came, bound, then in data.draw(steps):
        moved: list[Record] = [] if held is None else [((held,), -1)]
        moved += [] if bound is None else [((bound,), 1)]
        assert cut.on_batch([(row, 1) for row in came], moved) == whole.on_batch([(row, 1) for row in came], moved)
        held = bound
        if then == 1:
            cut.restart()
        elif then == 2:
            cut.rescale(2)


def ints(count: int) -> list[Record]:
    return [((key, "a", key), 1) for key in range(count)]


def at_work(memory: StateMemory, buckets: int = 1) -> LocalQuery:
    return LocalQuery(dataflow_of(JOIN, memory), buckets)


def fed(query: LocalQuery, left: list[Record], right: list[Record]) -> Counter[Row]:
    hosted = Hosted(JOIN)
    hosted.query = query
    return hosted.on_batch(left, right)


@settings(max_examples=tries(10))
@given(st.lists(st.tuples(st.lists(st.integers(0, 300), max_size=60), st.booleans()), min_size=4, max_size=8))
def test_no_portion_holds_more_than_its_share(drawn: list[tuple[list[int], bool]]) -> None:
    memory = StateMemory(16_000)
    query, whole = at_work(memory, 2), Hosted(JOIN)
    for number, (keys, restart) in enumerate(drawn):
        left: list[Record] = [((key, "a", number), 1) for key in keys]
        right: list[Record] = [((key // 2, "b", number), 1) for key in keys]
        assert fed(query, left, right) == whole.on_batch(left, right)
        assert max(store.buffered_bytes for store in query.stores) <= memory.of_bucket(2).portion_bytes
        if restart:
            query.restart()


def test_what_does_not_fit_is_cut_and_found_again() -> None:
    query = at_work(StateMemory(40_000))
    fed(query, ints(2_000), [])
    sizes = [store.buffered_bytes for store in query.stores]
    assert len(sizes) > 4
    assert max(sizes) <= 10_000
    assert fed(query, [], [((1_234, "b", 5), 1)]) == {
        (1_234, "a", 1_234, None, None, None): -1,
        (1_234, "a", 1_234, 1_234, "b", 5): 1,
    }


def test_only_portions_that_rows_come_to_are_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    query = at_work(StateMemory(40_000))
    fed(query, ints(2_000), [])
    [portion_store] = query._portion_stores.values()  # noqa: SLF001
    attach, attached = portion_store.attach, list[int]()

    def noted(portion: Portion) -> RunStore:
        attached.append(portion.number)
        return attach(portion)

    monkeypatch.setattr(portion_store, "attach", noted)
    fed(query, [((7, "z", 7), 1)], [])
    assert len(attached) == 1


def test_a_heavy_key_is_separated_from_the_others_and_then_left_whole() -> None:
    query = at_work(StateMemory(400_000))
    heavy: list[Record] = [((7, "a", number), 1) for number in range(4_000)]
    fed(query, [*ints(2_000), *heavy], [])
    [portion_store] = query._portion_stores.values()  # noqa: SLF001
    known = list(portion_store.portions)
    assert max(one.one_key for one in known) > 100_000
    fed(query, [((7, "a", 1), 1)], [])
    assert list(portion_store.portions) == known


def test_a_key_that_is_larger_than_the_memory_is_named_with_what_it_needs() -> None:
    query = at_work(StateMemory(40_000), 2)
    heavy: list[Record] = [((7, "a", number), 1) for number in range(1_000)]
    with pytest.raises(StateLimitExceeded) as raised:
        fed(query, [*ints(100), *heavy], [])
    assert "l.k = 7" in raised.value.what
    assert "20000" in raised.value.what
    needed = int(raised.value.fix.split("join_max_buffered_bytes to ")[1].split()[0])
    fed(at_work(StateMemory(needed), 2), [*heavy], [])


def test_rows_without_a_key_cannot_be_cut() -> None:
    spec = replace(JOIN, left=replace(JOIN.left, keys=()), right=replace(JOIN.right, keys=()))
    query = LocalQuery(dataflow_of(spec, StateMemory(8_000)), 1)
    hosted = Hosted(spec)
    hosted.query = query
    with pytest.raises(StateLimitExceeded, match="every row"):
        hosted.on_batch(ints(1_000), [])


def test_a_bucket_has_so_many_portions_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "DEEPEST", 2)
    with pytest.raises(StateLimitExceeded, match="cut 2 times"):
        fed(at_work(StateMemory(8_000)), ints(2_000), [])


def test_many_keys_make_a_bounded_number_of_portions() -> None:
    query = at_work(StateMemory(1 << 30, keys=1))
    fed(query, ints(2_000), [])
    assert len(list(query.stores)) == 1 << portions.DEEPEST_FOR_KEYS


def test_what_each_portion_holds_is_told_together() -> None:
    query = at_work(StateMemory(40_000))
    fed(query, ints(2_000), [])
    assert query.activity.parts_of(0)["left"].rows == 2_000
    fed(query, [((1, "z", 7), 1)], [])
    assert query.activity.parts_of(0)["left"].rows == 2_001


def test_the_halves_of_a_portion_are_buckets_of_twice_as_many() -> None:
    one, other = WHOLE.halves(1)
    assert (one, other) == (Portion(0, 1, 0), Portion(1, 1, 1))
    assert [half.bucket(1, 3) for half in other.halves(2)] == [4, 10]


def test_columns_of_rows_are_weighed_too() -> None:
    """What the memory is measured in is what the rows have: long texts weigh."""
    query = at_work(StateMemory(40_000))
    fed(query, [((key, "x" * 2_000, key), 1) for key in range(100)], [])
    assert max(store.buffered_bytes for store in query.stores) <= 10_000
    assert pa.concat_tables([run.table for store in query.stores for _, run in store.all_runs()]).num_rows >= 100


@pytest.mark.parametrize("ingest", INPUTS)
def test_a_portion_goes_when_its_turn_is_over(ingest: Ingest) -> None:
    """At once: what waits for the collector of cycles would be in memory beside the portions that come next."""
    gc.collect()
    gc.disable()
    try:
        for spec in specs(ingest):
            assert released(spec), spec
    finally:
        gc.enable()


def released(spec: OperatorSpec) -> bool:
    store = RunStore()
    task = LevelTask(dataflow_of(spec), 1, 0, 1, store, {})
    task.on_batch([Arrival(edge, decoded(one.schema, [((1, "a", 1), 1)], 0)) for edge, one in enumerate(spec.ports)])
    known = weakref.ref(store)
    del task, store
    return known() is None
