"""The fetches of a partition that are not committed yet, and the transaction with the answers to the first of them.

    pending ──▶ answered and written, in an open transaction ──▶ committed

There are a few at most. Whatever happens to a transaction, they are answered again in a new one, from where the broker
says that the last commit ended: what it refuses or does not answer is written again by a new producer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable
from itertools import islice

import pyarrow as pa

from dovetail.broker.errors import BrokerError, BrokerFault
from dovetail.broker.transactional_writer import BrokerWait
from dovetail.changelog.dead_letter import BRIEF, to_dead_letters
from dovetail.changelog.decode import REJECTED
from dovetail.changelog.errors import shortened
from dovetail.enrichment.enricher import REJECTED_RECORDS, ROWS_IN, AnsweredBatch
from dovetail.enrichment.memo.memo_store import Update
from dovetail.services.worker.lane.fetches import Fetch, Record
from dovetail.services.worker.lane.lane_settings import LaneClosed, LaneSettings, LaneTopics
from dovetail.services.worker.lane.retries import BatchAnswerer, FailedRecord
from dovetail.services.worker.lane.transactions import Place, Transactions, opened

_LOG = logging.getLogger("dovetail.worker")
_FENCED_PAUSE_S = 0.05


class UncommittedFetches:
    """From ``open`` to ``abort``; ``reached`` and ``counts`` are of what was committed, in so many ``commits``."""

    def __init__(
        self,
        place: Place,
        metadata: bytes,
        topics: LaneTopics,
        query: str,
        answerer: BatchAnswerer,
        settings: LaneSettings,
        closing: threading.Event,
    ) -> None:
        self._place = place
        self._metadata = metadata
        self._topics = topics
        self._query = query
        self._answerer = answerer
        self._settings = settings
        self._closing = closing
        self._transactions: Transactions | None = None
        self._pending: deque[Fetch] = deque()
        self._written = 0
        self._records_written = 0
        self._updates: list[Update] = []
        self._counts_written: Counter[str] = Counter()
        self._base = 0
        self._committed_s = 0.0
        self._broker_wait: BrokerWait | None = None
        self._dead_letter_bytes = place.target.dead_letter_bytes
        self.reached = 0
        self.counts: Counter[str] = Counter()
        self.commits = 0

    def open(self) -> int:
        """Where the partition is to be read from. Raises RecordsGone, NotAMember, ServiceUnavailable."""
        self._transactions = opened(self._place, self._metadata, self._closing.is_set)
        self.reached = self._base = self._transactions.position
        return self._base

    def abort(self) -> None:
        """Take back what is not committed; the next owner does it where the broker does not answer."""
        try:
            if self._transactions is not None:
                self._transactions.abort()
        except BrokerError as failure:
            _LOG.info("%s: the next owner takes the open transaction back: %s", self.name, failure.reason)
        self._transactions = None

    @property
    def name(self) -> str:
        return f'query "{self._query}", {self._place.topic}[{self._place.partition}]'

    def add(self, fetches: Iterable[Fetch]) -> None:
        self._pending.extend(fetch.after(self._base) for fetch in fetches if fetch.end > self._base)

    def left_s(self, now_s: float, idle_s: float) -> float:
        """How long a commit may wait for more; ``idle_s`` where nothing is to be committed."""
        return max(0.0, self._due_s() - now_s) if self._pending else idle_s

    def is_due(self, now_s: float) -> bool:
        full = self._records_written >= self._settings.commit_records
        return bool(self._pending) and (full or now_s >= self._due_s())

    def _due_s(self) -> float:
        """An answer after a pause is committed at once, those of a steady stream together."""
        return self._committed_s + self._settings.commit_interval_s

    # -- writing

    def unwritten(self) -> list[Record]:
        return [record for fetch in islice(self._pending, self._written, None) for record in fetch.records]

    def write(self, answer: AnsweredBatch | FailedRecord) -> None:
        if isinstance(answer, FailedRecord):
            self._write_failed(answer)
        else:
            self._write_answered(answer)

    def all_written(self, records: int) -> None:
        """The answers to all ``records`` that were not written are."""
        self._records_written += records
        self._written = len(self._pending)

    def _write_answered(self, answered: AnsweredBatch) -> None:
        transactions = self._begun()
        transactions.write(self._topics.output, answered.messages)
        if answered.updates:
            transactions.remember(self._topics.memo, answered.updates)
            self._updates += answered.updates
        if answered.rejected.num_rows:
            self._write_rejected(answered.rejected)
        self._counts_written.update(answered.counts)

    def _write_failed(self, failed: FailedRecord) -> None:
        record = failed.record
        _LOG.error("%s: the record at %d is a dead letter: %s", self.name, record.offset, shortened(failed.reason))
        row = (self._place.partition, record.offset, record.timestamp, record.key, record.value, failed.reason)
        self._write_rejected(pa.table([[value] for value in row], schema=REJECTED))
        self._counts_written.update({ROWS_IN: 1, REJECTED_RECORDS: 1})

    def _write_rejected(self, rejected: pa.Table) -> None:
        dead_letters = to_dead_letters(
            rejected, topic=self._place.topic, query=self._query, dead_letter_bytes=self._dead_letter_bytes
        )
        self._begun().write_dead_letters(self._topics.dead_letters, dead_letters)

    def _begun(self) -> Transactions:
        assert self._transactions is not None
        self._transactions.begin()
        return self._transactions

    # -- commits

    def commit(self) -> None:
        """The fetches that are written, if there are any; those without records need no transaction."""
        done = [self._pending[place] for place in range(self._written)]
        if not done:
            return
        if any(fetch.records for fetch in done):
            memo_end = self._begun().commit(done[-1].end)
            self._answerer.confirm(self._updates, memo_end)
            self._updates = []
        for _ in done:
            self._pending.popleft()
        self._written = self._records_written = 0
        self._broker_wait = None
        self._dead_letter_bytes = self._place.target.dead_letter_bytes
        self._committed_s = time.monotonic()
        self.counts.update(self._counts_written)
        self.commits += 1
        self._counts_written.clear()
        self.reached = done[-1].end

    def begin_again(self, failure: BrokerError) -> None:
        """Go on with a new producer, from the last commit: what the broker says it was."""
        _LOG.warning("%s: the transaction is begun again: %s", self.name, failure.reason)
        if failure.fault is BrokerFault.TOO_LARGE and self._dead_letter_bytes != BRIEF:
            # The topic of dead letters may take less than it did when the query began.
            self._dead_letter_bytes = BRIEF
        else:
            self._broker_wait = self._broker_wait or BrokerWait(self._place.target)
            self._broker_wait.after(failure)
        if failure.fault is BrokerFault.FENCED and self._closing.wait(_FENCED_PAUSE_S):
            raise LaneClosed("somebody else writes")
        self._transactions = None
        self._answerer.discard()
        self._updates = []
        self._transactions = opened(self._place, self._metadata, self._closing.is_set)
        self._answerer.restore()
        self._base = self._transactions.position
        self._pending = deque(fetch.after(self._base) for fetch in self._pending if fetch.end > self._base)
        self._written = self._records_written = 0
        self._counts_written.clear()
        self.reached = max(self.reached, self._base)
