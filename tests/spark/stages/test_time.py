"""Event time through a real broker and Spark: idle inputs, heartbeats, late rows, times that cannot be used."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable

import orjson
import pytest
from confluent_kafka import Producer

from dovetail.changelog.dead_letter import topic_of
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.spark_jobs.runner.query import RunningQuery
from tests.spark.conftest import Queries
from tests.spark.flows import orders_near_clicks
from tests.spark.kafka import Value, messages, multiset, send, values

pytestmark = pytest.mark.services
Topics = Callable[..., str]
PATIENCE_S = 60.0
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)


def row(k: int, seconds: float) -> dict[str, object]:
    return {"k": k, "at": text(seconds)}


def text(seconds: float) -> str:
    return written(NOON + dt.timedelta(seconds=seconds))


def written(moment: dt.datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(" ", "milliseconds")


def beat(broker: str, topic: str, seconds: float) -> None:
    """A heartbeat: the topic has shown all that is before ``seconds``."""
    moment = NOON + dt.timedelta(seconds=seconds)
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(topic, timestamp=round(moment.timestamp() * 1000))
    assert producer.flush(30) == 0


def output(broker: str, name: str) -> dict[tuple[object, ...], int]:
    return dict(multiset(values(broker, name)))


def await_rows_out(query: RunningQuery, count: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while query.progress().counts["rows_out"] < count:
        assert query.error() is None
        assert time.monotonic() < end, f"{query.progress().counts} instead of {count} rows out"
        time.sleep(0.05)


class Inputs:
    """Two topics, and the query between them."""

    def __init__(self, broker: str, topics: Topics, queries: Queries, idle_ms: int | None = None) -> None:
        self.broker, self.queries, self.name = broker, queries, queries.new_name()
        self.left, self.right = topics("left"), topics("right")
        self.dataflow: Dataflow = orders_near_clicks(self.left, self.right, idle_ms)

    def send(self, left: Iterable[Value] = (), right: Iterable[Value] = ()) -> None:
        send(self.broker, self.left, left)
        send(self.broker, self.right, right)

    def start(self, late_topic: str = "") -> RunningQuery:
        return self.queries.start(self.dataflow, self.name, settings=self.queries.settings(late_topic=late_topic))

    def drain(self, query: RunningQuery) -> None:
        self.queries.drain(query, self.dataflow)

    @property
    def output(self) -> dict[tuple[object, ...], int]:
        return output(self.broker, self.name)


def test_a_row_that_waits_for_an_idle_input_leaves_and_time_stands_still_after_that(
    broker: str, topics: Topics, queries: Queries
) -> None:
    inputs = Inputs(broker, topics, queries, idle_ms=300)
    query = inputs.start()
    inputs.send(left=[row(1, 0), row(2, 100)], right=[row(9, 0)])
    await_rows_out(query, 1)
    assert inputs.output == {(1, text(0), None): 1}

    # Both are silent now, and that is known: nothing else happens, neither now nor after a restart.
    time.sleep(1.0)
    batch = query.progress().batch
    time.sleep(0.5)
    assert query.progress().batch == batch
    query.stop()
    query = inputs.start()
    time.sleep(1.0)
    assert query.progress().batch == batch

    # The silent input comes back behind the watermark, and then before it.
    inputs.send(right=[row(1, 1), row(2, 105)])
    inputs.drain(query)
    assert inputs.output == {(1, text(0), None): 1, (2, text(100), text(105)): 1}
    assert query.progress().late == {"l": 0, "r": 1}


def test_heartbeats_move_the_watermark_and_are_no_rows(broker: str, topics: Topics, queries: Queries) -> None:
    inputs = Inputs(broker, topics, queries)
    query = inputs.start()
    inputs.send(left=[row(1, 0)])
    beat(broker, inputs.right, 10)
    inputs.drain(query)
    assert inputs.output == {}

    beat(broker, inputs.right, 10.001)
    inputs.drain(query)

    assert inputs.output == {(1, text(0), None): 1}
    assert messages(broker, topic_of(inputs.name)) == []
    counts = query.progress().counts
    assert (counts["rows_in"], counts["rejected"]) == (1, 0)


@pytest.mark.parametrize("exchanged", [False, True])
def test_late_rows_go_to_their_topic(broker: str, topics: Topics, queries: Queries, exchanged: bool) -> None:
    left, right, late_topic = topics("left"), topics("right"), f"{queries.new_name()}-late"
    dataflow = orders_near_clicks(left, right, exchanged=exchanged)
    query = queries.start(dataflow, settings=queries.settings(late_topic=late_topic))
    send(broker, left, [row(1, 50)])
    send(broker, right, [row(1, 50)])
    queries.drain(query, dataflow)

    send(broker, left, [row(1, 49), row(2, 50)])
    send(broker, right, [row(1, 40), row(3, 41)])
    queries.drain(query, dataflow)

    found = sorted(messages(broker, late_topic), key=lambda message: message.value() or b"")
    assert [orjson.loads(message.value() or b"") for message in found] == [row(1, 40), row(1, 49), row(3, 41)]
    headers = [dict(message.headers() or ()) for message in found]
    assert [each["dovetail.input"] for each in headers] == [b"r", b"l", b"r"]
    assert {each["dovetail.event_time"] for each in headers} == {b"at"}
    assert {each["dovetail.watermark"] for each in headers} == {text(50).encode()}
    assert query.progress().late == {"l": 1, "r": 2}
    assert query.progress().counts["late"] == 3


def test_times_that_cannot_be_used_are_dead_letters_and_move_nothing(
    broker: str, topics: Topics, queries: Queries
) -> None:
    inputs = Inputs(broker, topics, queries)
    query = inputs.start()
    far = {"k": 1, "at": written(dt.datetime.now(dt.UTC) + dt.timedelta(days=2))}
    inputs.send(left=[row(1, 0), {"k": 1, "at": None}, far], right=[row(1, 5)])
    inputs.drain(query)
    inputs.send(left=[row(2, 0)], right=[row(2, 5)])
    inputs.drain(query)

    assert inputs.output == {(1, text(0), text(5)): 1, (2, text(0), text(5)): 1}
    dead_letters = messages(broker, topic_of(inputs.name))
    missing, ahead = (str(dict(dead_letter.headers() or ())["dovetail.reason"]) for dead_letter in dead_letters)
    assert "column at: the event time is NULL" in missing
    assert "the latest that max_future = 1d allows" in ahead
    assert query.progress().counts["rejected"] == 2
