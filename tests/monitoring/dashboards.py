"""What the dashboards and the alerts ask Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.servers.prometheus import MONITORING

DASHBOARDS = sorted((MONITORING / "dashboards").glob("*.json"))
SOURCE = "dovetail-prometheus"


def expressions() -> Iterator[tuple[Path, str]]:
    """Those of the panels, as Grafana would ask them of all queries, and of the variables."""
    for file in DASHBOARDS:
        board = json.loads(file.read_text())
        for variable in board["templating"]["list"]:
            yield file, re.fullmatch(r"label_values\((\w+), query\)", variable["query"])[1]  # type: ignore[index]
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield file, target["expr"].replace("$query", ".*").replace("$__rate_interval", "1m")


def alert_expressions() -> Iterator[str]:
    for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]


def metrics_of(expression: str) -> set[str]:
    """The metrics of Dovetail that an expression reads; of a pattern of names those that it stands for."""
    for pattern in re.findall(r'__name__=~"([^"]+)"', expression):
        head, options, tail = re.fullmatch(r"(\w+)\((\w+(?:\|\w+)*)\)(\w+)", pattern).groups()  # type: ignore[union-attr]
        expression += " ".join(f" {head}{option}{tail}" for option in options.split("|"))
        expression = expression.replace(pattern, "")
    return set(re.findall(r"\bdovetail_\w+", expression))
