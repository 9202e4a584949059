"""Every process and every library in it writes the same kind of line."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest

from dovetail.runtime.logs.repeated_lines import FirstOfMany
from tests.paths import ROOT

WRITER = """
import logging, structlog
from dovetail.runtime.logs.process_log import configure_logs
configure_logs("INFO", "{form}")
logging.getLogger("dovetail.worker").warning("one of %s", "logging")
structlog.get_logger().warning("one of structlog", dictionary="d", rows=3)
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
    assert all(line["level"] == "warning" and line["timestamp"].endswith("Z") and line["logger"] for line in lines)
    assert (lines[1]["dictionary"], lines[1]["rows"]) == ("d", 3)
    assert sorted(lines[0]) == ["event", "level", "logger", "timestamp"]


_OF_A_QUERY = """
import logging, sys, structlog
from dovetail.runtime.logs.process_log import configure_logs
from dovetail.runtime.logs.query_logs import QueryLog, keep_query_logs
from dovetail.runtime.settings import read_settings
settings = read_settings({"data_dir": sys.argv[1], "log_format": "json"})
configure_logs(settings.log_level, settings.log_format)
log = logging.getLogger("dovetail.runner")
if sys.argv[2] == "one":
    keep_query_logs(settings, "a", lambda: 7)
    log.warning('query "a": of %s', "this")
    structlog.get_logger().warning("of a 100%s dictionary", rows=3)
else:
    keep_query_logs(settings)
    QueryLog(log, "a", lambda: 7).warning("of %s", "this", extra={"bucket": 2})
    QueryLog(log, "b").warning("of another")
    log.warning("of none")
try:
    1 / 0
except ZeroDivisionError:
    QueryLog(log, "a", lambda: -1).exception("a defect")
"""


@pytest.mark.parametrize("queries", ["one", "many"])
def test_json_lines_say_of_which_query_batch_and_bucket_they_are(tmp_path: Path, queries: str) -> None:
    """In the log of the process, and the same in that of the query."""
    written = subprocess.run(
        [sys.executable, "-c", _OF_A_QUERY, str(tmp_path), queries],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stderr.splitlines()
    lines = [orjson.loads(line) for line in written]
    logged = [(line["event"], line.get("query"), line.get("batch"), line.get("bucket")) for line in lines]
    assert (
        logged
        == {
            "one": [("of this", "a", 7, None), ("of a 100%s dictionary", "a", 7, None), ("a defect", "a", None, None)],
            "many": [
                ("of this", "a", 7, 2),
                ("of another", "b", None, None),
                ("of none", None, None, None),
                ("a defect", "a", None, None),
            ],
        }[queries]
    )
    assert "ZeroDivisionError" in lines[-1]["exception"]
    of_a = (tmp_path / "logs" / "queries" / "a.log").read_text().splitlines()
    assert [orjson.loads(line) for line in of_a] == [line for line in lines if line.get("query") == "a"]


@pytest.mark.parametrize("event", ["one of logging", "one of structlog"])
def test_text_lines_hold_the_event(event: str) -> None:
    assert sum(event in line for line in written("text")) == 1


_ASKING = """
import sys, httpx
from dovetail.runtime.logs.process_log import configure_logs
configure_logs(sys.argv[1], "text")
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


_WITHOUT_BROKER = """
import asyncio, contextlib, logging
from aiokafka.client import AIOKafkaClient
from dovetail.runtime.logs.process_log import configure_logs
configure_logs("INFO", "text")

async def tried(times):
    client = AIOKafkaClient(bootstrap_servers="127.0.0.1:1")
    for _ in range(times):
        with contextlib.suppress(Exception):
            await client.bootstrap()

asyncio.run(tried(50))
logging.getLogger("dovetail.worker").warning("what we say ourselves")
logging.getLogger("dovetail.worker").warning("what we say ourselves")
"""


def test_a_client_without_its_broker_does_not_fill_the_log() -> None:
    tried = subprocess.run(
        [sys.executable, "-c", _WITHOUT_BROKER], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = tried.stderr.splitlines()

    assert sum("aiokafka" in line and "Unable connect" in line for line in lines) == 1
    assert sum("what we say ourselves" in line for line in lines) == 2


def said(line: int, second: float, level: int = logging.ERROR, name: str = "aiokafka.cluster") -> logging.LogRecord:
    """A record as the library makes it at ``line`` of a file."""
    record = logging.LogRecord(name, level, "client.py", line, "node %s is away", (second,), None)
    record.created = second
    return record


def test_a_line_that_comes_again_and_again_is_written_once_a_minute() -> None:
    one = FirstOfMany("aiokafka")
    passed = [record.getMessage() for record in (said(7, float(second)) for second in range(130)) if one.filter(record)]

    assert passed == [
        "node 0.0 is away",
        "node 60.0 is away (and 59 lines like it that were left out)",
        "node 120.0 is away (and 59 lines like it that were left out)",
    ]


def test_a_place_that_was_silent_for_a_while_is_heard_at_once() -> None:
    one = FirstOfMany("aiokafka")
    passed = [record.getMessage() for record in (said(7, second) for second in (0.0, 90.0, 91.0)) if one.filter(record)]

    assert passed == ["node 0.0 is away", "node 90.0 is away"]


def test_other_places_other_libraries_and_lesser_lines_pass() -> None:
    one = FirstOfMany("aiokafka")
    records = [
        said(7, 0.0),
        said(8, 0.0),
        said(7, 0.0, level=logging.INFO),
        said(7, 0.0, name="dovetail.worker"),
        said(7, 0.0, name="aiokafkaesque"),
    ]

    assert all(one.filter(record) for record in records)
    assert not one.filter(said(7, 0.0))
