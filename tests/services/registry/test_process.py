"""The process of the registry."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.servers.schema_registry import schema_registry


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_well_when_it_is_told_to(tmp_path: Path, number: signal.Signals) -> None:
    with schema_registry(tmp_path) as server:
        assert server.process is not None
        server.process.send_signal(number)
        assert server.process.wait(20) == 0
    assert "stopped" in (tmp_path / "server.log").read_text()
