"""``docker-compose.yml`` is well formed, and keeps the stack's rules: fixed tags, health, loopback, no passwords."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.util import find_spec
from typing import Any

import jsonschema
import pytest
import yaml

from dovetail.runtime.settings import Settings
from dovetail.services.jars import locked_jars
from tests.paths import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SCHEMA = json.loads((ROOT / "tests" / "compose.schema.json").read_text())
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
SERVICES: dict[str, Any] = COMPOSE["services"]
[BUILT] = [service for service in SERVICES.values() if "build" in service]
"""One alone: Compose builds for each that says how, at once, and of a new image all but the first would fail."""
OWN = [name for name in SERVICES if SERVICES[name]["image"] == BUILT["image"]]
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
        (("init",), False),
        (("security_opt",), []),
        (("mem_limit",), "much"),
        (("logging", "driver"), "none"),
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
    monitoring = {name for name in SERVICES if SERVICES[name].get("profiles") == ["monitoring"]}
    assert monitoring == {"prometheus", "grafana"}
    assert set(SERVICES) - monitoring == {
        "kafka",
        "redis",
        "mysql",
        "clickhouse",
        "spark",
        "worker",
        "serve",
        "registry",
    }


@pytest.mark.parametrize("name", OWN)
def test_what_a_container_of_dovetail_runs_exists(name: str) -> None:
    python, option, module = SERVICES[name]["command"]
    assert (python, option) == ("python", "-m")
    assert find_spec(module) is not None


def test_one_service_builds_the_image_that_the_others_take() -> None:
    assert OWN == ["spark", "worker", "serve", "registry"]
    policies = {name: SERVICES[name].get("pull_policy") for name in SERVICES}
    assert {name for name in SERVICES if policies[name] == "never"} == set(OWN) - {"spark"}
    assert "build" in SERVICES["spark"]
    assert policies["spark"] == "missing"


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_a_full_fixed_tag(name: str) -> None:
    tag = SERVICES[name]["image"].rsplit(":", 1)[1]
    assert tag not in MOVING_TAGS
    assert re.match(r"v?\d+\.\d+\.\d+", tag)


def test_kafka_is_the_version_of_the_local_stack() -> None:
    [broker] = [jar for jar in locked_jars() if jar.module == "kafka_2.13"]
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{broker.version}"


@pytest.mark.parametrize("name", SERVICES)
def test_dependencies_are_waited_for_until_they_are_healthy(name: str) -> None:
    for needed, condition in SERVICES[name].get("depends_on", {}).items():
        assert needed in SERVICES
        assert condition == {"condition": "service_healthy"}


@pytest.mark.parametrize("name", SERVICES)
def test_volumes_are_declared_and_files_are_there(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source = volume.split(":")[0]
        assert (ROOT / source).exists() if source.startswith("./") else source in COMPOSE["volumes"]


def test_the_registry_reaches_no_files_of_the_others() -> None:
    used = {name: {volume.split(":")[0] for volume in SERVICES[name].get("volumes", [])} for name in SERVICES}
    assert used["registry"] == {"registry"}
    assert "registry" not in set().union(*(used[name] for name in SERVICES if name != "registry"))


def test_what_other_containers_reach_has_users_and_no_login_of_root() -> None:
    """A port that is bound to loopback on the host is open to all of the network inside."""
    unprotected = {name for name in SERVICES if "DOVETAIL_SERVE_UNPROTECTED" in SERVICES[name].get("environment", {})}
    assert unprotected == {"serve"}
    assert SERVICES["serve"]["environment"]["DOVETAIL_SERVE_FIRST_ADMIN"]
    assert SERVICES["mysql"]["environment"]["MYSQL_ROOT_HOST"] == "localhost"


def test_prometheus_asks_by_names_that_are_known() -> None:
    targets = re.findall(r'targets: \["(\w+):', (ROOT / "docker" / "monitoring" / "prometheus.yml").read_text())
    settings = {"spark": "DOVETAIL_RUNNER_HOSTS", "worker": "DOVETAIL_WORKER_HOSTS"}
    assert {name: SERVICES[name]["environment"][settings[name]] for name in targets} == {
        name: name for name in settings
    }


def test_no_password_stands_in_the_file() -> None:
    variables = {
        (name, key): value for name in SERVICES for key, value in SERVICES[name].get("environment", {}).items()
    }
    secret = {place: value for place, value in variables.items() if "PASSWORD" in place[1]}
    assert secret
    assert "DOVETAIL_CATALOG_PASSWORD" in {key for _, key in secret}
    assert [place for place, value in secret.items() if not re.fullmatch(r"\$\{DOVETAIL_\w+:-\w+\}", value)] == []
    # In an address it would have to be escaped, and nobody does that to a variable.
    assert [value for value in variables.values() if re.search(r"://[^/@]*:[^/@]*@", value)] == []


@pytest.mark.parametrize("name", OWN)
def test_the_settings_it_gives_exist(name: str) -> None:
    known = {f"DOVETAIL_{name.upper()}" for name in Settings.model_fields}
    assert set(SERVICES[name]["environment"]) <= known


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("needed", ["init", "mem_limit", "pids_limit", "stop_grace_period", "logging", "security_opt"])
def test_what_holds_for_every_container_is_asked_of_each(name: str, needed: str) -> None:
    broken = json.loads(json.dumps(COMPOSE))
    del broken["services"][name][needed]
    with pytest.raises(jsonschema.ValidationError, match=needed):
        jsonschema.Draft202012Validator(SCHEMA).validate(broken)


@pytest.mark.parametrize("name", SERVICES)
def test_a_health_check_starts_no_jvm_and_shows_no_password(name: str) -> None:
    words = " ".join(SERVICES[name]["healthcheck"]["test"])
    assert not re.search(r"java|kafka-[\w-]+\.sh|--password", words)
    # Of a shell, each variable is one word.
    assert not re.search(r'(?<!")\$\$\w+', words)


@pytest.mark.parametrize("name", OWN)
def test_a_container_of_dovetail_has_no_rights(name: str) -> None:
    assert SERVICES[name]["cap_drop"] == ["ALL"]
    orders = [line.split() for line in DOCKERFILE.splitlines() if line and line[0].isupper()]
    assert [order[1] for order in orders if order[0] == "USER"] == ["dovetail"]


def test_the_health_that_is_asked_for_is_answered_where_it_is_asked() -> None:
    ports = {name: re.findall(r"127\.0\.0\.1:(\d+)/", str(SERVICES[name]["healthcheck"])) for name in SERVICES}
    fields = Settings.model_fields
    assert ports["spark"] == [str(fields["runner_port"].default)]
    for name in ("worker", "serve"):
        assert ports[name] == [SERVICES[name]["environment"][f"DOVETAIL_{name.upper()}_PORT"]]
    assert ports["registry"] == [SERVICES["registry"]["environment"]["DOVETAIL_SCHEMA_REGISTRY_PORT"]]


def locked(path: str) -> dict[str, str]:
    """name → version, of a lock with hashes."""
    text = (ROOT / path).read_text()
    assert "--hash=sha256:" in text
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", text, re.MULTILINE))


def canonical(requirement: str) -> str:
    return re.split(r"[=\[;<>]", requirement)[0].strip().lower().replace("_", "-")


def test_the_image_has_what_runs_and_no_tool_of_development() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runs, tools = locked("docker/requirements.lock"), declared["dependency-groups"]["dev"]
    assert "docker/requirements.lock" in DOCKERFILE
    assert runs.items() < locked("requirements.lock").items()
    assert set(map(canonical, declared["project"]["dependencies"])) <= runs.keys()
    built_with = set(map(canonical, declared["build-system"]["requires"]))
    assert built_with <= runs.keys()
    assert (set(map(canonical, tools)) - built_with) & runs.keys() == set()
