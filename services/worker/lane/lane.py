"""A lane: the runs of one input partition, one after another, on a thread of its own.

    queue ──▶ pending ──▶ answered and written, in an open transaction ──▶ committed

``pending`` keeps the runs that are not committed yet, a few at most. Whatever happens to a transaction, they are
answered again in a new one, from where the broker says that the last commit ended:

    - a batch that cannot be answered because a service is away is tried again, for ``wait_s``, then the query fails;
    - any other failure is tried again, then by halves, down to the record that fails by itself: a dead letter;
    - where ``_DEFECT`` records on end fail so, and not because they are bad, the defect is Dovetail's: the query fails,
      and nothing of theirs is committed;
    - what the broker refuses or does not answer is written again by a new producer;
    - a partition that belongs to somebody else now is let go: its new owner goes on from the last commit.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import pyarrow as pa
from confluent_kafka import KafkaException

from broker.group_member import GroupMember
from broker.transactional_writer import Backoff, is_fenced
from changelog.dead_letter import dead_letters
from changelog.decode import REJECTED
from changelog.errors import Domain, DovetailError, InternalError, RecordRejected, RecordsGone, ServiceUnavailable
from enrichment.enricher import REJECTED_RECORDS, ROWS_IN, AnsweredBatch
from enrichment.memo.memo_store import Update
from services.worker.lane.fetches import Fetch, Record, as_batch
from services.worker.lane.transactions import NotAMember, Place, Transactions, opened

_LOG = logging.getLogger("dovetail.worker")
_ATTEMPTS = 3
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_IDLE_S = 0.1
_DEFECT = 20
_LARGEST_MESSAGE = 950_000
"""In bytes, below the client's limit of a message with all that belongs to it."""


class Answering(Protocol):
    """What answers the batches of one partition. A ``step`` that raises has changed nothing."""

    def restore(self) -> None:
        """Bring what is remembered up to what was committed, by whomever. Blocking."""
        ...

    def step(self, records: pa.RecordBatch, now_ms: int) -> AnsweredBatch: ...

    def confirm(self, updates: Sequence[Update], memo_end: int | None) -> None:
        """All steps since the last call of this or ``discard`` are durable; the memo's topic holds theirs before
        ``memo_end``."""
        ...

    def discard(self) -> None:
        """Forget these steps."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class LaneSettings:
    """commit_interval_s  how long a transaction stays open while there is more to do
    commit_records     or until it holds the answers to so many records; runs that wait make batches of about so many
    queued_runs        runs waiting for the lane, at most
    wait_s             how long a service that is away is waited for
    """

    commit_interval_s: float = 0.05
    commit_records: int = 20_000
    queued_runs: int = 4
    wait_s: float = 120.0


@dataclass(frozen=True)
class LaneTopics:
    """Where a lane writes; ``memo`` is "" where nothing is remembered."""

    output: str
    dead_letters: str
    memo: str = ""


class LaneClosed(Exception):
    """The lane is to end, in the midst of waiting."""


class Lane:
    """One partition, from ``open`` to ``close``."""

    def __init__(
        self,
        place: Place,
        member: GroupMember,
        topics: LaneTopics,
        query: str,
        answering: Answering,
        settings: LaneSettings,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._place = place
        self._metadata = member.metadata
        self._topics = topics
        self._query = query
        self._answering = answering
        self._settings = settings
        self._failed = failed
        self._queue: queue.SimpleQueue[Fetch] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"lane-{place.partition}", daemon=True)
        self._transactions: Transactions | None = None
        self._expected = 0
        self._pending: deque[Fetch] = deque()
        self._written = 0
        self._records_written = 0
        self._committed_s = 0.0
        self._base = 0
        self._waited: Backoff | None = None
        self._uncommitted: Counter[str] = Counter()
        self._failed_on_end = 0
        self._updates: list[Update] = []
        self.reached = 0
        self.counts: Counter[str] = Counter()
        self.batch_ms = 0

    # -- from the event loop

    def open(self) -> int:
        """Where the partition is to be read from."""
        try:
            self._transactions = opened(self._place, self._metadata, self._closing.is_set)
        except RecordsGone as failure:
            self._closing.set()
            self._failed(failure)
            return self._place.start
        self._expected = self.reached = self._base = self._transactions.position
        self._thread.start()
        return self._expected

    @property
    def has_room(self) -> bool:
        return self._queue.qsize() < self._settings.queued_runs and not self._closing.is_set()

    def offer(self, run: Fetch) -> int | None:
        """Take a run; if it is not the next one, where the next one starts."""
        if run.start != self._expected:
            return self._expected
        self._expected = run.end
        self._queue.put(run)
        return None

    def begin_closing(self) -> None:
        self._closing.set()

    def close(self) -> None:
        """Finish the run in hand and commit; those that wait are left for the next owner."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    # -- on the thread

    def _work(self) -> None:
        try:
            self._answering.restore()
            while not self._closing.is_set():
                self._turn(self._waiting())
            self._finish()
        except (NotAMember, LaneClosed) as reason:
            _LOG.info("%s: let go, %s", self._name, reason)
        except BaseException as failure:  # noqa: BLE001 - reported, and ends the query or the process
            self._failed(failure)
        finally:
            self._end()

    def _end(self) -> None:
        self._closing.set()
        try:
            if self._transactions is not None:
                self._transactions.abort()
        except KafkaException as failure:
            _LOG.info("%s: the next owner takes the open transaction back: %s", self._name, failure.args[0].str())
        self._transactions = None
        self._answering.close()

    def _waiting(self) -> list[Fetch]:
        """The runs that came, once there is one. Answered as one batch, they cost little more than one of them."""
        runs: list[Fetch] = []
        with suppress(queue.Empty):
            runs.append(self._queue.get(timeout=self._patience_s()))
            while sum(len(run.records) for run in runs) < self._settings.commit_records:
                runs.append(self._queue.get_nowait())
        return runs

    def _patience_s(self) -> float:
        if not self._pending:
            return _IDLE_S
        return max(0.0, self._due_s() - time.monotonic())

    def _due_s(self) -> float:
        """An answer after a pause is committed at once, those of a steady stream together."""
        return self._committed_s + self._settings.commit_interval_s

    def _turn(self, runs: Iterable[Fetch]) -> None:
        self._pending.extend(run.after(self._base) for run in runs if run.end > self._base)
        try:
            self._write_pending()
            if self._pending and (
                time.monotonic() >= self._due_s() or self._records_written >= self._settings.commit_records
            ):
                self._commit()
        except KafkaException as failure:
            self._recover(failure)

    def _finish(self) -> None:
        try:
            self._write_pending()
            self._commit()
        except KafkaException as failure:
            raise LaneClosed(f"uncommitted answers are left to the next owner: {failure.args[0].str()}") from failure

    # -- writing

    def _write_pending(self) -> None:
        """The runs that are not written yet, as one batch."""
        records = [record for run in islice(self._pending, self._written, None) for record in run.records]
        if records:
            begun = time.monotonic()
            self._answer(records, whole=True)
            self._records_written += len(records)
            self.batch_ms = round((time.monotonic() - begun) * 1000)
        self._written = len(self._pending)

    def _answer(self, records: Sequence[Record], *, whole: bool) -> None:
        """Write the answer to ``records``, of which those that fail by themselves are dead letters."""
        step, failure = self._attempts(records, whole)
        if step is not None:
            self._failed_on_end = 0
            self._write_step(step)
        elif len(records) == 1:
            assert failure is not None
            self._note_defect(failure)
            self._write_failed(records[0], failure)
        else:
            middle = len(records) // 2
            self._answer(records[:middle], whole=False)
            self._answer(records[middle:], whole=False)

    def _attempts(self, records: Sequence[Record], whole: bool) -> tuple[AnsweredBatch | None, Exception | None]:
        """The answer, or what is wrong with it. Waits for services; raises what ends the query."""
        batch = as_batch(self._place.partition, records)
        pause_s, started_s, left = _FIRST_PAUSE_S, time.monotonic(), _ATTEMPTS if whole else 1
        while True:
            try:
                return _checked(self._answering.step(batch, time.time_ns() // 1_000_000)), None
            except Exception as failure:
                external = isinstance(failure, DovetailError) and (failure.retry or failure.domain is Domain.EXTERNAL)
                left = 0 if isinstance(failure, RecordRejected) else left - (not external)
                if not external and not left:
                    return None, failure
                if external and time.monotonic() - started_s > self._settings.wait_s:
                    raise _gave_up(failure, self._settings.wait_s) from failure
                _LOG.warning("%s: %d records are tried again in %g s: %s", self._name, len(records), pause_s, failure)
            if whole:
                self._commit_written()
            if self._closing.wait(pause_s):
                raise LaneClosed("it waited for a service")
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _write_step(self, step: AnsweredBatch) -> None:
        transactions = self._begun()
        transactions.write(self._topics.output, step.messages.keys, step.messages.values)
        if step.updates:
            transactions.remember(self._topics.memo, step.updates)
            self._updates += step.updates
        if step.rejected.num_rows:
            self._write_rejected(step.rejected)
        self._uncommitted.update(step.counts)

    def _note_defect(self, failure: Exception) -> None:
        if isinstance(failure, RecordRejected):
            return
        self._failed_on_end += 1
        if self._failed_on_end >= _DEFECT:
            raise InternalError(
                f"{_DEFECT} records on end cannot be answered: {type(failure).__name__}: {failure}",
                where=self._name,
                fix="this is a defect of Dovetail: dovetail logs worker has its trace; nothing is lost",
            ) from failure

    def _write_failed(self, record: Record, failure: Exception) -> None:
        reason = failure.what if isinstance(failure, DovetailError) else f"{type(failure).__name__}: {failure}"
        _LOG.error("%s: the record at %d is a dead letter: %s", self._name, record.offset, reason)
        row = (self._place.partition, record.offset, record.key, record.value, reason)
        self._write_rejected(pa.table([[value] for value in row], schema=REJECTED))
        self._uncommitted.update({ROWS_IN: 1, REJECTED_RECORDS: 1})

    def _write_rejected(self, rejected: pa.Table) -> None:
        letters = dead_letters(rejected, topic=self._place.topic, query=self._query)
        self._begun().write_letters(
            self._topics.dead_letters,
            [(letter.key, _fitting(letter.value), list(letter.headers)) for letter in letters],
        )

    def _begun(self) -> Transactions:
        assert self._transactions is not None
        self._transactions.begin()
        return self._transactions

    # -- commits

    def _commit_written(self) -> None:
        """Readers need not wait for the batch that waits."""
        if self._written:
            self._commit()

    def _commit(self) -> None:
        """The runs that are written; one without records needs no transaction."""
        done = [self._pending[place] for place in range(self._written)]
        if not done:
            return
        if any(run.records for run in done):
            memo_end = self._begun().commit(done[-1].end)
            self._answering.confirm(self._updates, memo_end)
            self._updates = []
        for _ in done:
            self._pending.popleft()
        self._written = self._records_written = 0
        self._waited = None
        self._committed_s = time.monotonic()
        self.counts.update(self._uncommitted)
        self._uncommitted.clear()
        self.reached = done[-1].end

    def _recover(self, failure: KafkaException) -> None:
        """Go on with a new producer, from the last commit: what the broker says it was."""
        _LOG.warning("%s: the transaction is begun again: %s", self._name, failure.args[0].str())
        self._waited = self._waited or Backoff(self._place.target)
        self._waited.after(failure)
        if is_fenced(failure.args[0]) and self._closing.wait(_FIRST_PAUSE_S):
            raise LaneClosed("somebody else writes")
        self._transactions = None
        self._answering.discard()
        self._updates = []
        self._transactions = opened(self._place, self._metadata, self._closing.is_set)
        self._answering.restore()
        self._base = self._transactions.position
        self._pending = deque(run.after(self._base) for run in self._pending if run.end > self._base)
        self._written = self._records_written = 0
        self._uncommitted.clear()
        self.reached = max(self.reached, self._base)

    @property
    def _name(self) -> str:
        return f'query "{self._query}", {self._place.topic}[{self._place.partition}]'


def _checked(step: AnsweredBatch) -> AnsweredBatch:
    largest = max(map(len, filter(None, step.messages.values)), default=0)
    if largest > _LARGEST_MESSAGE:
        raise RecordRejected(f"an answer to it takes {largest} bytes, and a message has at most {_LARGEST_MESSAGE}")
    return step


def _fitting(value: bytes | None) -> bytes | None:
    """What a letter can hold of a value beside its headers, which say where the record stands that has it all."""
    return value[:_LARGEST_MESSAGE] if value is not None else None


def _gave_up(failure: Exception, wait_s: float) -> ServiceUnavailable:
    assert isinstance(failure, DovetailError)
    return ServiceUnavailable(
        f"{failure.what}; it was tried again for {wait_s:g} s",
        where=failure.where,
        fix=failure.fix or "mend the source and RESUME the query; nothing is lost",
    )
