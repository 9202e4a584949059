"""When a component that has died is started again."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.changelog.work.backoff import Backoff

_PAUSES = Backoff(first_s=0.5, longest_s=30.0)
_CALM_S = 20.0
LIMIT = 20


@dataclass
class Restarts:
    """Of one component; all times of the same clock.

    The pause doubles with each death until it has been well for a while. One that dies ``LIMIT`` times without that is
    left alone: whatever is wrong, to start it again is not the cure.
    """

    _deaths: int = 0
    _ready_s: float | None = None
    due_s: float = 0.0

    def ready(self, now_s: float) -> None:
        self._ready_s = now_s

    def died(self, now_s: float) -> float | None:
        """The pause before the next start; None once it is not started any more."""
        if self._ready_s is not None and now_s - self._ready_s > _CALM_S:
            self._deaths = 0
        self._ready_s = None
        self._deaths += 1
        if self._deaths > LIMIT:
            return None
        pause_s = _PAUSES.pause_s(self._deaths)
        self.due_s = now_s + pause_s
        return pause_s
