"""Who is told of the health and the figures of a process."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import CollectorRegistry

from dovetail.runtime.health_server import HealthServer, HealthStatus, own_requests_only
from dovetail.runtime.processes.listener import listening
from dovetail.runtime.serving.foreign_requests import hosts_of

PATHS = ("/healthz", "/readyz", "/metrics", "/nothing")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a server that is bound to all addresses and called `spark`."""
    listener = listening("0.0.0.0", 0, "DOVETAIL_RUNNER_BIND")
    checked = own_requests_only(hosts_of("0.0.0.0", "spark"), "DOVETAIL_RUNNER_HOSTS")
    server = HealthServer(
        lambda: HealthStatus(True), lambda: HealthStatus(True), CollectorRegistry(), listener, checked
    )
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.close()


@pytest.mark.parametrize(
    "host", ["127.0.0.1:6067", "10.1.2.3:6067", "[fd00::7]:6067", "0.0.0.0", "localhost", "SPARK:6067"]
)
def test_probes_and_scrapers_ask_by_an_address_or_a_name_of_the_setting(address: str, host: str) -> None:
    answers = [httpx.get(f"{address}{path}", headers={"Host": host}).status_code for path in PATHS]
    assert answers == [200, 200, 200, 404]


@pytest.mark.parametrize(
    ("headers", "status", "where"),
    [
        ({"Host": "evil.example"}, 421, "Host"),
        ({"Host": "spark.evil.example:6067"}, 421, "Host"),
        ({"Host": "127.0.0.1.evil.example"}, 421, "Host"),
        ({"Host": "2130706433"}, 421, "Host"),
        ({"Origin": "http://evil.example"}, 403, "Origin"),
        ({"Origin": "null"}, 403, "Origin"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "Sec-Fetch-Site"),
        ({"Sec-Fetch-Site": "same-site"}, 403, "Sec-Fetch-Site"),
    ],
)
@pytest.mark.parametrize("path", PATHS)
def test_a_page_of_another_site_is_told_nothing(
    address: str, path: str, headers: dict[str, str], status: int, where: str
) -> None:
    response = httpx.get(f"{address}{path}", headers=headers)
    assert response.status_code == status
    error = response.json()["error"]
    assert error["where"] == f"header {where}"
    assert error["what"]
    assert ("DOVETAIL_RUNNER_HOSTS" in error["fix"]) is (where == "Host")
