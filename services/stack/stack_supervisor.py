"""The supervisor: starts the wanted components in order, starts again those that die, and ends them when told to.

    python -m dovetail.services.stack.stack_supervisor [--owner PID]

The command returns once the supervisor runs in the background. Its signals:
SIGHUP: read the wanted components again and start those that do not run. SIGTERM or SIGINT: end everything.
With ``--owner`` it also ends when that process is gone, so that a test killed half-way leaves nothing behind.
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import structlog

from dovetail.changelog.errors import DovetailError
from dovetail.runtime.environment.statement_secrets import secrets_of
from dovetail.runtime.environment.unknown_variables import warn_of_unknown
from dovetail.runtime.logs.process_log import configure_logs
from dovetail.runtime.processes.own_files import keep_to_owner
from dovetail.runtime.settings import Settings, read_settings
from dovetail.services.stack.component import Component
from dovetail.services.stack.components import component as known_component
from dovetail.services.stack.components import in_start_order
from dovetail.services.stack.files import StackFiles, locked
from dovetail.services.stack.processes import RUN_MARK, ProcessIdentity, end_group, kill, marked_processes, run_mark
from dovetail.services.stack.restarts import LIMIT, Restarts
from dovetail.services.stack.starter import Started, Starter
from dovetail.services.stack.state import ChildState, Phase, StackState, Wanted, write_state

log = structlog.get_logger(__name__)
_TICK_S = 0.2
_PYTHON = "python"
"""What the interpreter that others are copied from is called among the components."""


@dataclass
class Supervisor:
    """``settings`` grows with the address of each component that is ready; ``state`` is what stack.json says."""

    settings: Settings
    owner: ProcessIdentity | None = None
    signals: queue.SimpleQueue[signal.Signals] = field(default_factory=queue.SimpleQueue)
    running: dict[str, Started] = field(default_factory=dict)
    deadlines: dict[str, float] = field(default_factory=dict)
    restarts: dict[str, Restarts] = field(default_factory=dict)
    state: StackState = field(init=False)
    saved: bool = True

    def __post_init__(self) -> None:
        self.files = StackFiles(self.settings)
        self.state = StackState(uuid.uuid4().hex, ProcessIdentity.of(os.getpid()))
        self.starter = Starter(self._environment(_PYTHON, self.settings))

    def run(self) -> None:
        """Until told to stop; whatever ends the loop, no child outlives it."""
        self._save()
        self.read_wanted()
        try:
            while not self._is_stop_requested():
                self.tick()
        finally:
            self.end_all()
            self.files.state.unlink(missing_ok=True)

    def _is_stop_requested(self) -> bool:
        if self.owner is not None and self.owner.find() is None:
            return True
        try:
            received = self.signals.get(timeout=_TICK_S)
        except queue.Empty:
            return False
        if received == signal.SIGHUP:
            self.tick()  # a child that has just ended must be known to have ended before it is wanted again
            self.read_wanted()
            return False
        return True

    def read_wanted(self) -> None:
        """Put the wanted components that do not run back to waiting."""
        if (wanted := Wanted.taken(self.files.wanted)) is None:
            return
        before = secrets_of(os.environ)
        self._take_environment({**before, **wanted.environment})
        if secrets_of(os.environ) != before:
            self._start_readers_again()
        components = in_start_order(wanted.components)
        self.starter.expect(components)
        for one in components:
            if self.state.child(one.name).phase in (Phase.STOPPED, Phase.EXITED):
                self.restarts.pop(one.name, None)
                self._record(ChildState(one.name))
        self.state = replace(self.state, request=wanted.request)
        self._save()

    def _take_environment(self, environment: Mapping[str, str]) -> None:
        """What starts from now on has that of the last ``up``, which may have what an earlier one lacked."""
        os.environ.clear()
        os.environ.update(environment)
        self.settings = read_settings()
        for child in self.state.children:
            if child.phase in (Phase.READY, Phase.RESTARTING):
                self.settings = known_component(child.name).announce(self.settings, child.endpoint)

    def _start_readers_again(self) -> None:
        """Those that have read the passwords as they were. A shell that lacks one has not taken it from them."""
        for child in self.state.children:
            if child.phase in (Phase.STARTING, Phase.READY) and known_component(child.name).reads_secrets:
                self._end(child)
                self._record(replace(child, phase=Phase.WAITING, process=None))

    def _save(self) -> None:
        """Write the state down. A disk that is full, or not there, is tried again: it is no reason to end what runs."""
        try:
            write_state(self.files.state, self.state)
        except OSError as error:
            if self.saved:
                log.error("the state cannot be written, and is tried again", reason=str(error))
            self.saved = False
        else:
            self.saved = True

    def tick(self) -> None:
        """One look at every component, in the order of starting."""
        if not self.saved:
            self._save()
        for name in ("supervisor", *(child.name for child in self.state.children)):
            with suppress(OSError):  # a full disk: the log is as long as it can get
                self.files.cut_log(name)
        for component in in_start_order([child.name for child in self.state.children]):
            child = self.state.child(component.name)
            if child.phase is Phase.WAITING and self._may_start(component):
                self._start(component, child, self.files.fresh_log)
            elif child.phase is Phase.RESTARTING and self._is_due(component):
                self._start(component, child, self.files.log)
            elif child.phase in (Phase.STARTING, Phase.READY):
                self._watch(component, child)

    def _may_start(self, component: Component) -> bool:
        before = [self.state.child(name) for name in component.after]
        beside = [self.state.child(name) for name in component.beside]
        after_all = all(child.phase in (Phase.READY, Phase.STOPPED) for child in before)
        begun = all(child.phase in (Phase.STARTING, Phase.READY, Phase.STOPPED) for child in beside)
        return after_all and begun and self.starter.is_ready_for(component)

    def _is_due(self, component: Component) -> bool:
        return self._may_start(component) and time.monotonic() >= self.restarts[component.name].due_s

    def _start(self, component: Component, child: ChildState, log_file: Callable[[str], Path]) -> None:
        """Start the process, and write down who it is before anything else happens."""
        try:
            settings = self._settings_of(component)
            launch = component.prepare(settings)
            environment = self._environment(component.name, settings) | dict(launch.environment)
            process = self.starter.start(launch, environment, log_file(component.name))
            identity = ProcessIdentity.of(process.pid)
        except (DovetailError, OSError, psutil.NoSuchProcess) as error:
            self._died(replace(child, process=None, reason=str(error)))
            return
        self.running[component.name] = process
        self.deadlines[component.name] = time.monotonic() + self.settings.start_timeout_s
        self._record(replace(child, phase=Phase.STARTING, process=identity, endpoint=launch.endpoint))

    def _settings_of(self, component: Component) -> Settings:
        """With the addresses at which what starts beside it will answer."""
        settings = self.settings
        for other in in_start_order(component.beside):
            child = self.state.child(other.name)
            if child.phase is Phase.STARTING:
                settings = other.announce(settings, child.endpoint)
        return settings

    def _environment(self, component: str, settings: Settings) -> dict[str, str]:
        return os.environ | settings.as_environment() | {RUN_MARK: run_mark(self.state.run_id, component)}

    def _watch(self, component: Component, child: ChildState) -> None:
        assert child.process is not None
        if child.process.find() is not None:
            if child.phase is Phase.STARTING:
                self._await_answer(component, child, child.process.pid)
            return
        # Its main thread is dead; the exit code comes with the last thread, which in a JVM takes a moment.
        exit_code = self.running[component.name].poll()
        if exit_code is not None:
            kill(marked_processes(self.state.run_id, component.name), self.settings.stop_timeout_s)
            self._died(replace(child, exit_code=exit_code, reason=_ending(exit_code)))

    def _await_answer(self, component: Component, child: ChildState, pid: int) -> None:
        if component.answers(self.settings, child.endpoint, pid):
            self.settings = component.announce(self.settings, child.endpoint)
            self.restarts.setdefault(component.name, Restarts()).ready(time.monotonic())
            self._give_time_from_now(component)
            self._record(replace(child, phase=Phase.READY, reason=""))
        elif time.monotonic() > self.deadlines[component.name]:
            self._end(child)
            reason = f"did not answer within {self.settings.start_timeout_s:g} s (DOVETAIL_START_TIMEOUT_S)"
            self._died(replace(child, reason=reason))

    def _give_time_from_now(self, answered: Component) -> None:
        """Those that have waited for it have had nothing of their time yet."""
        for other in in_start_order([child.name for child in self.state.children if child.phase is Phase.STARTING]):
            if answered.name in other.beside:
                self.deadlines[other.name] = time.monotonic() + self.settings.start_timeout_s

    def _died(self, child: ChildState) -> None:
        """One that has answered before is started again. One that never has would not answer the next time either."""
        restarts = self.restarts.get(child.name)
        if restarts is None:
            self._record(replace(child, phase=Phase.EXITED))
            return
        pause_s = restarts.died(time.monotonic())
        if pause_s is None:
            reason = (
                f"{child.reason}, and has died {LIMIT} times without being well for long: dovetail up starts it again"
            )
            self._record(replace(child, phase=Phase.EXITED, reason=reason))
            return
        self._record(replace(child, phase=Phase.RESTARTING, restarts=child.restarts + 1))

    def _record(self, child: ChildState) -> None:
        self.state = self.state.with_child(child)
        self._save()
        log.info("component", name=child.name, phase=child.phase, endpoint=child.endpoint, reason=child.reason)

    def end_all(self) -> None:
        """End the components, last started first, then whatever else carries the mark of this run."""
        self.state = replace(
            self.state, children=tuple(replace(child, phase=Phase.STOPPING) for child in self.state.children)
        )
        self._save()
        for child in reversed(self.state.children):
            self._end(child)
        self.starter.close()
        kill(marked_processes(self.state.run_id), self.settings.stop_timeout_s)

    def _end(self, child: ChildState) -> None:
        if child.process is not None:
            end_group(child.process, self.settings.stop_timeout_s)


def _ending(exit_code: int) -> str:
    if exit_code < 0:
        return f"was killed by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dovetail.services.stack.stack_supervisor")
    parser.add_argument("--owner", type=int, help="end the stack when this process is gone")
    owner_pid = parser.parse_args(arguments).owner
    settings = read_settings()
    keep_to_owner(settings.data_dir)
    configure_logs(settings.log_level, settings.log_format)
    warn_of_unknown(log.warning)
    owner = None if owner_pid is None else ProcessIdentity.of(owner_pid)
    try:
        with locked(StackFiles(settings).lock("supervisor"), wait=False):
            _detach()
            _run(Supervisor(settings, owner))
    except BlockingIOError:
        log.error("another supervisor runs this stack", data_dir=str(settings.data_dir))
        return 1
    return 0


def _detach() -> None:
    """Go on as a process of its own, with the lock; the one that was started ends, and its parent reaps it."""
    if os.fork() != 0:
        os._exit(0)


def _run(supervisor: Supervisor) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A SimpleQueue may be filled from a signal handler; the loop reads it.
        signal.signal(number, lambda received, _: supervisor.signals.put(signal.Signals(received)))
    supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
