"""What the broker has of a query besides its records: how far it has come, by offsets that its transactions commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.broker.address import BrokerAddress
from dovetail.broker.names import MARKS_TOPIC
from dovetail.broker.query_origin import ORIGIN_FILE, QueryOrigin
from dovetail.broker.transactional_writer import DROPPED, committed_offset
from dovetail.runtime.storage.storage import Storage
from dovetail.sql.engines import Engine

_CALL_S = 30.0
Committed = Mapping[str, Mapping[str, int]]
"""Topic → partition → offset; below 0 where there is none."""


def origin_of(engine: str, checkpoint: str, place: Storage) -> QueryOrigin:
    """From the catalog's entry of a query: the origin itself, or the ``place`` of a checkpoint."""
    if engine == Engine.FAUST:
        return QueryOrigin.read(checkpoint, where="the catalog")
    return QueryOrigin.read(place.read(ORIGIN_FILE).decode(), where=place.inside(ORIGIN_FILE).location)


def committed_places(engine: str, origin: QueryOrigin, progress: Mapping[str, Any]) -> Committed:
    """Where it commits, as offsets of nothing: the marks of its buckets, or the partitions of its input."""
    if engine != Engine.FAUST:
        return {MARKS_TOPIC: {str(bucket): -1 for bucket in range(origin.buckets)}}
    return {topic: dict.fromkeys(map(str, wanted), -1) for topic, wanted in progress.get("offsets", {}).items()}


def committed_now(brokers: BrokerAddress, identity: str, places: Committed) -> Committed:
    """Raises BrokerError where the broker does not answer."""
    return {
        topic: {number: committed_offset(brokers, identity, topic, int(number), _CALL_S) for number in wanted}
        for topic, wanted in places.items()
    }


def is_lost(before: Committed, now: Committed) -> bool:
    """Whether the broker has forgotten how far the query had come, or knows that it was dropped."""
    return any(
        now[topic][number] < offset or now[topic][number] == DROPPED
        for topic, wanted in before.items()
        for number, offset in wanted.items()
    )
