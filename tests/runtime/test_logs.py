"""Every process and every library in it writes the same kind of line."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pytest

from tests.paths import ROOT

WRITER = """
import logging, structlog
from runtime.logs import configure_logs
configure_logs("INFO", "{form}")
logging.getLogger("dovetail.worker").warning("one of %s", "logging")
structlog.get_logger().warning("one of structlog")
logging.getLogger("faust").info("of no use")
structlog.get_logger().debug("of no use")
"""


def written(form: str) -> list[str]:
    process = subprocess.run(
        [sys.executable, "-c", WRITER.format(form=form)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert process.stdout == ""
    return process.stderr.splitlines()


def test_json_lines_have_the_same_members_whoever_writes_them() -> None:
    lines = [orjson.loads(line) for line in written("json")]
    assert [line["event"] for line in lines] == ["one of logging", "one of structlog"]
    assert all(line["level"] == "warning" and line["timestamp"] for line in lines)


@pytest.mark.parametrize("event", ["one of logging", "one of structlog"])
def test_text_lines_hold_the_event(event: str) -> None:
    assert sum(event in line for line in written("console")) == 1
