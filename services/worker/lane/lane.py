"""A lane: the fetches of one input partition, one after another, on a thread of its own.

    queue ──▶ pending ──▶ answered and written, in an open transaction ──▶ committed

``fetch_queue`` is the first arrow, ``retries`` the second, ``uncommitted_fetches`` the third. A partition that belongs
to somebody else now is let go: its new owner goes on from the last commit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from dovetail.broker.errors import BrokerError
from dovetail.broker.group_member import GroupMember
from dovetail.changelog.errors import RecordsGone
from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.services.worker.lane.fetch_queue import FetchQueue
from dovetail.services.worker.lane.fetches import Fetch
from dovetail.services.worker.lane.lane_settings import LaneClosed, LaneSettings, LaneTopics
from dovetail.services.worker.lane.retries import BatchAnswerer, Retries
from dovetail.services.worker.lane.transactions import NotAMember, Place
from dovetail.services.worker.lane.uncommitted_fetches import UncommittedFetches

_LOG = logging.getLogger("dovetail.worker")
_IDLE_S = 0.1


class Lane:
    """One partition, from ``open`` to ``close``."""

    def __init__(
        self,
        place: Place,
        member: GroupMember,
        topics: LaneTopics,
        query: str,
        answerer: BatchAnswerer,
        settings: LaneSettings,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._start = place.start
        self._answerer = answerer
        self._settings = settings
        self._failed = failed
        self._closing = threading.Event()
        self._queue = FetchQueue(settings.queued_fetches)
        self._uncommitted = UncommittedFetches(place, member.metadata, topics, query, answerer, settings, self._closing)
        # Readers need not wait for the batch that waits.
        before_pause = self._uncommitted.commit
        self._retries = Retries(
            answerer, place.partition, self._uncommitted.name, settings.wait_s, self._closing, before_pause
        )
        self._thread = SupervisedThread(f"lane-{place.partition}", self._work)
        self.batch_ms = 0

    @property
    def reached(self) -> int:
        """The offset up to which it is answered and committed."""
        return self._uncommitted.reached

    @property
    def counts(self) -> Counter[str]:
        return self._uncommitted.counts

    @property
    def commits(self) -> int:
        return self._uncommitted.commits

    @property
    def waits_for(self) -> str:
        """Why it waits for a service; '' while it does not."""
        return "" if self._closing.is_set() else self._retries.waits_for

    # -- from the event loop

    def open(self) -> int:
        """Where the partition is to be read from."""
        try:
            start = self._uncommitted.open()
        except RecordsGone as failure:
            self._closing.set()
            self._failed(failure)
            return self._start
        self._queue.begin(start)
        self._thread.start()
        return start

    @property
    def has_room(self) -> bool:
        return self._queue.has_room and not self._closing.is_set()

    def offer(self, fetch: Fetch) -> int | None:
        """Take a fetch; if it is not the next one, where the next one starts."""
        return self._queue.offer(fetch)

    @property
    def let_go(self) -> bool:
        """Whether nobody works on it any more, though it was not closed."""
        return self._thread.has_ended

    def begin_closing(self) -> None:
        self._closing.set()

    def close(self) -> None:
        """Finish the fetch in hand and commit; those that wait are left for the next owner."""
        self._closing.set()
        self._thread.close(None)

    # -- on the thread

    def _work(self) -> None:
        try:
            self._answerer.restore()
            while not self._closing.is_set():
                patience_s = self._uncommitted.left_s(time.monotonic(), _IDLE_S)
                self._uncommitted.add(self._queue.take(patience_s, self._settings.commit_records))
                self._turn()
            self._finish()
        except (NotAMember, LaneClosed) as reason:
            _LOG.info("%s: let go, %s", self._uncommitted.name, reason)
        except BaseException as failure:  # noqa: BLE001 - reported, and ends the query or the process
            self._failed(failure)
        finally:
            self._closing.set()
            self._uncommitted.abort()
            self._answerer.close()

    def _turn(self) -> None:
        try:
            self._write()
            if self._uncommitted.is_due(time.monotonic()):
                self._uncommitted.commit()
        except BrokerError as failure:
            self._uncommitted.begin_again(failure)

    def _finish(self) -> None:
        try:
            self._write()
            self._uncommitted.commit()
        except BrokerError as failure:
            raise LaneClosed(f"uncommitted answers are left to the next owner: {failure.reason}") from failure

    def _write(self) -> None:
        """Answers to the fetches that are not written yet, as one batch."""
        records = self._uncommitted.unwritten()
        if records:
            begun_s = time.monotonic()
            for answer in self._retries.answers(records):
                self._uncommitted.write(answer)
            self.batch_ms = round((time.monotonic() - begun_s) * 1000)
        self._uncommitted.all_written(len(records))
