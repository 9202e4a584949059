"""What is killed, and how it is found."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

from dovetail.services.stack import Stack
from tests.servers import Server

Kill = Callable[[random.Random], bool]
"""Whether there was something to kill."""


@dataclass
class Victims:
    """The processes of a stack and of its source."""

    stack: Stack
    source: Server
    source_due_s: float = 0.0

    @property
    def kinds(self) -> Mapping[str, Kill]:
        """By name. All but one are kill -9, at any moment: in a start, in a batch, in the recovery from the last."""
        return {
            "runner": lambda _: self._component("spark"),
            "jvm": self._jvm,
            "python worker": self._python_worker,
            "broker": lambda _: self._component("kafka"),
            "broker, in order": lambda _: self._component("kafka", signal.SIGTERM),
            "redis": lambda _: self._component("redis"),
            "lookup worker": lambda _: self._component("worker"),
            "lookup child": self._lookup_child,
            "source": self._source,
        }

    def _component(self, name: str, number: signal.Signals = signal.SIGKILL) -> bool:
        pid = self._pid(name)
        return pid is not None and _signal(pid, number)

    def _pid(self, name: str) -> int | None:
        return next(line.pid for line in self.stack.status() if line.name == name)

    def _jvm(self, _chance: random.Random) -> bool:
        return any([_signal(one.pid) for one in self._below("spark") if _name(one) == "java"])  # noqa: C419 - all of them

    def _python_worker(self, chance: random.Random) -> bool:
        found = [one for one in self._below("spark") if _name(one) != "java"]
        return bool(found) and _signal(chance.choice(found).pid)

    def _lookup_child(self, chance: random.Random) -> bool:
        found = self._below("worker")
        return bool(found) and _signal(chance.choice(found).pid)

    def _below(self, name: str) -> list[psutil.Process]:
        pid = self._pid(name)
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(pid).children(recursive=True) if pid is not None else []
        return []

    def _source(self, chance: random.Random) -> bool:
        """It belongs to somebody else, who starts it again after a while."""
        if self.source.process is None:
            return False
        self.source.kill()
        self.source_due_s = time.monotonic() + chance.uniform(0.5, 6.0)
        return True

    def tend_source(self) -> None:
        """By the thread that has started it before: it would end with any other."""
        if self.source.process is None and time.monotonic() >= self.source_due_s:
            self.source.start()


def _name(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return str(process.name())
    return ""


def _signal(pid: int, number: signal.Signals = signal.SIGKILL) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
