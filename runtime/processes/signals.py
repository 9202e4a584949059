"""How a process is told to stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType


def stop_on_signals(stopped: threading.Event) -> None:
    """Let SIGTERM and Ctrl-C set ``stopped``."""

    def stop(signal_number: int, frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
