"""The transactions of a partition, by themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.broker.group_member import NOBODY, GroupMember
from dovetail.broker.reader import TopicReader
from dovetail.broker.transactional_writer import WriteTarget
from dovetail.services.worker.lane.transactions import Place, opened

pytestmark = pytest.mark.services


def test_the_memo_of_a_partition_stands_in_the_partition_of_its_number(broker: str, topics: Callable[..., str]) -> None:
    identity, source, memo = topics("identity"), topics("input", partitions=4), topics("memo", partitions=4)
    target = WriteTarget(BrokerAddress(broker), identity, "", 60.0, 20.0)
    transactions = opened(Place(target, source, 2, 0), GroupMember(identity, NOBODY, "").metadata, lambda: False)
    updates = [(f"key {number}".encode(), b"v") for number in range(30)]
    transactions.begin()
    transactions.remember(memo, updates)
    assert transactions.commit(1) == 30
    transactions.begin()
    transactions.remember(memo, [(b"key 0", None)])
    # Behind the mark of the first commit.
    assert transactions.commit(2) == 32
    found = [row for batch in TopicReader(BrokerAddress(broker), memo).until({2: 32}) for row in batch.to_pylist()]
    assert {row["partition"] for row in found} == {2}
    assert [(row["key"], row["value"]) for row in found] == [*updates, (b"key 0", None)]
