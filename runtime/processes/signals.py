"""How a process is told to stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType


def stop_on_signals(stopped: threading.Event) -> None:
    """Let SIGTERM and Ctrl-C set ``stopped``, which nobody waits for yet.

    Wait for it with a timeout: a signal that comes as a wait begins does not end that wait.
    """
    # A handler runs in the main thread, also where that holds the lock of the event on its way into a wait. It has to
    # get the lock a second time, or both stand still forever.
    stopped._cond = threading.Condition(threading.RLock())  # type: ignore[attr-defined]  # noqa: SLF001

    def stop(signal_number: int, frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
