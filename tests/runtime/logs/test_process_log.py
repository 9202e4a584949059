"""Every process and every library in it writes the same kind of line."""

from __future__ import annotations

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
import pytest

from tests.paths import ROOT

WRITER = """
import logging, structlog
from runtime.logs.process_log import configure_logs
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


_ASKING = """
import sys, httpx
from runtime.logs.process_log import configure_logs
configure_logs(sys.argv[1], "console")
httpx.get(sys.argv[2], headers={"Authorization": "Bearer s3cret"})
"""


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_no_line_of_a_library_has_an_address_with_its_secrets(level: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        address = f"http://user:s3cret@127.0.0.1:{server.server_port}/rows?key=s3cret"
        lines = subprocess.run(
            [sys.executable, "-c", _ASKING, level, address], cwd=ROOT, capture_output=True, text=True, check=True
        )
        server.shutdown()
        serving.join()
    assert "s3cret" not in lines.stdout + lines.stderr
