"""How the supervisor starts processes: programs of others are executed, Python is forked from one interpreter."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from dovetail.runtime.packages import PACKAGE_ROOT
from dovetail.runtime.processes import interpreters
from dovetail.runtime.processes.forked import Request
from dovetail.runtime.processes.own_fork_server import ForkServer
from dovetail.services.stack.component import Component, Launch
from dovetail.services.stack.processes import RUN_MARK

_COMMANDS = "dovetail.services.cli.forked.preloaded"


class Started(Protocol):
    """A process that was started here. It leads a session of its own, and goes on when this process has ended."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """The exit code, once it has ended."""


class Starter:
    """Runner, worker and server import much the same, for seconds, into a hundred MB each: an interpreter that has
    imported what all of them need is copied for each. Commands of the user are copies of it as well.

    environment   of that interpreter: what is read of it at an import
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._forks: ForkServer | None = None
        self._announced: int | None = None

    def expect(self, components: Sequence[Component]) -> None:
        """Import what these need, while others start."""
        modules = [f"{component.module}.__main__" for component in components if component.module]
        if self._forks is None and modules:
            self._forks = ForkServer([*modules, _COMMANDS], self._environment)
            self._announce(self._forks)

    def is_ready_for(self, component: Component) -> bool:
        return component.module is None or self._forks is None or self._forks.is_ready

    def start(self, launch: Launch, environment: Mapping[str, str], log: Path) -> Started:
        """Raises OSError."""
        with log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
            if self._forks is not None and launch.module is not None:
                request = Request(
                    f"{launch.module}.__main__",
                    (),
                    str(PACKAGE_ROOT),
                    environment,
                    detached=True,
                    shown=(RUN_MARK,),
                )
                forked = self._forks.fork(request, (nothing.fileno(), output.fileno(), output.fileno()))
                self._announce(self._forks)
                return forked
            return subprocess.Popen(
                launch.argv,
                stdin=nothing,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=PACKAGE_ROOT,
                env=environment,
            )

    def _announce(self, forks: ForkServer) -> None:
        """Let commands find the interpreter; also the one that has taken the place of one that was killed."""
        if self._announced != forks.pid:
            self._withdraw()
            self._announced = forks.pid
            interpreters.announce(forks.pid, forks.address)

    def _withdraw(self) -> None:
        if self._announced is not None:
            interpreters.withdraw(self._announced)

    def close(self) -> None:
        self._withdraw()
        if self._forks is not None:
            with suppress(OSError):
                self._forks.close()
