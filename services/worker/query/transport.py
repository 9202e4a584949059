"""Faust's transport, changed in four ways.

- What a request gives for a partition goes on as one event (``Fetch``), not as one per record.
- Where a partition is read from is what its lane says, and a lane is open as long as the partition is assigned.
- Records stay as aiokafka's parser gives them.
- Faust commits no offset: lanes do, in the transactions that also hold the answers. So nothing is acknowledged either.

A fetch can be lost on its way through Faust's queues, which a rebalance clears. Each one therefore says where it
starts; a lane takes only what starts where the one before ended, and asks for the rest again (``reread``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

from aiokafka.consumer import fetcher  # type: ignore[import-untyped]
from aiokafka.errors import IllegalStateError  # type: ignore[import-untyped]
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from dovetail.broker.group_member import GroupMember
from dovetail.services.worker.lane.fetches import Fetch

_FETCH_WAIT_MS = 20
"""One long poll for a partition without records holds up all others of its broker."""
_POLL_S = 0.1
_CROWDED_POLL_S = 0.01
"""A poll while some lane is full: it may have room again long before a record comes for another one."""
_PAUSE_S = 0.005


class FetchTaker(Protocol):
    """What stands behind the consumer: the lanes. ``open`` and ``close`` block."""

    def open(self, partitions: Collection[int], member: GroupMember) -> Mapping[int, int]:
        """Take these partitions on; where each is to be read from."""
        ...

    def close(self) -> None:
        """Finish and commit what is under way, and give all partitions up."""
        ...

    def has_room(self, partition: int) -> bool: ...


class ParsedRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a fetch as they were parsed: an object of eleven fields for each would cost as much again."""

    def _consumer_record(self, tp: Any, record: Any) -> Any:
        return record


fetcher.PartitionRecords = ParsedRecords


class FetchConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread with aiokafka's consumer, made with what Faust has no settings for."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = _FETCH_WAIT_MS  # noqa: SLF001
        # An input may be the output of another query: what its transaction took back must not be read.
        consumer._isolation_level = "read_committed"  # noqa: SLF001
        return consumer


class FetchConsumer(driver.Consumer):
    """All topics of the app are topics of fetches."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lanes: FetchTaker = cast(FetchTransport, self.transport).lanes
        self._next: dict[TP, int] = {}
        """Where the next fetch starts."""

    def _new_consumer_thread(self) -> FetchConsumerThread:
        return FetchConsumerThread(self, loop=self.loop, beacon=self.beacon)

    # -- reading

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Mapping[TP, list[Fetch]]:
        assigned = set(active_partitions or ()) & self._next.keys()
        wanted = {tp for tp in assigned if self._lanes.has_room(tp.partition)}
        if not wanted or self.app.rebalancing:
            await self.sleep(_PAUSE_S)
            return {}
        generation = self.app.consumer_generation_id
        wait_s = _POLL_S if wanted == assigned else _CROWDED_POLL_S
        fetched = await super()._getmany(wanted, min(timeout, wait_s))
        if self.app.rebalancing or generation != self.app.consumer_generation_id:
            # The fetch was overtaken: its records may be of the time before, and Faust would drop them.
            await self._read_again()
            return {}
        fetches = ((tp, self._fetch(tp, fetched.get(tp, ()))) for tp in wanted)
        return {tp: [fetch] for tp, fetch in fetches if fetch is not None}

    def _fetch(self, tp: TP, records: Any) -> Fetch | None:
        """What a request gave; None if it did not get any further."""
        start = self._next[tp]
        end = self._position(tp)
        if end is None or (records and end <= records[-1].offset):
            end = records[-1].offset + 1 if records else start
        if end == start:
            return None
        self._next[tp] = end
        return Fetch(tp.partition, start, end, records)

    def _position(self, tp: TP) -> int | None:
        """Where the next fetch begins: behind marks of transactions, which are no records."""
        assignment = self._thread._ensure_consumer()._subscription.subscription.assignment  # noqa: SLF001
        state = assignment.state_value(tp) if assignment is not None else None
        return state.position if state is not None and state.has_valid_position else None

    def _to_message(self, tp: TP, record: Fetch) -> ConsumerMessage:
        last = record.records[-1] if record.records else None
        return ConsumerMessage(
            tp.topic,
            tp.partition,
            record.end - 1,
            last.timestamp / 1000.0 if last is not None else 0.0,
            0,
            None,
            None,
            cast(Any, record),
            None,
            0,
            0,
            tp,
            # A message of another generation is skipped without a word; none is another one.
            generation_id=self.app.consumer_generation_id,
        )

    async def reread(self, partition: int, offset: int) -> None:
        """Read a partition from ``offset`` on: what came since was lost on its way."""
        for tp in self._next:
            if tp.partition == partition:
                self._next[tp] = offset
                self._read_offset.pop(tp, None)
        await self._read_again()

    async def _read_again(self) -> None:
        await self._thread.call_thread(self._seek_assigned, dict(self._next))

    async def _seek_assigned(self, positions: Mapping[TP, int]) -> None:
        """On the consumer's own thread. What is not assigned any more needs no position."""
        for tp, offset in positions.items():
            with suppress(IllegalStateError):
                self._thread.seek(tp, offset)

    # -- the group

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Faust calls this once an assignment is complete: the lanes open, and say where they go on."""
        assigned = {tp.partition: tp for tp in self.assignment()}
        self._next = {}
        coordinator = self._thread._ensure_consumer()._coordinator  # noqa: SLF001
        member = GroupMember(self.app.conf.id, coordinator.generation, coordinator.member_id)
        loop = asyncio.get_running_loop()
        positions = await loop.run_in_executor(None, self._lanes.open, tuple(assigned), member)
        found = {assigned[partition]: offset for partition, offset in positions.items()}
        await self.seek_wait(found)
        self._next = dict(found)
        return found

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        await super().on_partitions_assigned(assigned, generation_id)
        if not assigned:
            self._lanes.open((), GroupMember(self.app.conf.id, generation_id, ""))

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        self._next = {}
        await asyncio.get_running_loop().run_in_executor(None, self._lanes.close)
        await super().on_partitions_revoked(revoked)

    # -- what Faust would do about offsets

    def ack(self, message: Any) -> bool:
        message.acked = True
        self._unacked_messages.discard(message)
        return True

    async def force_commit(self, topics: Any = None, start_new_transaction: bool = True) -> bool:
        return False

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        pass

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        return iter(())

    def on_buffer_full(self, tp: TP) -> None:
        """Faust would stop reading for a second; lanes that are full are left out of the fetch instead."""

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Faust would complain of partitions in which it commits nothing."""


class FetchTransport(driver.Transport):
    """The transport of an app whose fetches go to ``lanes``."""

    Consumer = FetchConsumer

    def __init__(self, url: Any, app: Any, lanes: FetchTaker) -> None:
        super().__init__(url, app)
        self.lanes = lanes
