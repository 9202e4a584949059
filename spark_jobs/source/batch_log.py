"""Which records each batch has read, kept at the broker: so that a checkpoint older than its output can follow it.

Before a batch is run, where it starts and ends is a record of ``dovetail.batches``, under the identity of the query.
A checkpoint that was put back from a backup has not seen the batches since. They follow from one another, each starting
where the one before has ended; run again over the same records they bring the state to where it was, and their output
is written already.

    checkpoint: up to 120        log: 120 → 150, 150 → 155, 155 → 200        mark: two batches on, 155 → 200 has none
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.errors import BrokerError
from dovetail.broker.producer_queue import Outgoing
from dovetail.broker.reader import TopicReader
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.broker.topic_writer import write_at_once
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.spark_jobs.state.checkpoint import JsonOffsets, place

BATCHES_TOPIC = "dovetail.batches"
_PARTITIONS = 16
_WEEK_MS = 7 * 86_400_000
_CALL_S = 30.0


def ensure_log(brokers: BrokerAddress) -> None:
    """The topic, if it is not there: as long as marks live, so do the batches between them."""
    shape = TopicShape(_PARTITIONS, config={"cleanup.policy": "delete", "retention.ms": str(_WEEK_MS)})
    TopicAdmin(brokers, _CALL_S).create(BATCHES_TOPIC, shape)


def note_batch(brokers: BrokerAddress, identity: str, start: JsonOffsets, end: JsonOffsets, wait_s: float) -> None:
    """Write that a batch reads from ``start`` to ``end``; once this returns, it stands there.

    Raises ServiceUnavailable where the broker does not take it within ``wait_s``.
    """
    message = {"key": identity.encode(), "value": json.dumps({"start": start, "end": end}).encode()}
    try:
        write_at_once(brokers, Outgoing(BATCHES_TOPIC, [message], partition=_partition(identity)), wait_s)
    except BrokerError as failure:
        raise ServiceUnavailable(
            f"the broker did not take the note of a batch: {failure.reason}",
            where=f"brokers {brokers}, topic {BATCHES_TOPIC}",
            fix="start the broker; the query resumes where it stopped",
        ) from failure


def batches_after(brokers: BrokerAddress, identity: str, start: JsonOffsets) -> list[tuple[JsonOffsets, JsonOffsets]]:
    """Start and end of the batches of a query that follow one another from ``start``."""
    ends = {place(noted["start"]): noted["end"] for noted in _noted(brokers, identity)}
    found: list[tuple[JsonOffsets, JsonOffsets]] = []
    # No batch ends where one before it has started: offsets only grow. A note that says so is of nobody.
    while (end := ends.pop(place(start), None)) is not None:
        found.append((start, end))
        start = end
    return found


def _noted(brokers: BrokerAddress, identity: str) -> Iterator[dict[str, JsonOffsets]]:
    """In the order of writing: of two batches of one start the first was planned, and never run."""
    partition = _partition(identity)
    client = clients.admin(brokers)
    ends = topics.ends(client, {BATCHES_TOPIC: [partition]})[BATCHES_TOPIC]
    for records in TopicReader(brokers, BATCHES_TOPIC).until(ends):
        of_query = records.filter(pc.equal(records["key"], pa.scalar(identity.encode())))
        yield from map(json.loads, of_query["value"].to_pylist())


def _partition(identity: str) -> int:
    return zlib.crc32(identity.encode()) % _PARTITIONS
