"""What the test asks of an engine of containers, whose services are those of ``docker-compose.yml``."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.image.compose_file import Service, read_services

PROJECT = "dovetail-image-test"
KILLED = 137
"""The exit code of a container that did not end when it was told to."""


class EngineFailed(Exception):
    """A command of the engine failed; the message holds its end."""


@dataclass(frozen=True)
class Ending:
    """How a container has been, once it was stopped."""

    exit_code: int
    restarts: int


class Engine(ABC):
    """variables  what ``docker-compose.yml`` finds in its environment
    tool       the command that knows ``exec``, ``inspect`` and ``logs``
    """

    def __init__(self, tool: Sequence[str], variables: Mapping[str, str]) -> None:
        self.tool = tool
        self.variables = variables
        self.services: dict[str, Service] = read_services(variables)
        self.built = next(service for service in self.services.values() if "build" in service)

    @abstractmethod
    def build(self) -> None:
        """Build the image that Compose builds."""

    @abstractmethod
    def up(self) -> None:
        """Make and start all containers, and wait until each is healthy. Raises EngineFailed if one is not."""

    @abstractmethod
    def stop(self) -> None:
        """Tell all containers to end, and end after their period of grace those that did not."""

    @abstractmethod
    def kill(self) -> None:
        """End all containers at once, as a power cut does."""

    @abstractmethod
    def down(self) -> None:
        """Remove the containers and their network; volumes stay."""

    @abstractmethod
    def remove(self) -> None:
        """Remove all of it, volumes too."""

    @abstractmethod
    def container(self, service: str) -> str:
        """The name or the id of its container."""

    def is_own(self, service: str) -> bool:
        """Whether its image is the one that is built here."""
        return bool(self.services[service]["image"] == self.built["image"])

    def within(self, service: str, *command: str, text: str = "") -> str:
        """What ``command`` prints inside of the container of ``service``, which is handed ``text``."""
        return run(*self.tool, "exec", "--interactive", self.container(service), *command, text=text)

    def log(self, service: str) -> str:
        done = subprocess.run(
            [*self.tool, "logs", "--tail", "60", self.container(service)], capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    def ending(self, service: str) -> Ending:
        asked = "{{.State.ExitCode}} {{.RestartCount}}"
        exit_code, restarts = run(*self.tool, "inspect", "--format", asked, self.container(service)).split()
        return Ending(int(exit_code), int(restarts))


def run(*command: str, text: str = "", folder: Path | None = None, variables: Mapping[str, str] | None = None) -> str:
    """What a command prints. Raises EngineFailed if it fails."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=folder, env=variables)
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-3000:]
        raise EngineFailed(f"{' '.join(command)}: exit code {done.returncode}\n{said}")
    return done.stdout
