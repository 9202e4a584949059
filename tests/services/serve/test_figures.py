"""What the service tells Prometheus: kinds, and names as Prometheus would have them."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.servers.prometheus import promtool
from tests.services.serve.world import World


def page(folder: Path) -> str:
    with World(folder).listening() as address:
        httpx.get(f"{address}/health")
        return httpx.get(f"{address}/metrics").text


def test_what_only_grows_is_a_counter(tmp_path: Path) -> None:
    given = page(tmp_path).splitlines()
    assert "# TYPE dovetail_serve_requests_total counter" in given
    assert "# TYPE dovetail_serve_behind_total counter" in given
    assert "dovetail_serve_behind_total 0.0" in given


@pytest.mark.services
def test_prometheus_finds_nothing_wrong_with_the_names(tmp_path: Path) -> None:
    promtool("check", "metrics", folder=tmp_path, given=page(tmp_path))
