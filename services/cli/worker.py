"""``dovetail worker``: one more lookup worker, in the foreground."""

from __future__ import annotations

import threading

from dovetail.runtime.logs.process_log import configure_logs
from dovetail.runtime.processes.signals import stop_on_signals
from dovetail.runtime.settings import Settings
from dovetail.services.session.session import connected_settings
from dovetail.services.stack import Stack
from dovetail.services.worker.__main__ import run


def work(settings: Settings) -> None:
    """Until it is told to stop. The partitions of all lookup queries spread over the workers that run.

    Raises DovetailError where what it needs is not there.
    """
    connected = connected_settings(Stack(settings))
    configure_logs(connected.log_level, connected.log_format)
    stopped = threading.Event()
    stop_on_signals(stopped)
    run(connected, stopped)
