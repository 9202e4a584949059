"""A Prometheus over the files of docker/monitoring, and what promtool says of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from dovetail.services.stack.free_ports import choose_ports
from tests.paths import ROOT
from tests.servers.process import Server, program

MONITORING = ROOT / "docker" / "monitoring"
_PACKAGE = "prometheus"


@contextmanager
def prometheus(folder: Path, targets: Mapping[str, str]) -> Iterator[Server]:
    """One that scrapes ``targets``, address by job, every second; its rules are those of MONITORING."""
    folder.mkdir(parents=True, exist_ok=True)
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(MONITORING / name) for name in config["rule_files"]]
    for job in config["scrape_configs"]:
        job["static_configs"] = [{"targets": [targets[job["job_name"]]]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    (port,) = choose_ports(0)
    argv = [
        program("prometheus", package=_PACKAGE),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    server = Server("prometheus", argv, folder, port, "", answers=_answers)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def instant_query(server: Server, expression: str) -> list[dict[str, Any]]:
    """The samples of an expression now. Raises httpx.HTTPStatusError for one that Prometheus refuses."""
    answer = httpx.get(f"http://127.0.0.1:{server.port}/api/v1/query", params={"query": expression})
    answer.raise_for_status()
    samples: list[dict[str, Any]] = answer.json()["data"]["result"]
    return samples


def promtool(*arguments: str, folder: Path, given: str = "") -> str:
    """What it says of ``given``, its standard input, or of files in ``folder``; fails where something is wrong."""
    argv = [program("promtool", package=_PACKAGE), *arguments]
    done = subprocess.run(argv, cwd=folder, input=given, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _answers(server: Server) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{server.port}/-/ready").is_success
    except httpx.TransportError:
        return False
