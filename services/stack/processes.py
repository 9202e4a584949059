"""Processes named so that a reused pid is never mistaken for the process that had it before.

A process is a pid and its start time. The processes of one run of the stack also carry the run's mark in their
environment, so that a worker that left its parent's process group, or whose parent was killed, is still found.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil

from dovetail.runtime.processes.shown import show_variable

RUN_MARK = "DOVETAIL_STACK_RUN"
# Start times are computed from the boot time, which moves by fractions of a second when the clock is set.
_START_TOLERANCE_S = 2.0
_POLL_S = 0.02
_MARK_WIDTH = 12
_RUN_ID_WIDTH = 32


@dataclass(frozen=True)
class ProcessIdentity:
    """A pid and when it started, in seconds since the epoch."""

    pid: int
    started: float

    @staticmethod
    def of(pid: int) -> ProcessIdentity:
        return ProcessIdentity(pid, psutil.Process(pid).create_time())

    def find(self) -> psutil.Process | None:
        """The running process, or None when it has ended, be it not yet reaped, or its pid has gone to another."""
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < _START_TOLERANCE_S
            if same and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None


def run_mark(run_id: str, component: str) -> str:
    """What the processes of a component carry in ``RUN_MARK``. All are of one length: they are exchanged in place."""
    return f"{run_id}/{component:.<{_MARK_WIDTH}}"


def hide_from_stack() -> None:
    """This process, forked from one of a stack, is none of it."""
    show_variable(RUN_MARK, run_mark("-" * _RUN_ID_WIDTH, ""))


def marked_processes(run_id: str, component: str | None = None) -> list[ProcessIdentity]:
    """The processes started by this run of the stack, or by one component of it, however they are related now."""
    wanted = f"{run_id}/" if component is None else run_mark(run_id, component)
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            mark = _mark_of(process) or ""
            if mark == wanted or (component is None and mark.startswith(wanted)):
                found.append(ProcessIdentity(process.pid, process.create_time()))
    return found


def _mark_of(process: psutil.Process) -> str | None:
    with suppress(psutil.Error, OSError):
        mark: str | None = process.environ().get(RUN_MARK)
        return mark
    return None


def end_group(leader: ProcessIdentity, timeout_s: float) -> None:
    """Ask the leader's process group to stop; kill what is left of it after ``timeout_s``."""
    if leader.find() is None:
        return
    _signal_group(leader.pid, signal.SIGTERM)
    if not await_end([leader], timeout_s):
        _signal_group(leader.pid, signal.SIGKILL)
        await_end([leader], timeout_s)


def kill(processes: Iterable[ProcessIdentity], timeout_s: float) -> None:
    """End processes at once."""
    targets = [identity for identity in processes if identity.find() is not None]
    for identity in targets:
        with suppress(ProcessLookupError):
            os.kill(identity.pid, signal.SIGKILL)
    await_end(targets, timeout_s)


def await_end(processes: Sequence[ProcessIdentity], timeout_s: float) -> bool:
    """Whether all have ended within the time. One that its parent has not reaped yet has ended."""
    deadline = time.monotonic() + timeout_s
    while any(identity.find() is not None for identity in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _signal_group(pid: int, number: signal.Signals) -> None:
    # Each child leads a group of its own. One that has not become its leader yet is signalled by itself.
    with suppress(ProcessLookupError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
