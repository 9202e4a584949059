"""Where the processes of lookup queries come from in tests, one place for all tests of a run."""

from __future__ import annotations

from functools import cache

from dovetail.runtime.processes.own_fork_server import ForkServer
from dovetail.services.worker.supervisor.child_process import fork_server


@cache
def children() -> ForkServer:
    """Started by the first test that asks for it; it ends with the process of the tests."""
    return fork_server({})
