"""What is wrong with the rows of a query, said in the log once a minute at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dovetail.runtime.logs.query_logs import QueryLog

_PAUSE_S = 60.0


class Complaints:
    """Of one query; the clock is handed in. What comes in a pause is told after it."""

    def __init__(self, log: QueryLog) -> None:
        self._log = log
        self._said_s = -_PAUSE_S
        self._dangling = 0
        self._late: Counter[str] = Counter()

    def note(self, dangling: int, late: Mapping[str, int], now_s: float) -> None:
        """dangling   retractions of rows that were never inserted
        late        rows behind the watermark, by the name of their input
        """
        self._dangling += dangling
        self._late.update(late)
        if now_s - self._said_s < _PAUSE_S or not (self._dangling or self._late.total()):
            return
        if self._dangling:
            self._log.error("%d retractions of rows that were never inserted, left out", self._dangling)
        if self._late.total():
            sides = ", ".join(f"{count} of {name}" for name, count in sorted(self._late.items()) if count)
            self._log.warning("late rows, left out: %s; SETTINGS late_topic keeps them", sides)
        self._said_s = now_s
        self._dangling = 0
        self._late.clear()
