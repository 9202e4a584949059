"""A process that is told to stop does, whatever it is doing then."""

from __future__ import annotations

import subprocess
import sys

import pytest

IN_A_WAIT = """
import os, signal, threading
from dovetail.runtime.processes.signals import stop_on_signals

stopped = threading.Event()
stop_on_signals(stopped)
with stopped._cond:  # as within stopped.wait()
    os.kill(os.getpid(), signal.{name})
assert stopped.wait(30)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_within_a_wait_ends_it(name: str) -> None:
    subprocess.run([sys.executable, "-c", IN_A_WAIT.format(name=name)], check=True, timeout=60)
