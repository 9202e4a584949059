"""Runs of records: dealt out to tasks, and read exactly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from dovetail.broker import clients
from dovetail.broker import topics as topic_admin
from dovetail.broker.address import BrokerAddress
from dovetail.broker.offset_ranges import OffsetRange, read, shares
from dovetail.changelog.errors import RecordsGone
from tests.spark.kafka import send, trim

lengths = st.lists(st.integers(1, 1000), max_size=12)


@given(lengths, st.integers(1, 4))
def test_every_range_is_dealt_out_once_and_evenly(found: list[int], count: int) -> None:
    ranges = [OffsetRange("t", partition, 5, 5 + length) for partition, length in enumerate(found)]

    dealt = shares(ranges, count)

    assert sorted(one.partition for share in dealt for one in share) == list(range(len(found)))
    assert len(dealt) == min(count, len(found))
    totals = [sum(one.length for one in share) for share in dealt]
    assert not totals or max(totals) - min(totals) <= max(found)


def offsets(brokers: str, ranges: list[OffsetRange]) -> dict[tuple[str, int], list[int]]:
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for topic, partition, records in read(BrokerAddress(brokers), ranges):
        assert set(records.column("partition").to_pylist()) == {partition}
        found[topic, partition] += records.column("offset").to_pylist()
    return found


@pytest.mark.services
def test_ranges_of_several_topics_are_read_exactly(broker: str, topics: Callable[..., str]) -> None:
    first, second = topics("first", partitions=2), topics("second", partitions=1)
    for topic in (first, second):
        send(broker, topic, [{"n": n} for n in range(100)], keys=[b"%d" % n for n in range(100)])
    ends = topic_admin.end_offsets(clients.admin(BrokerAddress(broker)), [first])[first]
    wanted = [OffsetRange(first, 0, 3, ends[0] - 5), OffsetRange(first, 1, 0, ends[1]), OffsetRange(second, 0, 40, 41)]

    found = offsets(broker, wanted)

    assert found == {(one.topic, one.partition): list(range(one.start, one.end)) for one in wanted}


@pytest.mark.services
def test_what_a_transaction_took_back_is_not_read_and_its_marks_end_a_range(
    broker: str, topics: Callable[..., str]
) -> None:
    topic = topics("transactions", partitions=1)
    producer = Producer({"bootstrap.servers": broker, "transactional.id": topic})
    producer.init_transactions()
    for commit in (True, False, True):
        producer.begin_transaction()
        producer.produce(topic, b"{}")
        producer.flush()
        (producer.commit_transaction if commit else producer.abort_transaction)()

    # Each transaction is a record and its mark: 0 1, 2 3 (aborted), 4 5.
    assert offsets(broker, [OffsetRange(topic, 0, 0, 6)]) == {(topic, 0): [0, 4]}
    assert offsets(broker, [OffsetRange(topic, 0, 2, 4)]) == {}


@pytest.mark.services
def test_records_that_are_gone_are_an_error_and_not_a_gap(broker: str, topics: Callable[..., str]) -> None:
    topic = topics("trimmed", partitions=1)
    send(broker, topic, [{"n": n} for n in range(10)])
    trim(broker, topic, 6)

    with pytest.raises(RecordsGone, match="are gone"):
        offsets(broker, [OffsetRange(topic, 0, 2, 10)])
