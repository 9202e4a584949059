"""The files by which commands and the supervisor know of each other.

``stack.json``    which processes the supervisor runs, written by it alone and replaced as a whole
``stack.wanted``  what a ``dovetail up`` wants to run, and in which environment; until the supervisor has taken it
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from dovetail.services.stack.processes import ProcessIdentity


class Phase(StrEnum):
    """The life of a component: waiting -> starting -> ready; ``restarting`` when it has died and is about to be started
    again, ``exited`` when it is not; ``stopping`` when the stack is going down, ``stopped`` when nothing runs it.
    """

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    EXITED = "exited"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ChildState:
    """One component as the supervisor sees it; ``restarts`` counts those since it was asked for."""

    name: str
    phase: Phase = Phase.WAITING
    process: ProcessIdentity | None = None
    endpoint: str = ""
    exit_code: int | None = None
    reason: str = ""
    restarts: int = 0


@dataclass(frozen=True)
class StackState:
    """One run of the stack; ``request`` is the last one that the supervisor has read."""

    run_id: str
    supervisor: ProcessIdentity
    children: tuple[ChildState, ...] = ()
    request: str = ""

    def child(self, name: str) -> ChildState:
        return next((child for child in self.children if child.name == name), ChildState(name, Phase.STOPPED))

    def with_child(self, child: ChildState) -> StackState:
        others = tuple(child if child.name == other.name else other for other in self.children)
        known = any(other.name == child.name for other in self.children)
        return replace(self, children=others if known else (*others, child))


@dataclass(frozen=True)
class Wanted:
    """``request`` tells one ``dovetail up`` from another."""

    request: str
    components: Sequence[str]
    environment: Mapping[str, str]

    def write(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def taken(path: Path) -> Wanted | None:
        """None where nobody wants anything. It is not left there: passwords may stand in it."""
        try:
            text = path.read_text()
        except FileNotFoundError:
            return None
        path.unlink()
        return Wanted(**json.loads(text))


def write_state(path: Path, state: StackState) -> None:
    """A reader sees the old state or the new one, never a part."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(state), indent=2))
    partial.replace(path)


def read_state(path: Path) -> StackState | None:
    """The state last written, or None when there is none, or none that can be read: after a loss of power nothing runs
    that it would tell of.
    """
    try:
        document = json.loads(path.read_text())
        children = tuple(_child(child) for child in document["children"])
        return StackState(document["run_id"], ProcessIdentity(**document["supervisor"]), children, document["request"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _child(document: dict[str, Any]) -> ChildState:
    process = document.pop("process")
    phase = Phase(document.pop("phase"))
    return ChildState(**document, phase=phase, process=None if process is None else ProcessIdentity(**process))
