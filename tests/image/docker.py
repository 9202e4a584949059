"""Docker with Compose: everything is as its user has it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from tests.image.compose_file import COMPOSE_FILE
from tests.image.engine import PROJECT, Engine, run
from tests.paths import ROOT


def docker_answers() -> bool:
    """Whether there is an engine, and Compose."""
    return all(_succeeds("docker", *words) for words in (("info",), ("compose", "version")))


class Docker(Engine):
    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(("docker",), variables)

    def build(self) -> None:
        self._compose("build", "--pull")

    def up(self) -> None:
        self._compose("up", "--detach", "--wait")

    def stop(self) -> None:
        self._compose("stop")

    def kill(self) -> None:
        self._compose("kill")

    def down(self) -> None:
        self._compose("down")

    def remove(self) -> None:
        self._compose("down", "--volumes")

    def container(self, service: str) -> str:
        return self._compose("ps", "--all", "--quiet", service).strip()

    def _compose(self, *words: str) -> str:
        command = ("docker", "compose", "--project-name", PROJECT, "--file", str(COMPOSE_FILE), *words)
        return run(*command, folder=ROOT, variables={**os.environ, **self.variables})


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
