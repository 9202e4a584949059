"""A batch that hangs: under way for long, while no process of the runner works on anything.

A batch may take long: it has much to read, to rebuild, to write. So its age alone says nothing. Where it has a cause
that is known (a broker or a store that is away) it ends by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_LOOK_S = 15.0
_BUSY = 0.05
"""Of a core: a stack at rest takes less."""
_HANGS_S = 600.0
_IDLE_S = 120.0


class Inactivity:
    """``look`` is to be called now and then.

    used_s  the processor time that the runner and all of its processes have had
    """

    def __init__(self, used_s: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._used_s = used_s
        self._clock = clock
        self._looked_s = clock()
        self._used_before_s = 0.0
        self._busy_s = clock()

    def look(self) -> None:
        now_s = self._clock()
        if (passed_s := now_s - self._looked_s) < _LOOK_S:
            return
        used_s = self._used_s()
        # Of processes that have ended the time is gone too.
        if not 0 <= used_s - self._used_before_s < _BUSY * passed_s:
            self._busy_s = now_s
        self._looked_s, self._used_before_s = now_s, used_s

    def hangs(self, under_way_s: float) -> bool:
        """Whether a batch that has been under way for so long will not end."""
        return under_way_s > _HANGS_S and self._clock() - self._busy_s > _IDLE_S
