"""The memo of an updating left side: what was emitted for each row, so that each -1 equals its own +1.

A left row is answered when it comes, and never again. When it is taken back, the rows that it gave are taken back as
they were written, whatever the looked-up side holds by then.

    UPSERT         an upsert takes back what its primary key gave and is answered anew; a delete only takes back
    CHANGELOG_KV   the same; -1 takes back what it equals, else it is dangling
    CHANGELOG      the copies of equal rows stand in a queue: +1 joins it, -1 takes the copy that came first;
    CHANGES        a -1 that finds none is dangling

A batch gives net changes: a row that comes and goes within it is not looked up, and what is answered as before leaves
no trace. Dangling retractions are counted and left out.

What is held of an identity is a queue of runs of equal copies, each a record of the memo's topic: so a copy that comes
or goes writes the last or the first of them, however many there are. ``[print, count, key, value, key, value, ..]``:
the hash of the row where retractions are compared with it (else 0), how many copies, what each gave, as texts.
The key of the record is ``memo_store.record_key``; a tombstone forgets it. A keyed row has one run of one copy.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from dovetail.changelog.errors import InternalError
from dovetail.enrichment.memo.memo_store import MemoStore, Update, identity_and_number, record_key
from dovetail.enrichment.memo.net_changes import Emitted, NetChanges
from dovetail.joins.dataflow.ports import Ingest

__all__ = ["Copy", "LeftRows", "Memo", "MemoStep", "MemoStore", "Question", "Update"]


@dataclass(frozen=True, slots=True)
class LeftRows:
    """The left rows of a batch, in order of arrival.

    prints   the hash of each row in the columns in which a retraction must equal it; None: it equals any
    """

    identities: Sequence[bytes]
    deltas: Sequence[int]
    prints: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class Copy:
    """A left row that stands, and what was emitted for it."""

    print: int
    records: tuple[Emitted, ...]


Runs = dict[int, tuple[Copy, int]]
"""The queue of an identity: by number, ascending, a copy and how often it stands there."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What a batch does to the queue of an identity: so many copies leave it, and these join it."""

    taken: int
    joined: Sequence[int]


@dataclass(frozen=True, slots=True)
class Question:
    """``positions``: the positions, ascending, of the left rows that stand after the batch and have to be answered."""

    positions: list[int]
    prints: dict[int, int]
    before: dict[bytes, Runs]
    followed: dict[bytes, Followed]
    dangling: int


@dataclass(frozen=True, slots=True)
class MemoStep:
    """The changes of the output, and the records of the memo's topic that belong to them."""

    changes: NetChanges
    updates: list[Update]
    dangling: int


@dataclass
class Memo:
    """``ask``, answer, ``settle``, ``keep``; then ``confirm`` once the output is committed, or ``discard``.

    The store holds committed output only. What is settled and not confirmed is held in memory, and seen by the next
    batch: several batches may share a transaction, and one may begin before the last one's commit is known.
    """

    store: MemoStore
    ingest: Ingest
    _pending: dict[bytes, dict[int, Update]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.ingest is Ingest.APPEND:
            raise InternalError("append-only rows are never taken back: they need no memo")

    def ask(self, rows: LeftRows) -> Question:
        """Which rows of the batch have to be looked up. Changes nothing."""
        before = self._runs(list(dict.fromkeys(rows.identities)))
        follow = _follow_keyed if self._keyed else _follow_counted
        followed, dangling = follow(rows, before)
        positions = sorted(place for one in followed.values() for place in one.joined)
        return Question(positions, {place: rows.prints[place] or 0 for place in positions}, before, followed, dangling)

    def settle(self, question: Question, answers: Sequence[tuple[Emitted, ...]]) -> MemoStep:
        """``answers[i]``: the records that the row ``positions[i]`` gives. Changes nothing before ``keep``."""
        fresh = {
            place: Copy(question.prints[place], records)
            for place, records in zip(question.positions, answers, strict=True)
        }
        changes, updates = NetChanges(), []
        for identity, followed in question.followed.items():
            before = question.before.get(identity, {})
            joined = [fresh[place] for place in followed.joined]
            for copy, count in _first(before, followed.taken):
                changes.add(identity, copy.records, -count)
            for copy in joined:
                changes.add(identity, copy.records, 1)
            if self.ingest is Ingest.UPSERT:
                # Nothing compares with a row that gave nothing: it need not be remembered.
                joined = [copy for copy in joined if copy.records]
            updates += _updates(identity, before, _queued(before, followed.taken, joined))
        return MemoStep(changes, updates, question.dangling)

    def keep(self, step: MemoStep) -> None:
        """What the next batch sees: the step will be written, and confirmed or discarded."""
        for update in step.updates:
            identity, number = identity_and_number(update[0])
            self._pending.setdefault(identity, {})[number] = update

    def confirm(self, updates: Sequence[Update], offset: int | None = None, written_ms: int = 0) -> None:
        """The output of these ``MemoStep.updates`` is committed; ``offset``: the memo's topic holds them below it.

        ``written_ms``: how far the time of the input had come by then.
        """
        self.store.apply(updates, offset, written_ms)
        for update in updates:
            identity, number = identity_and_number(update[0])
            pending = self._pending.get(identity, {})
            # A later batch may have settled the identity anew: its update is the one to be seen.
            if pending.get(number) is update:
                del pending[number]
                if not pending:
                    del self._pending[identity]

    def discard(self) -> None:
        """What is not confirmed was not committed: forget it."""
        self._pending.clear()

    @property
    def _keyed(self) -> bool:
        return self.ingest in (Ingest.UPSERT, Ingest.CHANGELOG_KV)

    def expired(self, before_ms: int) -> list[Update]:
        """Tombstones for some of what was last written before a moment of the input, to be written and confirmed."""
        keys = self.store.older(before_ms)
        return [(key, None) for key in keys if identity_and_number(key)[0] not in self._pending]

    def _runs(self, identities: list[bytes]) -> dict[bytes, Runs]:
        packed = self.store.runs(identities)
        for identity in self._pending.keys() & set(identities):
            stored = dict(packed.get(identity, {}))
            for number, (_, run) in self._pending[identity].items():
                if run is None:
                    stored.pop(number, None)
                else:
                    stored[number] = run
            packed[identity] = stored
        return {
            identity: {number: _unpacked(runs[number]) for number in sorted(runs)} for identity, runs in packed.items()
        }


def _follow_keyed(rows: LeftRows, before: Mapping[bytes, Runs]) -> tuple[dict[bytes, Followed], int]:
    """The one row of each primary key after the batch, if there is one."""
    followed: dict[bytes, Followed] = {}
    dangling = 0
    for place, (identity, delta, print_) in enumerate(zip(rows.identities, rows.deltas, rows.prints, strict=True)):
        now = followed.get(identity, Followed(0, ()))
        held = [copy for copy, _ in before.get(identity, {}).values()] if not now.taken else []
        current = [*(copy.print for copy in held), *(rows.prints[joined] for joined in now.joined)]
        if delta > 0:
            now = Followed(now.taken + len(held), (place,))
        elif print_ is None or (current and current[0] == print_):
            now = Followed(now.taken + len(held), ())
        else:
            dangling += 1
        followed[identity] = now
    return followed, dangling


def _follow_counted(rows: LeftRows, before: Mapping[bytes, Runs]) -> tuple[dict[bytes, Followed], int]:
    """How many of the copies held leave each queue, and which rows join it: first in, first out."""
    held = {identity: sum(count for _, count in runs.values()) for identity, runs in before.items()}
    taken: Counter[bytes] = Counter()
    joined: dict[bytes, deque[int]] = {}
    dangling = 0
    for place, (identity, delta) in enumerate(zip(rows.identities, rows.deltas, strict=True)):
        queue = joined.setdefault(identity, deque())
        if delta > 0:
            queue.extend([place] * delta)
            continue
        from_held = min(-delta, held.get(identity, 0) - taken[identity])
        from_queue = min(-delta - from_held, len(queue))
        taken[identity] += from_held
        for _ in range(from_queue):
            queue.popleft()
        dangling += -delta - from_held - from_queue
    return {identity: Followed(taken[identity], list(queue)) for identity, queue in joined.items()}, dangling


def _first(runs: Runs, count: int) -> Iterator[tuple[Copy, int]]:
    """The first ``count`` copies of a queue."""
    for copy, held in runs.values():
        if count <= 0:
            return
        yield copy, min(held, count)
        count -= held


def _queued(runs: Runs, taken: int, joined: Iterable[Copy]) -> Runs:
    """The queue without its first ``taken`` copies and with others at its end; an emptied one begins at 0."""
    queue: Runs = {}
    for number, (copy, held) in runs.items():
        if held > taken:
            queue[number] = copy, held - taken
        taken = max(0, taken - held)
    last = max(queue, default=-1)
    for copy in joined:
        if last < 0 or queue[last][0] != copy:
            last += 1
            queue[last] = copy, 0
        queue[last] = copy, queue[last][1] + 1
    return queue


def _updates(identity: bytes, before: Runs, after: Runs) -> list[Update]:
    """The records of the runs that have changed."""
    gone = [(record_key(identity, number), None) for number in before if number not in after]
    changed = [number for number, run in after.items() if before.get(number) != run]
    return [*gone, *((record_key(identity, number), _packed(*after[number])) for number in changed)]


def _packed(copy: Copy, count: int) -> bytes:
    texts = [None if part is None else part.decode() for record in copy.records for part in record]
    return orjson.dumps([copy.print, count, *texts])


def _unpacked(packed: bytes) -> tuple[Copy, int]:
    print_, count, *texts = orjson.loads(packed)
    keys = [None if key is None else key.encode() for key in texts[::2]]
    values = [value.encode() for value in texts[1::2]]
    return Copy(print_, tuple(zip(keys, values, strict=True))), count
