"""What a component of the stack is: a command line, an address, and a question that tells whether it answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dovetail.runtime.settings import Settings


@dataclass(frozen=True)
class Launch:
    """How to start a component once: its command, its own environment, and where it will answer.

    module   what the command runs in this interpreter, if it does
    """

    argv: tuple[str, ...]
    endpoint: str
    environment: Mapping[str, str] = field(default_factory=dict)
    module: str | None = None

    @staticmethod
    def of_module(module: str, endpoint: str, environment: Mapping[str, str]) -> Launch:
        return Launch((sys.executable, "-m", module), endpoint, environment, module)


class Component(Protocol):
    """``prepare`` writes what the server needs on disk; ``answers`` asks it, briefly, whether it works."""

    @property
    def name(self) -> str: ...

    @property
    def module(self) -> str | None:
        """The Python that it is; None for the programs of others."""

    @property
    def after(self) -> tuple[str, ...]:
        """The components that must answer before this one is started, where they are started at all."""

    @property
    def beside(self) -> tuple[str, ...]:
        """Those whose address is enough for it to be started: it has much to do before it waits for them."""

    @property
    def reads_secrets(self) -> bool:
        """Whether it reads the variables that statements name as passwords."""

    def prepare(self, settings: Settings) -> Launch: ...

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool: ...

    def provided(self, settings: Settings) -> bool:
        """Whether the settings name a server outside of the stack, so that none is started."""

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        """The settings for components that start later, with this one's address in them."""
