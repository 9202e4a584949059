"""From a service of ``docker-compose.yml`` to the options of ``podman run``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.image.compose_file import Service, seconds
from tests.image.engine import PROJECT
from tests.paths import ROOT


def container_options(service: Service) -> list[str]:
    """Raises KeyError for a key of the service that has no line below: none is passed over in silence."""
    return [option for key, value in service.items() for option in _OPTIONS[key](value)]


def _elsewhere(value: object) -> list[str]:
    return []


def _volume(volume: str) -> str:
    source, rest = volume.split(":", 1)
    return f"--volume={ROOT / source}:{rest}" if source.startswith("./") else f"--volume={PROJECT}-{volume}"


_OPTIONS: dict[str, Callable[[Any], list[str]]] = {
    "image": _elsewhere,
    "build": _elsewhere,
    "command": _elsewhere,
    # None is pulled: they are all on this machine.
    "pull_policy": _elsewhere,
    # What waits for health asks for it itself: Podman leaves the intervals of a check to systemd.
    "depends_on": _elsewhere,
    "healthcheck": _elsewhere,
    "init": lambda wanted: ["--init"] if wanted else [],
    "restart": lambda policy: [f"--restart={policy}"],
    "security_opt": lambda options: [f"--security-opt={option.replace(':', '=')}" for option in options],
    "cap_drop": lambda capabilities: [f"--cap-drop={capability}" for capability in capabilities],
    "pids_limit": lambda count: [f"--pids-limit={count}"],
    "mem_limit": lambda size: [f"--memory={size}"],
    "stop_grace_period": lambda period: [f"--stop-timeout={seconds(period):.0f}"],
    # It keeps one file of a log, whatever max-file says.
    "logging": lambda log: [f"--log-driver={log['driver']}", f"--log-opt=max-size={log['options']['max-size']}"],
    "environment": lambda variables: [f"--env={name}={value}" for name, value in variables.items()],
    "ports": lambda ports: [f"--publish={port}" for port in ports],
    "volumes": lambda volumes: [_volume(volume) for volume in volumes],
}
