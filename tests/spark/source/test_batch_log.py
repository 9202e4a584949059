"""The notes of batches at the broker."""

from __future__ import annotations

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.spark_jobs.source.batch_log import batches_after, ensure_log, note_batch

pytestmark = pytest.mark.services
_WAIT_S = 30.0


def at(offset: int) -> dict[str, dict[str, int]]:
    return {"orders": {"0": offset}}


def test_a_note_that_is_there_twice_says_what_one_says(broker: str) -> None:
    brokers = BrokerAddress(broker)
    ensure_log(brokers)
    for start, end in ((0, 5), (0, 5), (5, 9), (5, 9), (9, 12)):
        note_batch(brokers, "noted-twice", at(start), at(end), _WAIT_S)
    assert batches_after(brokers, "noted-twice", at(0)) == [(at(0), at(5)), (at(5), at(9)), (at(9), at(12))]
    assert batches_after(brokers, "noted-twice", at(5)) == [(at(5), at(9)), (at(9), at(12))]
