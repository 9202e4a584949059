"""How large the records of some ranges are, by looks at a few places: a range is not read to be weighed.

A look is one fetch of each partition, at the same share of its range: at the beginning, at the end, and between. A
partition counts as if all of its records were as large as those of the look that found the largest ones, and one that
does not answer in time as the largest of the others. So a topic whose records become large on the way is found, unless
they are between two looks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property

from confluent_kafka import Consumer, Message, TopicPartition

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.errors import BrokerError
from dovetail.broker.offset_ranges import OffsetRange

_RECORDS_PER_STEP = 50_000
_MOST_STEPS = 3
_ENDING = 3
"""Records. The last offsets of a range may be marks of transactions, which say nothing."""
_LOOK_S = 0.5
_POLL_S = 0.005
_FETCH_BYTES = 1 << 16
_MESSAGES = 10_000
_UNUSED_S = 60.0


class RecordSizes:
    """Weighs ranges. Its client lives while it is used."""

    def __init__(self, brokers: BrokerAddress) -> None:
        self._brokers = brokers
        self._used_s = 0.0

    def weigh(self, ranges: Sequence[OffsetRange]) -> int | None:
        """About how many bytes the keys and the values of ``ranges`` have; None where the broker does not say."""
        self._used_s = time.monotonic()
        count = sum(one.length for one in ranges)
        steps = min(1 + count // _RECORDS_PER_STEP, _MOST_STEPS)
        largest: dict[tuple[str, int], float] = {}
        try:
            for step in range(steps + 1):
                found = self._look([(one, _place(one, step / steps)) for one in ranges])
                if found is None:
                    return None
                for place, mean in found.items():
                    largest[place] = max(mean, largest.get(place, 0.0))
        except BrokerError:
            return None
        unknown = max(largest.values(), default=0.0)
        return int(sum(one.length * largest.get((one.topic, one.partition), unknown) for one in ranges))

    def rest(self) -> None:
        """Close the client, unless it was used of late."""
        if "_consumer" in self.__dict__ and time.monotonic() - self._used_s > _UNUSED_S:
            self.close()

    def close(self) -> None:
        if "_consumer" in self.__dict__:
            self._consumer.close()
            del self._consumer

    def _look(self, places: Sequence[tuple[OffsetRange, int]]) -> dict[tuple[str, int], float] | None:
        """The mean size of the records that are found at each place; None where nothing is found in time."""
        waiting = {(one.topic, one.partition) for one, _ in places}
        sizes: dict[tuple[str, int], list[int]] = {place: [] for place in waiting}
        deadline_s = time.monotonic() + _LOOK_S
        self._consumer.assign([TopicPartition(one.topic, one.partition, offset) for one, offset in places])
        try:
            while waiting and time.monotonic() < deadline_s:
                for message in self._consumer.consume(_MESSAGES, _POLL_S):
                    place = (message.topic() or "", message.partition() or 0)
                    if place in waiting:
                        # Also where there is nothing to be read any more, which the batch itself will find. It would be
                        # read on, and its records keep those of the others waiting.
                        waiting.discard(place)
                        self._consumer.incremental_unassign([TopicPartition(*place)])
                    if message.error() is None and place in sizes:
                        sizes[place].append(_size(message))
        finally:
            self._consumer.unassign()
        means = {place: sum(found) / len(found) for place, found in sizes.items() if found}
        return None if waiting and not means else means

    @cached_property
    def _consumer(self) -> Consumer:
        settings = {
            "auto.offset.reset": "error",
            # Records that were taken back, or may yet be, are as large as others.
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "fetch.queue.backoff.ms": 5,
            "fetch.message.max.bytes": _FETCH_BYTES,
            "queued.min.messages": 1,
            "queued.max.messages.kbytes": 1024,
            **clients.QUICK_RETURN,
        }
        return clients.consumer(self._brokers, "dovetail-sizes", settings)


def _place(one: OffsetRange, share: float) -> int:
    return one.start + int(max(one.length - _ENDING, 0) * share)


def _size(message: Message) -> int:
    return len(message.key() or b"") + len(message.value() or b"")
