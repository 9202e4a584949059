"""The lanes of all partitions that are assigned to this process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from dovetail.broker.group_member import GroupMember
from dovetail.services.worker.lane.fetches import Fetch
from dovetail.services.worker.lane.lane import Lane

_OPENING = 16


class Lanes:
    """Open from an assignment to the next revocation. ``open`` and ``close`` block; they take turns."""

    def __init__(self, lane: Callable[[int, GroupMember], Lane]) -> None:
        self._lane = lane
        self._lanes: dict[int, Lane] = {}
        self._turn = threading.Lock()
        self._ended = False
        self.opened = False
        """Whether the group has said what belongs to this process, be it nothing."""
        self._past: Counter[str] = Counter()
        self._past_commits = 0
        self._reached: dict[int, int] = {}

    def open(self, partitions: Collection[int], member: GroupMember) -> Mapping[int, int]:
        """Lanes for ``partitions``; where each is to be read from. Lanes that were open are closed first."""
        with self._turn:
            self._close()
            self.opened = not self._ended
            if self._ended or not partitions:
                return {}
            lanes = {partition: self._lane(partition, member) for partition in partitions}
            with ThreadPoolExecutor(min(_OPENING, len(lanes))) as pool:
                positions = dict(zip(lanes, pool.map(Lane.open, lanes.values()), strict=True))
            self._lanes = lanes
            return positions

    def close(self) -> None:
        """Finish, commit, and give all partitions up."""
        for lane in list(self._lanes.values()):
            lane.begin_closing()
        with self._turn:
            self._close()

    def end(self) -> None:
        """As ``close``, for good."""
        self._ended = True
        self.close()

    def _close(self) -> None:
        for lane in self._lanes.values():
            lane.begin_closing()
        for partition, lane in self._lanes.items():
            lane.close()
            self._past.update(lane.counts)
            self._past_commits += lane.commits
            self._reached[partition] = lane.reached
        self._lanes = {}

    def has_room(self, partition: int) -> bool:
        lane = self._lanes.get(partition)
        return lane is not None and lane.has_room

    def offer(self, fetch: Fetch) -> int | None:
        """Give a fetch to its lane. Where its partition must be read from instead, if it is not the next one."""
        lane = self._lanes.get(fetch.partition)
        return None if lane is None else lane.offer(fetch)

    @property
    def partitions(self) -> list[int]:
        return sorted(self._lanes)

    def held(self) -> dict[int, int]:
        """As ``reached``, of what belongs to this process now."""
        return {partition: lane.reached for partition, lane in list(self._lanes.items())}

    def let_go(self) -> list[int]:
        """Those of them that nobody works on: the broker has said that they belong to somebody else."""
        return [partition for partition, lane in list(self._lanes.items()) if lane.let_go]

    def reached(self) -> dict[int, int]:
        """Partition → offset up to which it is answered and committed, also of those that were given up."""
        return {**self._reached, **self.held()}

    def counts(self) -> Counter[str]:
        """Of everything that was committed since the start of the process."""
        return sum((lane.counts for lane in list(self._lanes.values())), self._past.copy())

    def commits(self) -> int:
        """How many there were since the start of the process: the number of its last batch."""
        return self._past_commits + sum(lane.commits for lane in list(self._lanes.values()))

    def batch_ms(self) -> int:
        return max((lane.batch_ms for lane in list(self._lanes.values())), default=0)

    def waits_for(self) -> str:
        """Why one of them waits for a service; '' while none does."""
        return next(filter(None, (lane.waits_for for lane in list(self._lanes.values()))), "")
