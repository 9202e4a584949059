"""Dataflows through a real broker and Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from dovetail.changelog.dead_letter import topic_of
from dovetail.changelog.errors import CheckpointMismatch, StateLimitExceeded, UnknownName
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.ports import JoinKind
from tests.spark.conftest import Queries
from tests.spark.flows import enriched_orders, greeted_orders, orders_clicks, orders_counted, orders_users
from tests.spark.kafka import messages, multiset, send, values

pytestmark = pytest.mark.services
Topics = Callable[..., str]
Run = Callable[[Dataflow], str]


def test_an_inner_join_writes_each_pair_once_under_its_key(broker: str, topics: Topics, run: Run) -> None:
    left, right = topics("left", partitions=2), topics("right", partitions=2)
    send(broker, left, [{"k": n % 50, "a": f"a{n}"} for n in range(200)])
    send(broker, right, [{"k": n % 100, "b": f"b{n}"} for n in range(200)])

    output = run(orders_clicks(left, right))

    expected = multiset(
        {"k": n % 50, "a": f"a{n}", "b": f"b{m}"} for n in range(200) for m in range(200) if n % 50 == m % 100
    )
    assert multiset(values(broker, output)) == expected
    assert {message.key() for message in messages(broker, output)} == {b'{"k":%d}' % n for n in range(50)}


def test_an_outer_join_takes_padded_rows_back(broker: str, topics: Topics, queries: Queries) -> None:
    left, right = topics("left"), topics("right")
    dataflow = orders_clicks(left, right, JoinKind.LEFT)
    query = queries.start(dataflow, "padded")
    send(broker, left, [{"k": 1, "a": "x"}])
    queries.drain(query, dataflow)
    send(broker, right, [{"k": 1, "b": "y"}])
    queries.drain(query, dataflow)

    assert [tuple(row.values()) for row in values(broker, "padded")] == [
        (1, "x", None, 1),
        (1, "x", None, -1),
        (1, "x", "y", 1),
    ]


def test_two_levels_and_an_exchanged_sink(broker: str, topics: Topics, queries: Queries) -> None:
    orders, users = topics("orders", partitions=2), topics("users", partitions=2)
    dataflow = orders_users(orders, users)
    query = queries.start(dataflow, "moved")
    send(broker, orders, [{"k": 1, "a": "one"}, {"k": 2, "a": "two"}])
    send(broker, users, [{"id": 7, "k": 1, "name": "Ann"}], keys=[{"id": 7}])
    queries.drain(query, dataflow)
    assert [tuple(row.values()) for row in values(broker, "moved")] == [("one", "Ann", 1)]

    send(broker, users, [{"id": 7, "k": 2, "name": "Ann"}], keys=[{"id": 7}])
    queries.drain(query, dataflow)
    send(broker, users, [None], keys=[{"id": 7}])
    queries.drain(query, dataflow)

    # The retraction and its replacement come from two buckets, and are written in order all the same.
    assert [tuple(row.values()) for row in values(broker, "moved")] == [
        ("one", "Ann", 1),
        ("one", "Ann", -1),
        ("two", "Ann", 1),
        ("two", "Ann", -1),
    ]


def test_the_keyed_history_is_there_before_the_first_row(broker: str, topics: Topics, queries: Queries) -> None:
    orders, users = topics("orders"), topics("users")
    send(
        broker, users, [{"id": n, "k": n, "name": f"user {n}"} for n in range(50)], keys=[{"id": n} for n in range(50)]
    )
    send(broker, orders, [{"k": 1, "a": "before the start"}])
    dataflow = enriched_orders(orders, users)
    query = queries.start(dataflow, "enriched", settings=queries.settings(max_offsets_per_trigger=10))
    send(broker, orders, [{"k": 49, "a": "after"}, {"k": 50, "a": "unknown"}])
    queries.drain(query, dataflow)

    assert multiset(values(broker, "enriched")) == {(49, "after", "user 49"): 1, (50, "unknown", None): 1}


def test_static_tables_stay_as_they_were_at_the_first_start(broker: str, topics: Topics, queries: Queries) -> None:
    orders = topics("orders")
    dataflow = greeted_orders(orders)
    send(broker, orders, [{"k": 1, "a": "x"}])
    query = queries.start(dataflow, "greeted", snapshots={"greetings": pa.table({"word": ["hello"]})})
    queries.drain(query, dataflow)
    query.stop()

    send(broker, orders, [{"k": 2, "a": "y"}])
    query = queries.start(dataflow, "greeted", snapshots={"greetings": pa.table({"word": ["other"]})})
    queries.drain(query, dataflow)

    assert multiset(values(broker, "greeted")) == {("hello", 1, "x"): 1, ("hello", 2, "y"): 1}


def test_bad_records_become_dead_letters_once(broker: str, topics: Topics, queries: Queries) -> None:
    left, right = topics("left"), topics("right")
    dataflow = orders_clicks(left, right)
    send(broker, left, [{"k": 1, "a": "x"}, b"{not json", {"k": "one", "a": "y"}])
    send(broker, right, [{"k": 1, "b": "z"}])
    query = queries.start(dataflow, "strict")
    queries.drain(query, dataflow)

    assert multiset(values(broker, "strict")) == {(1, "x", "z"): 1}
    dead_letters = messages(broker, topic_of("strict"))
    assert [dead_letter.value() for dead_letter in dead_letters] == [b"{not json", b'{"k":"one","a":"y"}']
    headers = [dict(dead_letter.headers() or ()) for dead_letter in dead_letters]
    assert [(sent["dovetail.topic"], sent["dovetail.offset"]) for sent in headers] == [
        (left.encode(), b"1"),
        (left.encode(), b"2"),
    ]
    assert query.progress().counts["rejected"] == 2


def test_a_silent_input_costs_no_batch(broker: str, topics: Topics, queries: Queries) -> None:
    left, right = topics("left"), topics("right")
    dataflow = orders_clicks(left, right)
    query = queries.start(dataflow, "silent")
    send(broker, left, [{"k": 1, "a": "x"}])
    queries.drain(query, dataflow)

    # Another query works through ten batches in the meantime.
    busy = topics("busy")
    send(broker, busy, [{"k": n, "b": "y"} for n in range(10)])
    other_dataflow = orders_clicks(topics("idle"), busy)
    other = queries.start(other_dataflow, settings=queries.settings(max_offsets_per_trigger=1))
    queries.drain(other, other_dataflow)

    assert other.progress().batch == 9
    assert query.progress().batch == 0


def test_a_query_past_its_limit_ends_with_the_error_of_its_operator(
    broker: str, topics: Topics, queries: Queries
) -> None:
    left, right = topics("left"), topics("right")
    dataflow = orders_clicks(left, right, limit=1000)
    send(broker, left, [{"k": n, "a": "x" * 100} for n in range(100)])
    query = queries.start(dataflow, "limited")

    with pytest.raises(StateLimitExceeded, match=r'(?s)join_max_buffered_bytes.*query "limited"'):
        queries.drain(query, dataflow)
    assert isinstance(query.error(), StateLimitExceeded)


def test_another_plan_does_not_resume(broker: str, topics: Topics, queries: Queries) -> None:
    dataflow = orders_clicks(topics("left"), topics("right"))
    queries.start(dataflow, "changed", plan="Join inner\n  on k").stop()

    with pytest.raises(CheckpointMismatch, match=r"(?s)-Join inner.*\+Join left"):
        queries.start(dataflow, "changed", plan="Join left\n  on k")


def test_a_missing_input_is_named(queries: Queries, topics: Topics) -> None:
    with pytest.raises(UnknownName, match='"nowhere"'):
        queries.start(orders_clicks("nowhere", topics("right")))


def test_a_count_without_groups_is_one_row_from_the_start(broker: str, topics: Topics, queries: Queries) -> None:
    """Rows of all partitions meet in one bucket, and where WHERE lets none of them pass the count is 0."""
    orders = topics("orders", partitions=3)
    dataflow = orders_counted(orders, above=100)
    query = queries.start(dataflow, "counted")
    send(broker, orders, [{"k": n, "a": "x"} for n in range(90)])
    queries.drain(query, dataflow)
    assert [tuple(row.values()) for row in values(broker, "counted")] == [(0, 1)]

    send(broker, orders, [{"k": n, "a": "x"} for n in range(91, 131)])
    queries.drain(query, dataflow)
    inserted = multiset(row for row in values(broker, "counted") if row["_tp_delta"] == 1)
    retracted = multiset(row for row in values(broker, "counted") if row["_tp_delta"] == -1)
    assert [n for n, _ in inserted if not retracted[n, -1]] == [30]
