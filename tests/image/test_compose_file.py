"""The test of the image reads all that ``docker-compose.yml`` and the Dockerfile say, and passes over nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.image.base_image import release
from tests.image.compose_file import port_variables, read_services, seconds
from tests.image.container_options import container_options
from tests.image.scenario import AFTER_A_CUT, AFTER_AN_END, BEFORE, VIEWS
from tests.paths import ROOT

SERVICES = read_services({})
[BUILT] = [service["image"] for service in SERVICES.values() if "build" in service]
OWN = {name: service for name, service in SERVICES.items() if service["image"] == BUILT}
STAND_INS = Path(__file__).with_name("stand_ins")


@pytest.mark.parametrize("name", SERVICES)
def test_all_that_is_said_of_a_service_becomes_options_of_its_container(name: str) -> None:
    service = SERVICES[name]
    options = container_options(service)
    assert {f"--env={key}={value}" for key, value in service.get("environment", {}).items()} <= set(options)
    for word in ("--init", "--memory=", "--pids-limit=", "--security-opt=", "--stop-timeout=", "--restart="):
        assert len([option for option in options if option.startswith(word)]) == 1
    assert len([option for option in options if option.startswith("--volume=")]) == len(service.get("volumes", []))
    assert ("--cap-drop=ALL" in options) == (name in OWN)
    assert not any("${" in option for option in options)


def test_a_key_that_has_no_option_is_not_passed_over() -> None:
    with pytest.raises(KeyError, match="read_only"):
        container_options({**SERVICES["serve"], "read_only": True})


def test_variables_are_filled_in_as_compose_does() -> None:
    given = read_services({"DOVETAIL_MYSQL_PASSWORD": "p$$x", "DOVETAIL_KAFKA_PORT": ""})
    assert SERVICES["mysql"]["environment"]["MYSQL_PASSWORD"] == "dovetail"
    assert given["mysql"]["environment"]["MYSQL_PASSWORD"] == "p$$x"
    assert given["serve"]["environment"]["DOVETAIL_CATALOG_PASSWORD"] == "p$$x"
    assert given["kafka"]["ports"] == ["127.0.0.1:9092:9092"]
    assert '"$MYSQL_PASSWORD"' in given["mysql"]["healthcheck"]["test"][1]


def test_a_service_comes_behind_those_that_it_depends_on() -> None:
    names = list(SERVICES)
    for name, service in SERVICES.items():
        assert all(names.index(needed) < names.index(name) for needed in service.get("depends_on", {}))
    assert not SERVICES.keys() & {"prometheus", "grafana"}


def test_every_published_port_can_be_another_one() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    moved = read_services(dict.fromkeys(port_variables(), "1"))
    assert published
    assert all(port.startswith("127.0.0.1:1:") for service in moved.values() for port in service.get("ports", []))


@pytest.mark.parametrize(("duration", "expected"), [("90s", 90), ("1m30s", 90), ("500ms", 0.5), ("1h", 3600)])
def test_durations(duration: str, expected: float) -> None:
    assert seconds(duration) == expected


def test_every_image_but_the_one_that_is_built_has_a_stand_in() -> None:
    stages = re.findall(r"^FROM \S+ AS (\w+)$", (STAND_INS / "Dockerfile").read_text(), re.MULTILINE)
    assert set(stages) - {"dovetail", "servers"} == SERVICES.keys() - OWN.keys()
    assert release() == "bookworm"


def test_a_volume_of_dovetail_is_there_in_the_image_as_its_users_own() -> None:
    """An empty volume takes the owner of the folder that it is mounted on; root's could not be written to."""
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    [made] = re.findall(r"install --directory --owner dovetail --group dovetail (.*)", dockerfile)
    mounted = {volume.split(":")[1] for service in OWN.values() for volume in service["volumes"]}
    assert mounted <= set(made.split())


def test_what_the_views_come_to_holds_no_row_fewer_than_zero_times() -> None:
    for view in VIEWS:
        kept: list[tuple[object, ...]] = []
        for step in (*BEFORE, *AFTER_AN_END, *AFTER_A_CUT):
            for *row, delta in step.changes.get(view, []):
                kept.append(tuple(row)) if delta == 1 else kept.remove(tuple(row))
        assert kept
