"""A lane by itself: fetches are given to it by hand, and its answers are made up."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import orjson
import pyarrow as pa

from dovetail.broker.address import BrokerAddress
from dovetail.broker.group_member import NOBODY, GroupMember
from dovetail.broker.transactional_writer import WriteTarget
from dovetail.changelog.decode import REJECTED
from dovetail.changelog.encode import Encoded
from dovetail.changelog.encodings.message_sizes import MESSAGE_BYTES
from dovetail.enrichment.enricher import AnsweredBatch, check_sizes
from dovetail.enrichment.memo.memo_store import Update
from dovetail.services.worker.lane.fetches import Fetch
from dovetail.services.worker.lane.lane import Lane
from dovetail.services.worker.lane.lane_settings import LaneSettings, LaneTopics
from dovetail.services.worker.lane.transactions import Place


@dataclass(frozen=True)
class Given:
    """A record that no broker has given."""

    offset: int
    value: bytes | None
    key: bytes | None = b"k"
    timestamp: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()


def fetch(start: int, count: int, partition: int = 0) -> Fetch:
    """Records n = start, start + 1, .."""
    records = [Given(offset, orjson.dumps({"n": offset})) for offset in range(start, start + count)]
    return Fetch(partition, start, start + count, records)


@dataclass
class Echo:
    """Answers each record by itself. ``before`` may raise."""

    before: Callable[[Sequence[int]], None] = lambda numbers: None
    steps: list[list[int]] = field(default_factory=list)
    headed: bool = False

    def restore(self) -> None:
        pass

    def step(self, records: pa.RecordBatch, now_ms: int) -> AnsweredBatch:
        values = records.column("value").to_pylist()
        numbers = [orjson.loads(value)["n"] for value in values]
        self.before(numbers)
        messages = Encoded.of([None] * len(values), values)
        check_sizes(messages, MESSAGE_BYTES)
        self.steps.append(numbers)
        counts = Counter({"rows_in": len(values), "rows_out": len(values)})
        return AnsweredBatch(messages, [], REJECTED.empty_table(), counts)

    def confirm(self, updates: Sequence[Update], memo_end: int | None) -> None:
        pass

    def discard(self) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class Bench:
    """Makes lanes of one query over topics of one test."""

    broker: str
    identity: str
    input: str
    output: str
    dead_letters: str
    failures: list[BaseException] = field(default_factory=list)
    opened: list[Lane] = field(default_factory=list)

    @property
    def target(self) -> WriteTarget:
        return WriteTarget(BrokerAddress(self.broker), self.identity, "", 60.0, 20.0)

    def lane(self, answerer: Echo, settings: LaneSettings | None = None, member: GroupMember | None = None) -> Lane:
        lane = Lane(
            Place(self.target, self.input, 0, 0),
            # A group without members takes offsets from anybody.
            member or GroupMember(self.identity, NOBODY, ""),
            LaneTopics(self.output, self.dead_letters),
            "q",
            answerer,
            settings or LaneSettings(),
            self.failures.append,
        )
        self.opened.append(lane)
        return lane

    def close(self) -> None:
        for lane in self.opened:
            lane.close()


def until(holds: Callable[[], bool], wait_s: float = 20.0) -> None:
    deadline = time.monotonic() + wait_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.01)
