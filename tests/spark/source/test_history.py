"""The history of what is asked is read first, in batches of limited size."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.joins.dataflow.graph import Dataflow, Edge, OperatorNode, Outlet
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.spark_jobs.source.history import HistoryPhase, next_end, phases
from dovetail.spark_jobs.state.checkpoint import JsonOffsets
from tests.spark.flows import CLICKS, enriched_orders, orders_clicks, scan

LIMIT = 10


def ranked(dataflow: Dataflow, *first_offsets: int, **history: int) -> list[HistoryPhase]:
    """The phases; each topic has one partition."""
    return phases(
        dataflow, [{0: offset} for offset in first_offsets], {topic: {0: end} for topic, end in history.items()}
    )


def twice_enriched(orders: str, users: str, clicks: str) -> Dataflow:
    """The enriched orders again, by what the clicks hold."""
    flow = enriched_orders(orders, users)
    left = pa.schema([("l.k", pa.int64()), ("l.a", pa.string()), ("u.name", pa.string())])
    right = pa.schema([("r.k", pa.int64()), ("r.b", pa.string())])
    second = EnrichmentSpec(JoinKind.LEFT, Port(left, ("l.k",), Ingest.APPEND), Port(right, ("r.k",), Ingest.APPEND))
    return replace(
        flow,
        scans=(*flow.scans, scan(CLICKS, clicks, "r", ("k", "b"), 4)),
        nodes=(*flow.nodes, OperatorNode(3, second, (3, 4), (Outlet(5),))),
        edges=(*flow.edges, Edge(4, 3, ("r.k",)), Edge(5, 4, ("l.k",))),
        sink=replace(flow.sink, edge=5),
    )


def test_what_is_asked_is_read_before_what_asks() -> None:
    assert ranked(enriched_orders("orders", "users"), 0, 0, orders=5, users=5) == [HistoryPhase(frozenset({"users"}))]
    assert ranked(twice_enriched("orders", "users", "clicks"), 0, 0, 0, orders=5, users=5, clicks=5) == [
        HistoryPhase(frozenset({"clicks"})),
        HistoryPhase(frozenset({"users"})),
    ]


def test_a_join_that_corrects_its_answers_waits_for_nothing() -> None:
    assert ranked(orders_clicks("orders", "clicks"), 0, 0) == []


def test_rows_that_come_from_now_on_wait_too() -> None:
    assert ranked(enriched_orders("orders", "users"), 5, 0, orders=5, users=5) == [HistoryPhase(frozenset({"users"}))]


def test_what_holds_no_history_is_not_waited_for() -> None:
    assert ranked(enriched_orders("orders", "users"), 0, 5, orders=5, users=5) == []


def test_sides_that_ask_each_other_are_read_in_one_batch() -> None:
    """Here a topic asks itself; where its left side is read from now on, none of its old rows asks."""
    flow = enriched_orders("t", "t")

    assert ranked(flow, 0, 0, t=5) == [HistoryPhase(frozenset({"t"}), whole=True)]
    assert ranked(flow, 5, 0, t=5) == [HistoryPhase(frozenset({"t"}))]


def test_what_asks_a_circle_is_read_with_it_and_what_a_circle_asks_is_read_before() -> None:
    flow = twice_enriched("t", "t", "clicks")

    assert ranked(flow, 0, 0, 0, t=5, clicks=5) == [
        HistoryPhase(frozenset({"clicks"})),
        HistoryPhase(frozenset({"t"}), whole=True),
    ]


counts = st.integers(0, 60)
sides = st.dictionaries(st.sampled_from("012"), st.tuples(counts, counts), min_size=1)
"""By partition: the records at the first start, and those that have come since."""


@given(sides, sides)
def test_left_rows_are_read_once_all_the_history_of_the_right_is_there(
    left: dict[str, tuple[int, int]], right: dict[str, tuple[int, int]]
) -> None:
    sizes = {"orders": left, "users": right}
    history = {topic: {int(place): old for place, (old, _) in of.items()} for topic, of in sizes.items()}
    ends = {topic: {place: old + new for place, (old, new) in of.items()} for topic, of in sizes.items()}
    places = sum(len(of) for of in sizes.values())
    order = phases(enriched_orders("orders", "users"), [{}, {}], history)

    at: JsonOffsets = {topic: dict.fromkeys(of, 0) for topic, of in sizes.items()}
    while at != ends:
        # Nothing but the place is known of what was before: any batch may be the first one after a restart.
        reached = next_end(at, ends, order, history, LIMIT)
        taken = _total(reached) - _total(at)
        assert 0 < taken <= LIMIT + places
        if _total({"orders": at["orders"]}) < _total({"orders": reached["orders"]}):
            assert all(at["users"][place] >= old for place, (old, _) in right.items())
        at = reached


def _total(offsets: JsonOffsets) -> int:
    return sum(end for of in offsets.values() for end in of.values())


@pytest.mark.parametrize("limit", [LIMIT, None])
def test_a_partition_that_has_lost_some_of_its_history_holds_nobody_up(limit: int | None) -> None:
    order = ranked(enriched_orders("orders", "users"), 0, 0, orders=5, users=9)
    start, ends = {"orders": {"0": 0}, "users": {"0": 7}}, {"orders": {"0": 5}, "users": {"0": 7}}

    assert next_end(start, ends, order, {"orders": {0: 5}, "users": {0: 9}}, limit) == ends


def test_a_circle_is_read_whole_and_then_in_parts_again() -> None:
    history = {"t": {0: 50}}
    order = ranked(enriched_orders("t", "t"), 0, 0, t=50)

    assert next_end({"t": {"0": 0}}, {"t": {"0": 90}}, order, history, LIMIT) == {"t": {"0": 50}}
    assert next_end({"t": {"0": 50}}, {"t": {"0": 90}}, order, history, LIMIT) == {"t": {"0": 60}}
