"""``docker-compose.yml`` is well formed, and keeps the stack's rules: fixed tags, health, loopback, no passwords."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from typing import Any

import jsonschema
import pytest
import yaml

from runtime.settings import Settings
from services.jars import locked_jars
from tests.paths import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SCHEMA = json.loads((ROOT / "tests" / "compose.schema.json").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
MOVING_TAGS = {"latest", "stable", "main", "edge", "lts"}


def test_it_fits_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(COMPOSE)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("restart",), "sometimes"),
        (("ports",), ["9092:9092"]),
        (("image",), "apache/kafka"),
        (("healthcheck", "interval"), "5"),
        (("privileged",), True),
    ],
)
def test_the_schema_refuses_what_breaks_a_rule(path: tuple[str, ...], value: object) -> None:
    broken = json.loads(json.dumps(COMPOSE))
    target = broken["services"]["kafka"]
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(broken)


def test_it_holds_the_servers_of_the_stack() -> None:
    assert set(SERVICES) == {"kafka", "redis", "mysql", "clickhouse", "spark", "worker"}


@pytest.mark.parametrize("name", [name for name in SERVICES if "build" in SERVICES[name]])
def test_what_a_container_of_dovetail_runs_exists(name: str) -> None:
    python, option, module = SERVICES[name]["command"]
    assert (python, option) == ("python", "-m")
    assert find_spec(module) is not None


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_a_full_fixed_tag(name: str) -> None:
    tag = SERVICES[name]["image"].rsplit(":", 1)[1]
    assert tag not in MOVING_TAGS
    assert re.match(r"\d+\.\d+\.\d+", tag)


def test_kafka_is_the_version_of_the_local_stack() -> None:
    [broker] = [jar for jar in locked_jars() if jar.module == "kafka_2.13"]
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{broker.version}"


@pytest.mark.parametrize("name", SERVICES)
def test_dependencies_are_waited_for_until_they_are_healthy(name: str) -> None:
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        assert needed in SERVICES
        assert how == {"condition": "service_healthy"}


@pytest.mark.parametrize("name", SERVICES)
def test_volumes_are_named_and_declared(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        assert volume.split(":")[0] in COMPOSE["volumes"]


def test_no_password_stands_in_the_file() -> None:
    variables = {
        (name, key): value for name in SERVICES for key, value in SERVICES[name].get("environment", {}).items()
    }
    secret = {place: value for place, value in variables.items() if "PASSWORD" in place[1]}
    assert secret
    assert [place for place, value in secret.items() if not re.fullmatch(r"\$\{DOVETAIL_\w+:-\w+\}", value)] == []
    addresses = [value for value in variables.values() if re.search(r"://[^/@]*:[^/@]*@", value)]
    assert all(re.search(r":\$\{DOVETAIL_\w+:-\w+\}@", address) for address in addresses)


@pytest.mark.parametrize("name", [name for name in SERVICES if "build" in SERVICES[name]])
def test_the_settings_it_gives_exist(name: str) -> None:
    of_the_process = {"DOVETAIL_READY_FILE"}
    known = {f"DOVETAIL_{name.upper()}" for name in Settings.model_fields} | of_the_process
    assert set(SERVICES[name]["environment"]) <= known
