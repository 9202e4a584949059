"""The memo of an updating left side: what was emitted for each row, so that each -1 equals its own +1.

A left row is answered when it comes, and never again. When it is taken back, the rows that it gave are taken back as
they were written, whatever the looked-up side holds by then.

    UPSERT         an upsert takes back what its primary key gave and is answered anew; a delete only takes back
    CHANGELOG_KV   the same; -1 takes back what it equals, else it is unfounded
    CHANGELOG      the copies of equal rows stand in a queue: +1 joins it, -1 takes the copy that came first;
    CHANGES        a -1 that finds none is unfounded

A batch gives net changes: a row that comes and goes within it is not looked up, and what is answered as before leaves
no trace. Unfounded retractions are counted and left out.

What is held of an identity is a JSON array of copies, each ``[print, key, value, key, value, ..]``: the hash of the row
where retractions are compared with it (else 0), and the emitted records, as texts. It is written to the memo's topic as
it stands: the key of the record is the identity, a JSON object; a tombstone forgets it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from changelog.errors import InternalError
from enrichment.memo.memo_store import MemoStore, Update
from enrichment.memo.net_changes import Emitted, NetChanges
from joins.dataflow.ports import Ingest

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


Standing = Copy | int
"""A row that stands after the batch: held before, or at this position of the batch, yet to be answered."""


@dataclass(frozen=True, slots=True)
class Question:
    """``asked``: the positions, ascending, of the left rows that stand after the batch and have to be answered."""

    asked: list[int]
    prints: dict[int, int]
    before: dict[bytes, list[Copy]]
    standing: dict[bytes, list[Standing]]
    unfounded: int


@dataclass(frozen=True, slots=True)
class MemoStep:
    """The changes of the output, and the records of the memo's topic that belong to them."""

    changes: NetChanges
    updates: list[Update]
    unfounded: int


@dataclass
class Memo:
    """``ask``, answer, ``settle``; then ``confirm`` once the output is committed, or ``discard`` if it is not.

    The store holds committed output only. What is settled and not confirmed is held in memory, and seen by the next
    batch: several batches may share a transaction, and one may begin before the last one's commit is known.
    """

    store: MemoStore
    ingest: Ingest
    _pending: dict[bytes, Update] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.ingest is Ingest.APPEND:
            raise InternalError("append-only rows are never taken back: they need no memo")

    def ask(self, rows: LeftRows) -> Question:
        """Which rows of the batch have to be looked up. Changes nothing."""
        before = self._copies(list(dict.fromkeys(rows.identities)))
        follow = _follow_keyed if self._keyed else _follow_counted
        standing, unfounded = follow(rows, before)
        asked = sorted(state for states in standing.values() for state in states if isinstance(state, int))
        return Question(asked, {place: rows.prints[place] or 0 for place in asked}, before, standing, unfounded)

    def settle(self, question: Question, answers: Sequence[tuple[Emitted, ...]]) -> MemoStep:
        """``answers[i]``: the records that the row ``question.asked[i]`` gives."""
        fresh = {
            place: Copy(question.prints[place], records) for place, records in zip(question.asked, answers, strict=True)
        }
        changes, updates = NetChanges(), []
        for identity, standing in question.standing.items():
            before = question.before.get(identity, [])
            copies = [fresh[state] if isinstance(state, int) else state for state in standing]
            if copies == before:
                continue
            for copy in before:
                changes.add(identity, copy.records, -1)
            for copy in copies:
                changes.add(identity, copy.records, 1)
            if self.ingest is Ingest.UPSERT:
                # Nothing compares with a row that gave nothing: it need not be remembered.
                copies = [copy for copy in copies if copy.records]
            if copies or before:
                updates.append((identity, _packed(copies)))
        self._pending.update((update[0], update) for update in updates)
        return MemoStep(changes, updates, question.unfounded)

    def confirm(self, updates: Sequence[Update], offset: int | None = None) -> None:
        """The output of these ``MemoStep.updates`` is committed; ``offset``: the memo's topic holds them below it."""
        self.store.apply(updates, offset)
        for update in updates:
            # A later batch may have settled the identity anew: its update is the one to be seen.
            if self._pending.get(update[0]) is update:
                del self._pending[update[0]]

    def discard(self) -> None:
        """What is not confirmed was not committed: forget it."""
        self._pending.clear()

    @property
    def _keyed(self) -> bool:
        return self.ingest in (Ingest.UPSERT, Ingest.CHANGELOG_KV)

    def _copies(self, identities: list[bytes]) -> dict[bytes, list[Copy]]:
        packed: dict[bytes, bytes | None] = {}
        packed |= self.store.get([identity for identity in identities if identity not in self._pending])
        packed |= {identity: self._pending[identity][1] for identity in identities if identity in self._pending}
        return {identity: _unpacked(copies) for identity, copies in packed.items() if copies is not None}


def _follow_keyed(rows: LeftRows, before: dict[bytes, list[Copy]]) -> tuple[dict[bytes, list[Standing]], int]:
    """The one row of each primary key after the batch, if there is one."""
    standing: dict[bytes, list[Standing]] = {}
    unfounded = 0
    for place, (identity, delta, print_) in enumerate(zip(rows.identities, rows.deltas, rows.prints, strict=True)):
        states = standing.setdefault(identity, list(before.get(identity, ())))
        if delta > 0:
            states[:] = [place]
        elif print_ is None or (states and _print(states[0], rows) == print_):
            states.clear()
        else:
            unfounded += 1
    return standing, unfounded


def _print(state: Standing, rows: LeftRows) -> int | None:
    return rows.prints[state] if isinstance(state, int) else state.print


def _follow_counted(rows: LeftRows, before: dict[bytes, list[Copy]]) -> tuple[dict[bytes, list[Standing]], int]:
    """The queue of each row after the batch."""
    queues: dict[bytes, deque[Standing]] = {}
    unfounded = 0
    for place, (identity, delta) in enumerate(zip(rows.identities, rows.deltas, strict=True)):
        queue = queues.setdefault(identity, deque(before.get(identity, ())))
        if delta > 0:
            queue.extend([place] * delta)
        else:
            taken = min(-delta, len(queue))
            unfounded += -delta - taken
            for _ in range(taken):
                queue.popleft()
    return {identity: list(queue) for identity, queue in queues.items()}, unfounded


def _packed(copies: Sequence[Copy]) -> bytes | None:
    if not copies:
        return None
    return orjson.dumps(
        [
            [copy.print, *(None if part is None else part.decode() for record in copy.records for part in record)]
            for copy in copies
        ]
    )


def _unpacked(packed: bytes) -> list[Copy]:
    copies = []
    for print_, *texts in orjson.loads(packed):
        keys = [None if key is None else key.encode() for key in texts[::2]]
        values = [value.encode() for value in texts[1::2]]
        copies.append(Copy(print_, tuple(zip(keys, values, strict=True))))
    return copies
