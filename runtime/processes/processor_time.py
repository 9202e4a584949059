"""The processor time of this process and of all that it has started."""

from __future__ import annotations

from contextlib import suppress

import psutil


def used_by_this_process_and_its_own() -> float:
    """In seconds; of processes that have ended it is not known any more."""
    own = psutil.Process()
    used_s = 0.0
    for process in [own, *own.children(recursive=True)]:
        with suppress(psutil.Error):
            times = process.cpu_times()
            used_s += times.user + times.system
    return used_s
