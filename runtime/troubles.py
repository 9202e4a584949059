"""Queries that do not stay up: since when, and when each is tried again."""

from __future__ import annotations

from dataclasses import dataclass, field

_LONGEST_PAUSE_S = 15.0


@dataclass(frozen=True)
class Setback:
    """A query did not start, or ended by itself.

    what     in a few words, for the log
    told     to the user while it is tried again
    verdict  to the user when it is not; the same where it is empty
    final    trying again does not help
    crash    it ended without saying why, which may not happen often
    """

    what: str
    told: str
    verdict: str = ""
    final: bool = False
    crash: bool = False


@dataclass(frozen=True)
class Patience:
    """first_pause_s   before the second attempt; each pause after it is twice as long, up to a bound
    wait_s          how long it is tried again
    crashes         or until it has crashed so often
    """

    first_pause_s: float
    wait_s: float
    crashes: int


@dataclass(frozen=True)
class Trouble:
    """A query that failed and is tried again; all times of the same clock."""

    since_s: float
    pause_s: float
    next_s: float
    crashes: int


@dataclass
class Troubles:
    """By id of the query. A start alone is no sign that a trouble is over: whoever watches the query says so."""

    patience: Patience
    _troubles: dict[int, Trouble] = field(default_factory=dict)

    def may_try(self, query_id: int, now_s: float) -> bool:
        trouble = self._troubles.get(query_id)
        return trouble is None or now_s >= trouble.next_s

    def note(self, query_id: int, setback: Setback, now_s: float) -> Trouble | None:
        """The trouble that the query is in now; None once it is not tried again."""
        before = self._troubles.pop(query_id, None)
        if before is not None and now_s - before.next_s > self.patience.wait_s:
            before = None
        since_s = before.since_s if before else now_s
        crashes = (before.crashes if before else 0) + setback.crash
        if setback.final or crashes >= self.patience.crashes or now_s - since_s > self.patience.wait_s:
            return None
        pause_s = min(2 * before.pause_s, _LONGEST_PAUSE_S) if before else self.patience.first_pause_s
        self._troubles[query_id] = Trouble(since_s, pause_s, now_s + pause_s, crashes)
        return self._troubles[query_id]

    def end(self, query_id: int) -> None:
        self._troubles.pop(query_id, None)
