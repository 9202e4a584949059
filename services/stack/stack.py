"""``Stack``: bring the local stack up, take it down, ask how it is.

The stack itself is a process of its own (stack_supervisor.py), so it outlives the command that started it. What is
known about it stands in ``stack.json``; a state left behind by a kill -9 or a reboot is recognised by the start times
of its processes and cleaned up by the next ``up`` or ``down``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from dovetail.changelog.errors import StackError
from dovetail.runtime.java import find_java
from dovetail.runtime.logs.log_reading import Following, last_lines
from dovetail.runtime.packages import PACKAGE_ROOT
from dovetail.runtime.settings import Settings
from dovetail.services.stack.components import COMPONENT_NAMES, component, in_start_order
from dovetail.services.stack.files import StackFiles, locked, tail
from dovetail.services.stack.processes import end_group, kill, marked_processes
from dovetail.services.stack.state import ChildState, Phase, StackState, Wanted, read_state
from dovetail.services.stack.writable import expect_writable

_POLL_S = 0.1
Progress = Callable[[str], None]


@dataclass(frozen=True)
class ComponentStatus:
    """One line of ``dovetail status``. ``log_tail`` is filled for a component that ended by itself.

    restarts  how often the supervisor has started it again
    """

    name: str
    phase: Phase
    endpoint: str
    pid: int | None
    log: Path
    reason: str = ""
    log_tail: str = ""
    restarts: int = 0

    @property
    def account(self) -> str:
        """What is known about an end: the reason, and the last lines of the log."""
        return f"{self.name} {self.reason}" + (f"; the end of its log:\n{self.log_tail}" if self.log_tail else "")


class Stack:
    """The local stack of one ``data_dir``."""

    def __init__(self, settings: Settings, owner_pid: int | None = None) -> None:
        self.settings = settings
        self._files = StackFiles(settings)
        self._owner_pid = owner_pid

    def up(self, components: Sequence[str] = COMPONENT_NAMES, on_progress: Progress = lambda line: None) -> None:
        """Start what does not run yet and wait until all of ``components`` answer.

        A folder that cannot be written to, or a missing Java, raises :class:`StackError` before anything starts;
        so does a component that cannot start, with the end of its log, and the others stay up.
        """
        expect_writable(self.settings)
        wanted = [one.name for one in in_start_order(components) if not one.provided(self.settings)]
        if not {"kafka", "spark"}.isdisjoint(wanted):
            find_java()
        with locked(self._files.lock("command")):
            state = self._living_state(on_progress)
            for line in self.status():
                if line.name in wanted and line.phase is Phase.EXITED:
                    on_progress(f"{line.account}\nstarting {line.name} again")
            request = uuid.uuid4().hex
            Wanted(request, wanted, {**os.environ, **self.settings.as_environment()}).write(self._files.wanted)
            if state is None:
                self._start_supervisor()
            else:
                os.kill(state.supervisor.pid, signal.SIGHUP)
            self._await_ready(request, wanted, on_progress)

    def down(self, on_progress: Progress = lambda line: None) -> list[str]:
        """End everything that ``up`` started, and nothing else; the names of what was ended."""
        with locked(self._files.lock("command")):
            state = read_state(self._files.state)
            if state is None:
                return []
            ended = [child.name for child in state.children if child.process is not None and child.process.find()]
            on_progress(f"stopping {', '.join(ended) or 'nothing'}")
            patience_s = self.settings.stop_timeout_s * (1 + len(state.children))
            end_group(state.supervisor, patience_s)
            self._clean_up(state)
            return ended

    def status(self) -> list[ComponentStatus]:
        """Every known component, as it is now."""
        state = read_state(self._files.state)
        children = [ChildState(name, Phase.STOPPED) if state is None else state.child(name) for name in COMPONENT_NAMES]
        supervised = state is not None and state.supervisor.find() is not None
        return [self._status(child, supervised=supervised) for child in children]

    def endpoint(self, name: str) -> str:
        """Where a component answers; :class:`StackError` when it is not up."""
        status = next(line for line in self.status() if line.name == component(name).name)
        if status.phase is not Phase.READY:
            raise StackError(f"{name} is not up: {status.reason or status.phase}", fix="run: dovetail up")
        return status.endpoint

    def connected_settings(self) -> Settings:
        """The settings with the addresses of all components that are up."""
        settings = self.settings
        for line in self.status():
            if line.phase is Phase.READY:
                settings = component(line.name).announce(settings, line.endpoint)
        return settings

    def logs(self, name: str, *, follow: bool = False, lines: int = 100) -> Iterator[str]:
        """The last lines of a component's log, then, with ``follow``, those to come until the stack goes down."""
        path = self._files.log(name if name == "supervisor" else component(name).name)
        if not path.exists():
            raise StackError(f"{name} has no log yet", where=str(path), fix="run: dovetail up")
        with closing(Following(path)) as following:
            yield from last_lines(path, self.settings.log_files, lines)
            while follow and self._files.state.exists():
                yield from following.new_lines()
                time.sleep(_POLL_S)

    def _living_state(self, on_progress: Progress) -> StackState | None:
        """The state of a running supervisor; what a dead one left behind is ended first."""
        state = read_state(self._files.state)
        if state is not None and state.supervisor.find() is None:
            on_progress("cleaning up after a stack that was not stopped")
            self._clean_up(state)
            return None
        return state

    def _clean_up(self, state: StackState) -> None:
        for child in reversed(state.children):
            if child.process is not None:
                end_group(child.process, self.settings.stop_timeout_s)
        kill(marked_processes(state.run_id), self.settings.stop_timeout_s)
        self._files.state.unlink(missing_ok=True)

    def _start_supervisor(self) -> None:
        argv = [sys.executable, "-m", "dovetail.services.stack.stack_supervisor"]
        if self._owner_pid is not None:
            argv += ["--owner", str(self._owner_pid)]
        log = self._files.fresh_log("supervisor")
        with log.open("ab") as output:
            started = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=PACKAGE_ROOT,
                env=os.environ | self.settings.as_environment(),
                check=False,
            )
        self._await_state(log, failed=started.returncode != 0)

    def _await_state(self, log: Path, *, failed: bool) -> None:
        deadline = time.monotonic() + self.settings.start_timeout_s
        while not self._files.state.exists():
            if failed or time.monotonic() > deadline:
                raise StackError(
                    f"the supervisor did not start:\n{tail(log)}",
                    where=str(log),
                    fix="fix what the log reports, then run: dovetail up",
                )
            time.sleep(_POLL_S)

    def _await_ready(self, request: str, wanted: Sequence[str], on_progress: Progress) -> None:
        seen: dict[str, Phase] = {}
        while True:
            state = read_state(self._files.state)
            if state is None or state.supervisor.find() is None:
                raise StackError(
                    "the supervisor has ended", where=str(self._files.log("supervisor")), fix="dovetail up"
                )
            children = [state.child(name) for name in wanted if state.request == request]
            for child in children:
                if seen.get(child.name) is not child.phase:
                    seen[child.name] = child.phase
                    on_progress(f"{child.name} {child.phase} {child.endpoint}".rstrip())
            if failed := [child for child in children if child.phase is Phase.EXITED]:
                raise self._failed(failed[0])
            if state.request == request and all(_is_up(child) for child in children):
                return
            time.sleep(_POLL_S)

    def _failed(self, child: ChildState) -> StackError:
        line = self._status(child, supervised=True)
        return StackError(line.account, where=str(line.log), fix="fix what the log reports, then run: dovetail up")

    def _status(self, child: ChildState, *, supervised: bool) -> ComponentStatus:
        log = self._files.log(child.name)
        alive = child.process is not None and child.process.find() is not None
        phase, reason = child.phase, child.reason
        if child.phase in (Phase.STARTING, Phase.READY) and not alive:
            phase, reason = Phase.RESTARTING if supervised else Phase.EXITED, reason or "ended"
        if child.phase is Phase.STOPPING and not alive:
            phase = Phase.STOPPED
        pid = child.process.pid if alive and child.process is not None else None
        ended_by_itself = phase in (Phase.EXITED, Phase.RESTARTING) and child.process is not None
        return ComponentStatus(
            child.name, phase, child.endpoint, pid, log, reason, tail(log) if ended_by_itself else "", child.restarts
        )


def _is_up(child: ChildState) -> bool:
    """Ready, and not dead since: the supervisor may not have noticed yet."""
    return child.phase is Phase.READY and child.process is not None and child.process.find() is not None
