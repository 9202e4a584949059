"""A batch answered in spite of failures: tried again, and if that does not help, the record isolated that is at fault.

- a batch that cannot be answered because a service is away is tried again, for ``wait_s``, then the query fails;
- any other failure is tried again, then by halves, down to the record that fails by itself;
- where ``_DEFECT`` records on end fail so, and not because they are bad, the defect is Dovetail's: the query fails.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from dovetail.changelog.errors import (
    Domain,
    DovetailError,
    FunctionFault,
    InternalError,
    RecordRejected,
    ServiceUnavailable,
    shortened,
)
from dovetail.changelog.work.backoff import Backoff
from dovetail.enrichment.enricher import AnsweredBatch
from dovetail.enrichment.memo.memo_store import Update
from dovetail.runtime.clock import now_ms
from dovetail.services.worker.lane.fetches import Record, as_batch
from dovetail.services.worker.lane.lane_settings import LaneClosed

_LOG = logging.getLogger("dovetail.worker")
_ATTEMPTS = 3
_PAUSES = Backoff(first_s=0.05, longest_s=2.0)
_DEFECT = 20
_REPORTED_AFTER_S = 1.0
"""A service that answers again so soon was not away."""


class BatchAnswerer(Protocol):
    """What answers the batches of one partition. A ``step`` that raises has changed nothing."""

    @property
    def headed(self) -> bool:
        """Whether records must come with their headers."""
        ...

    def restore(self) -> None:
        """Bring what is remembered up to what was committed, by whomever. Blocking."""
        ...

    def step(self, records: pa.RecordBatch, now_ms: int) -> AnsweredBatch:
        """Raises RecordRejected for an answer that no message holds."""
        ...

    def confirm(self, updates: Sequence[Update], memo_end: int | None) -> None:
        """All steps since the last call of this or ``discard`` are durable; the memo's topic holds theirs before
        ``memo_end``."""
        ...

    def discard(self) -> None:
        """Forget these steps."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class FailedRecord:
    """A record that cannot be answered, and why."""

    record: Record
    reason: str


class Retries:
    """Answers the batches of one partition, whose ``name`` stands in messages.

    closing       once set, nothing is waited for any more
    before_pause  called before a pause in which a whole batch waits
    """

    def __init__(
        self,
        answerer: BatchAnswerer,
        partition: int,
        name: str,
        wait_s: float,
        closing: threading.Event,
        before_pause: Callable[[], None],
    ) -> None:
        self._answerer = answerer
        self._partition = partition
        self._name = name
        self._wait_s = wait_s
        self._closing = closing
        self._before_pause = before_pause
        self._failed_on_end = 0
        self.waits_for = ""
        """Why a batch waits for a service; '' while none does."""

    def answers(self, records: Sequence[Record], *, whole: bool = True) -> Iterator[AnsweredBatch | FailedRecord]:
        """The answers to ``records``, in one piece if nothing fails. Each is to be written before the next is asked.

        Raises ServiceUnavailable, FunctionFault, InternalError for what ends the query, LaneClosed in a pause.
        """
        step, failure = self._attempts(records, whole)
        if step is not None:
            self._failed_on_end = 0
            yield step
        elif len(records) == 1:
            assert failure is not None
            self._note_defect(failure)
            reason = failure.what if isinstance(failure, DovetailError) else f"{type(failure).__name__}: {failure}"
            yield FailedRecord(records[0], reason)
        else:
            middle = len(records) // 2
            yield from self.answers(records[:middle], whole=False)
            yield from self.answers(records[middle:], whole=False)

    def _attempts(self, records: Sequence[Record], whole: bool) -> tuple[AnsweredBatch | None, Exception | None]:
        """The answer, or what is wrong with it."""
        batch = as_batch(self._partition, records, headed=self._answerer.headed)
        pauses, started_s, left = _PAUSES.pauses(), time.monotonic(), _ATTEMPTS if whole else 1
        while True:
            try:
                step = self._answerer.step(batch, now_ms())
                self.waits_for = ""
                return step, None
            except FunctionFault:
                # No record is at fault: each of them would become a dead letter.
                raise
            except Exception as failure:
                rejected = isinstance(failure, RecordRejected)
                external = not rejected and _is_external(failure)
                left = 0 if rejected else left - (not external)
                waited_s = time.monotonic() - started_s
                self.waits_for = str(failure) if external and waited_s > _REPORTED_AFTER_S else ""
                if not external and not left:
                    return None, failure
                if external and waited_s > self._wait_s:
                    raise _gave_up(failure, self._wait_s) from failure
                why, pause_s = shortened(str(failure)), next(pauses)
                _LOG.warning("%s: %d records are tried again in %g s: %s", self._name, len(records), pause_s, why)
            if whole:
                self._before_pause()
            if self._closing.wait(pause_s):
                raise LaneClosed("it waited for a service")

    def _note_defect(self, failure: Exception) -> None:
        if isinstance(failure, RecordRejected):
            return
        self._failed_on_end += 1
        if self._failed_on_end >= _DEFECT:
            raise InternalError(
                shortened(f"{_DEFECT} records on end cannot be answered: {type(failure).__name__}: {failure}"),
                where=self._name,
                fix="this is a defect of Dovetail: dovetail logs worker has its trace; nothing is lost",
            ) from failure


def _is_external(failure: Exception) -> bool:
    """Whether trying again helps, once somebody has mended what is at fault."""
    return isinstance(failure, DovetailError) and (failure.retry or failure.domain is Domain.EXTERNAL)


def _gave_up(failure: Exception, wait_s: float) -> ServiceUnavailable:
    assert isinstance(failure, DovetailError)
    return ServiceUnavailable(
        f"{failure.what}; it was tried again for {wait_s:g} s",
        where=failure.where,
        fix=failure.fix or "fix the source and RESUME the query; nothing is lost",
    )
