"""How often a query of EMIT PERIODIC begins a batch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyspark.sql.streaming.datasource import ReadAllAvailable

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.transactional_writer import WriteTarget
from dovetail.spark_jobs.source.ends_watch import EndsWatch
from dovetail.spark_jobs.source.kafka_source import KafkaReader
from dovetail.spark_jobs.source.period import Period
from tests.spark.flows import orders_clicks
from tests.spark.jobs import job_of
from tests.spark.kafka import send


def test_a_batch_waits_for_the_end_of_the_period_of_the_one_before() -> None:
    period = Period(5.0)
    assert period.wait_s(100.0) == 0.0
    period.began(100.0, caught_up=True)
    assert [period.wait_s(now_s) for now_s in (100.0, 104.0, 105.0, 200.0)] == [5.0, 1.0, 0.0, 0.0]
    period.began(200.0, caught_up=True)
    assert period.wait_s(201.0) == 4.0


def test_a_query_that_catches_up_does_not_wait() -> None:
    period = Period(5.0)
    period.began(100.0, caught_up=False)
    assert period.wait_s(100.0) == 0.0


def test_without_a_period_no_batch_waits() -> None:
    period = Period(0.0)
    period.began(100.0, caught_up=True)
    assert period.wait_s(100.0) == 0.0


def test_a_source_waits_at_the_watch_though_its_topic_has_grown(broker: str) -> None:
    """The watch knows that its batch has ended, and the others that they may begin."""
    address = BrokerAddress(broker)
    topics.ensure(clients.admin(address), {"periodic": 1, "beside": 1})
    watch = EndsWatch(address)
    flow = replace(orders_clicks("periodic", "beside"), period_ms=600_000)
    job = job_of(flow, target=WriteTarget(address, "q", "marks", 30.0, 30.0))
    reader = KafkaReader(job.ship(), None, watch.address)
    send(broker, "periodic", [{}])
    first = reader.latestOffset({"periodic": {"0": 0}, "beside": {"0": 0}}, ReadAllAvailable())
    assert first["periodic"] == {"0": 1}
    send(broker, "periodic", [{}])
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(reader.latestOffset, first, ReadAllAvailable())
        while watch.silence(job.source) is None:
            assert not pending.done()
        watch.close()
        assert pending.result() == first
    reader.stop()
