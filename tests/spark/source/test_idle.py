"""Which partitions are idle, and how that becomes part of a batch."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dovetail.broker.offset_ranges import OffsetRange
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.ports import Watermark
from dovetail.spark_jobs.exchange.sequence_check import complete
from dovetail.spark_jobs.exchange.shuffle_block import PARTITION_TIMES, from_batch
from dovetail.spark_jobs.source.idle import Idleness, idle_times, silences
from dovetail.spark_jobs.source.kafka_source import KafkaReader, Share
from dovetail.spark_jobs.stages.decode import Silence
from dovetail.spark_jobs.state.checkpoint import IDLE, JsonOffsets, parsed_offsets
from tests.spark.flows import orders_clicks
from tests.spark.jobs import job_of


def at(*ends: int, **idle: int) -> JsonOffsets:
    """The offsets of topic t; ``p0=5``: partition 0 has been idle for 5 ms or longer."""
    offsets = {"t": {str(partition): end for partition, end in enumerate(ends)}}
    found = {f"t/{name.removeprefix('p')}": silent_ms for name, silent_ms in idle.items()}
    return {**offsets, IDLE: found} if found else offsets


@pytest.fixture
def idleness() -> Idleness:
    """Of a topic that is read by two scans, which wait for 5 s and for 20 s."""
    return Idleness({"t": (5_000, 20_000)})


def test_a_partition_that_was_read_to_its_end_and_gives_nothing_is_idle(idleness: Idleness) -> None:
    idleness.look(at(3, 7), 100.0)
    assert idleness.idle(at(3, 7), at(3, 7), 104.9) == {}

    idleness.look(at(3, 8), 104.9)
    assert idleness.idle(at(3, 7), at(3, 8), 105.0) == {"t/0": 5_000}
    assert idleness.idle(at(3, 8), at(3, 8), 121.0) == {"t/0": 20_000, "t/1": 5_000}


def test_one_that_is_not_read_to_its_end_is_not_idle(idleness: Idleness) -> None:
    """The batch takes no record of the second partition, and there are some."""
    idleness.look(at(3, 7), 100.0)

    assert idleness.idle(at(3, 5), at(3, 5), 200.0) == {"t/0": 20_000}


def test_a_record_ends_it(idleness: Idleness) -> None:
    idleness.look(at(3), 100.0)
    idleness.look(at(4), 130.0)

    assert idleness.idle(at(3, p0=5_000), at(4), 130.0) == {}
    assert idleness.idle(at(4), at(4), 134.0) == {}


def test_a_restart_wakes_nobody(idleness: Idleness) -> None:
    idleness.look(at(3, 7), 0.0)

    assert idleness.idle(at(3, 6, p0=20_000, p1=5_000), at(3, 7), 0.1) == {"t/0": 20_000}


def test_while_the_broker_is_away_nobody_is_silent(idleness: Idleness) -> None:
    idleness.look(at(3), 100.0)
    idleness.look(at(3), 104.0, waited_s=3.0)

    assert idleness.idle(at(3), at(3), 106.0) == {}
    assert idleness.idle(at(3), at(3), 108.0) == {"t/0": 5_000}


def test_a_silence_is_told_once_for_each_length() -> None:
    assert silences(at(3, 7), at(3, 7, p0=5_000)) == (Silence("t", 0, 5_000),)
    assert silences(at(3, 7, p0=5_000), at(3, 7, p0=20_000, p1=5_000)) == (
        Silence("t", 0, 20_000),
        Silence("t", 1, 5_000),
    )
    assert silences(at(3, p0=5_000), at(3, p0=5_000)) == ()
    assert silences(at(3, p0=5_000), at(4)) == ()


def test_offsets_are_read_without_it() -> None:
    assert parsed_offsets('{"t": {"0": 3}, "#idle": {"t/0": 5000}}') == {"t": {0: 3}}


def timed(left_idle_ms: int | None, right_idle_ms: int | None, topics: tuple[str, str] = ("l", "r")) -> Dataflow:
    flat = orders_clicks(*topics)
    watermarks = [Watermark("k", 0, idle_ms) for idle_ms in (left_idle_ms, right_idle_ms)]
    scans = [replace(scan, watermark=mark) for scan, mark in zip(flat.scans, watermarks, strict=True)]
    return replace(flat, scans=tuple(scans))


def test_only_topics_with_an_idle_time_are_watched() -> None:
    assert idle_times(timed(None, 5)) == {"r": (5,)}
    assert idle_times(timed(9, 5, ("t", "t"))) == {"t": (5, 9)}
    assert idle_times(orders_clicks("l", "r")) == {}


def test_a_batch_without_records_carries_marks_to_every_bucket_of_the_scans_that_have_waited_enough() -> None:
    job = job_of(timed(9, 5, ("t", "t")))
    reader = KafkaReader(job.ship(), None)

    (share,) = reader.dealt(at(3), at(3, p0=5))
    assert isinstance(share, Share)
    assert share == Share((), (Silence("t", 0, 5),))
    sent = [block for batch in reader.read(share) for block in from_batch(batch, job.bucket_keys)]
    blocks = [block for bucket in (0, 1) for block in complete(one for one in sent if one.bucket == bucket)]
    assert [(block.bucket, block.level, block.edge) for block in blocks] == [
        (0, 1, PARTITION_TIMES),
        (1, 1, PARTITION_TIMES),
    ]
    first, second = reader.dealt(at(3), at(3, 4, p0=9))
    assert isinstance(first, Share)
    assert isinstance(second, Share)
    assert first.ranges == (OffsetRange("t", 1, 0, 4),)
    assert second == Share((), (Silence("t", 0, 9),), number=1)


@pytest.mark.parametrize(
    ("records", "tasks"), [((1, 1), 1), ((2_500, 2_500), 1), ((2_500, 2_501), 2), ((9_000_000, 0), 1)]
)
def test_a_small_batch_is_read_by_one_task(records: tuple[int, int], tasks: int) -> None:
    reader = KafkaReader(job_of(timed(9, 5, ("t", "t"))).ship(), None)

    dealt = reader.dealt({}, at(*records))

    assert len(dealt) == tasks
    ranges = [one for share in dealt if isinstance(share, Share) for one in share.ranges]
    assert sum(one.length for one in ranges) == sum(records)


def test_the_next_length_of_silence_is_known_before() -> None:
    idleness = Idleness({"t": (1_000, 5_000), "u": (3_000,)})
    assert idleness.next_s(100.0) == math.inf
    idleness.look({"t": {"0": 4}, "u": {"0": 1}}, 100.0)
    assert idleness.next_s(100.25) == 0.75
    assert idleness.next_s(101.5) == 1.5
    idleness.look({"t": {"0": 5}, "u": {"0": 1}}, 102.0)
    assert idleness.next_s(102.0) == 1.0
    assert idleness.next_s(200.0) == math.inf
