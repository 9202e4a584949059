"""Queries that do not stay up: since when, and when each is tried again."""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.changelog.errors import DovetailError
from dovetail.changelog.work.backoff import Backoff
from dovetail.sql.syntax.redact import redacted


@dataclass(frozen=True)
class Failure:
    """A query did not start, or ended by itself.

    message  why, to the user
    final    trying again does not help: its data, its plan or a defect ended it, and not its environment
    """

    message: str
    final: bool = False

    @staticmethod
    def of(error: DovetailError) -> Failure:
        return Failure(redacted(str(error)), final=not error.retry)


@dataclass(frozen=True)
class Trouble:
    """A query that is tried again; all times of the same clock."""

    attempts: int
    pause_s: float
    next_s: float


@dataclass
class RetryState:
    """By id of the query. A start alone is no sign that a trouble is over: whoever watches the query says so.

    There is no end of patience. What the environment has broken it can mend, and nobody has to say that it has.
    """

    backoff: Backoff
    _troubles: dict[int, Trouble] = field(default_factory=dict)

    def may_try(self, query_id: int, now_s: float) -> bool:
        trouble = self._troubles.get(query_id)
        return trouble is None or now_s >= trouble.next_s

    def note(self, query_id: int, now_s: float) -> Trouble:
        """The trouble that the query is in now."""
        before = self._troubles.get(query_id)
        attempts = before.attempts + 1 if before else 1
        pause_s = self.backoff.pause_s(attempts)
        self._troubles[query_id] = Trouble(attempts, pause_s, now_s + pause_s)
        return self._troubles[query_id]

    def end(self, query_id: int) -> None:
        self._troubles.pop(query_id, None)
