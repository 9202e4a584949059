"""Dead letters as the writers of Dovetail write them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.changelog.dead_letter import DeadLetter, row_too_large, to_dead_letters
from dovetail.changelog.decode import REJECTED

REASON = "column price: expected float64, found text 'abc'"
WRITTEN_MS = 1_700_000_000_000


def dead_letters(
    topic: str, values: Iterable[bytes], *, partition: int = 0, reason: str = REASON, dead_letter_bytes: int = 1_000_000
) -> list[DeadLetter]:
    """Of records of ``topic`` with offsets from 0, a second apart, under keys that are their numbers."""
    held = list(values)
    columns = [
        [partition] * len(held),
        list(range(len(held))),
        [WRITTEN_MS + 1000 * number for number in range(len(held))],
        [b"%d" % number for number in range(len(held))],
        held,
        [reason] * len(held),
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, REJECTED, strict=True)]
    rejected = pa.table(arrays, schema=REJECTED)
    return list(to_dead_letters(rejected, topic=topic, query="priced", dead_letter_bytes=dead_letter_bytes))


def output_row(topic: str) -> DeadLetter:
    """A row that its output topic did not take."""
    return row_too_large(None, b"{}", topic=topic, query="priced", reason="too large", dead_letter_bytes=1_000_000)


def post(brokers: str, topic: str, posted: Iterable[DeadLetter]) -> None:
    producer = clients.producer(BrokerAddress(brokers), {"queue.buffering.max.messages": 1_000_000})
    for dead_letter in posted:
        producer.produce(topic, partition=0, **dead_letter.message)
    assert producer.flush(60) == 0
