"""The log of a query: its lines alone, with name, batch and time."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.runtime.logs.line_members import OfQuery
from dovetail.runtime.logs.log_files import LogLimits
from dovetail.runtime.logs.query_logs import BatchTotals, QueryLog, QueryLogs, log_of
from tests.bad_disks import filled, small_disk

LIMITS = LogLimits(max_bytes=100_000, files=2)
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    logger = logging.getLogger("dovetail.test_query_logs")
    logger.setLevel("INFO")
    yield logger
    for handler in list(logger.handlers):
        logger.removeHandler(handler)


def lines(folder: Path, query: str) -> list[str]:
    return log_of(folder, query).read_text().splitlines()


def without_time(line: str) -> str:
    return line.partition(" ")[2]


def test_a_line_goes_to_the_log_of_its_query_alone(log: logging.Logger, tmp_path: Path) -> None:
    log.addHandler(QueryLogs(tmp_path, LIMITS, "text"))
    QueryLog(log, "a", lambda: 7).warning("late rows, left out: %s", "3 of orders")
    QueryLog(log, "b/ä %s").info("starting")
    QueryLog(log, "b/ä %s", lambda: -1).info("running")
    log.warning("of no query")
    assert [without_time(line) for line in lines(tmp_path, "a")] == [
        "WARNING a batch 7: late rows, left out: 3 of orders"
    ]
    assert [without_time(line) for line in lines(tmp_path, "b/ä %s")] == [
        "INFO b/ä %s batch -: starting",
        "INFO b/ä %s batch -: running",
    ]
    assert len(list(tmp_path.iterdir())) == 2


def test_all_lines_of_a_process_of_one_query_are_its(log: logging.Logger, tmp_path: Path) -> None:
    log.addHandler(QueryLogs(tmp_path, LIMITS, "text"))
    log.handlers[-1].addFilter(OfQuery("a", lambda: 2))
    log.warning('query "a", orders[0]: the record at 5 is a dead letter')
    try:
        raise ValueError("wrong")
    except ValueError:
        log.exception("a defect")
    first, second, *rest = lines(tmp_path, "a")
    assert without_time(first) == "WARNING a batch 2: orders[0]: the record at 5 is a dead letter"
    assert without_time(second) == "ERROR a batch 2: a defect"
    assert rest[-1] == "ValueError: wrong"


def test_json_lines_have_the_same_members(log: logging.Logger, tmp_path: Path) -> None:
    log.addHandler(QueryLogs(tmp_path, LIMITS, "json"))
    QueryLog(log, "a", lambda: 7).info("starting")
    (line,) = map(json.loads, lines(tmp_path, "a"))
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "starting", "level": "info", "logger": log.name, "query": "a", "batch": 7}


def test_a_line_of_one_bucket_says_so(log: logging.Logger, tmp_path: Path) -> None:
    log.addHandler(QueryLogs(tmp_path, LIMITS, "text"))
    QueryLog(log, "a", lambda: 7).warning("skewed", extra={"bucket": 3})
    assert [without_time(line) for line in lines(tmp_path, "a")] == ["WARNING a batch 7 bucket 3: skewed"]


def test_the_log_of_the_process_says_whose_line_it_is(log: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", log.name):
        QueryLog(log, "a").info("%d rows", 3)
    assert caplog.messages == ['query "a": 3 rows']


def test_batches_are_told_together_every_so_often(log: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    batches = BatchTotals(QueryLog(log, "a"))
    with caplog.at_level("INFO", log.name):
        for now_s in (0.0, 1.0, 2.0, 11.0):
            batches.note(10, 4, 120, now_s)
    assert caplog.messages == [
        'query "a": 10 records read, 4 written; the last batch took 120 ms',
        'query "a": 30 records read, 12 written; the last batch took 120 ms',
    ]


@pytest.mark.services
def test_a_full_disk_under_it_ends_nobody(log: logging.Logger, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        log.addHandler(QueryLogs(disk, LIMITS, "text"))
        with filled(disk):
            QueryLog(log, "a").info("starting %s", "x" * 10_000)
        QueryLog(log, "a").info("running")
        assert without_time(lines(disk, "a")[-1]) == "INFO a batch -: running"
