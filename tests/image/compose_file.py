"""``docker-compose.yml``, read as an engine of Compose reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Any

import yaml

from tests.paths import ROOT

COMPOSE_FILE = ROOT / "docker-compose.yml"
Service = Mapping[str, Any]
_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\})")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_services(variables: Mapping[str, str]) -> dict[str, Service]:
    """The services that start without a profile, each behind those that it depends on.

    ``${NAME:-default}`` is filled in from ``variables``, and ``$$`` is one dollar.
    """
    services = _filled_in(yaml.safe_load(COMPOSE_FILE.read_text())["services"], variables)
    started = {name: service for name, service in services.items() if "profiles" not in service}
    order = TopologicalSorter({name: service.get("depends_on", {}) for name, service in started.items()})
    return {name: started[name] for name in order.static_order()}


def port_variables() -> list[str]:
    """The variables that say at which port of the host a container is published."""
    return re.findall(r"127\.0\.0\.1:\$\{(\w+):-\d+\}:", COMPOSE_FILE.read_text())


def seconds(duration: str) -> float:
    """``1m30s`` is 90."""
    return sum(float(count) * _SECONDS[unit] for count, unit in re.findall(r"(\d+)(ms|s|m|h)", duration))


def _filled_in(part: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(part, dict):
        return {key: _filled_in(value, variables) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled_in(value, variables) for value in part]
    if not isinstance(part, str):
        return part
    return _VARIABLE.sub(lambda found: _value(found, variables), part)


def _value(found: re.Match[str], variables: Mapping[str, str]) -> str:
    name, default = found["name"], found["default"]
    if name is None:
        return "$"
    # As Compose has it: ``:-`` also stands in for an empty value.
    return variables.get(name) or default or ""
