"""What a worker keeps of the queries that it serves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from broker.address import BrokerAddress
from broker.transactional_writer import WriteTarget
from spark_jobs.stages.job import Job, opened
from tests.spark.flows import orders_clicks

MANY = 100


def test_queries_that_take_turns_stay_open() -> None:
    job = Job(
        name="q",
        dataflow=orders_clicks("l", "r"),
        output_topic="q",
        dead_letter_topic="q.dead_letter",
        target=WriteTarget(BrokerAddress("nowhere"), "q", "marks", 1.0, 1.0),
        bucket_keys=(40, 41),
        scan_starts=({}, {}),
        checkpoint=Path(),
        local_copy=None,
        local_copy_max_bytes=0,
        local_copies_max_bytes=0,
    )
    shipped = [replace(job, name=f"q{number}").ship() for number in range(MANY)]
    first_turn = [opened(each) for each in shipped]
    assert [job.name for job in first_turn] == [f"q{number}" for number in range(MANY)]
    assert all(opened(each) is before for each, before in zip(shipped, first_turn, strict=True))
