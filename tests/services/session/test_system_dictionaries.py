"""system.dictionaries: the figures of several workers as one row."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dovetail.services.commands.command_codec import Outcome
from dovetail.services.session.dictionaries.system_dictionaries import merged, reported, source_text, table_of
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateDictionary

ONE = {
    "status": "LOADED",
    "query_count": 300,
    "hit_rate": 1.0,
    "found_rate": 0.5,
    "hot_hits": 300,
    "loading_start_time": 1_000,
    "last_successful_update_time": 1_000,
    "loading_duration": 0.5,
    "last_exception": "",
    "load_factor": 0.2,
}
TWO = {
    "status": "FAILED",
    "query_count": 100,
    "hit_rate": 0.2,
    "found_rate": 0.5,
    "hot_hits": 20,
    "loading_start_time": 2_000,
    "last_successful_update_time": None,
    "loading_duration": 0.0,
    "last_exception": "the source does not answer",
    "load_factor": 0.4,
}


def test_counts_add_up_and_shares_are_weighed() -> None:
    line = merged([ONE, TWO])
    assert (line["query_count"], line["hot_hits"]) == (400, 320)
    assert line["hit_rate"] == pytest.approx(0.8)
    assert line["found_rate"] == pytest.approx(0.5)
    assert line["load_factor"] == pytest.approx(0.4)


def test_the_worst_status_and_the_last_times_stand() -> None:
    line = merged([ONE, TWO])
    assert (line["status"], line["last_exception"]) == ("FAILED", "the source does not answer")
    assert (line["loading_start_time"], line["last_successful_update_time"]) == (2_000, 1_000)
    assert line["loading_duration"] == pytest.approx(0.5)


def test_times_are_those_that_workers_report_in_milliseconds() -> None:
    line = table_of([merged([ONE, TWO])]).to_pylist()[0]
    assert line["loading_start_time"] == datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    assert line["last_successful_update_time"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert table_of([merged([])]).to_pylist()[0]["loading_start_time"] is None


def test_what_no_worker_has_open_is_not_loaded() -> None:
    line = merged([])
    assert (line["status"], line["query_count"], line["hit_rate"]) == ("NOT_LOADED", 0, 0.0)


def test_a_worker_that_failed_reports_nothing() -> None:
    assert list(reported(Outcome.failed("no"))) == []
    assert list(reported(Outcome(True, {"dictionaries": [ONE]}))) == [ONE]


def test_the_source_is_shown_without_user_and_password() -> None:
    made = parse_one(
        "CREATE DICTIONARY d (k int, v int) PRIMARY KEY k "
        "SOURCE(MYSQL(HOST 'db' PORT 3306 USER 'u' PASSWORD 'hunter2' DB 'shop' TABLE 't')) LAYOUT(DIRECT())"
    )
    assert isinstance(made, CreateDictionary)
    assert source_text(made) == "mysql db:3306 shop.t"
