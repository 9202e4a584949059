"""What a worker keeps of the queries that it serves."""

from __future__ import annotations

from dataclasses import replace

from dovetail.spark_jobs.stages.job import opened
from tests.spark.flows import orders_clicks
from tests.spark.jobs import job_of

MANY = 100


def test_queries_that_take_turns_stay_open() -> None:
    job = job_of(orders_clicks("l", "r"))
    shipped = [replace(job, name=f"q{number}").ship() for number in range(MANY)]
    first_turn = [opened(each) for each in shipped]
    assert [job.name for job in first_turn] == [f"q{number}" for number in range(MANY)]
    assert all(opened(each) is before for each, before in zip(shipped, first_turn, strict=True))


def test_one_bucket_needs_no_exchange_before_its_sink() -> None:
    """Rows of one output key meet there without one."""
    flow = orders_clicks("l", "r")
    exchanged = replace(flow, sink=replace(flow.sink, exchanged=True))
    assert job_of(flow).fused_sink
    assert not job_of(exchanged).fused_sink
    assert job_of(exchanged, bucket_keys=(40,)).fused_sink
    assert not job_of(replace(exchanged, nodes=()), bucket_keys=(40,)).fused_sink
