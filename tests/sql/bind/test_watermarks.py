"""What the settings of a query say of time: lengths of time, watermarks of tables, the topic of late rows."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.query_settings import checked
from tests.sql.world import World

DDL = (
    "CREATE TABLE a (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 SECONDS') APPEND ONLY",
    "CREATE TABLE b (k INT, at TIMESTAMP, WATERMARK FOR at AS at) APPEND ONLY",
)
QUERY = "SELECT a.k AS k, b.at AS at FROM a JOIN b ON a.k = b.k AND a.at BETWEEN b.at AND b.at + INTERVAL '1 MINUTE'"


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("1d", 86_400_000), (7, 7_000), ("0", 0)],
)
def test_a_length_of_time(text: str | int, ms: int) -> None:
    assert checked({"idle_timeout": text}).duration_ms("idle_timeout") == ms


def test_one_that_was_not_given_is_the_default() -> None:
    assert checked({}).duration_ms("idle_timeout") is None
    assert checked({}).duration_ms("max_future") == 86_400_000


@pytest.mark.parametrize("text", ["soon", "-5s", "5 w", "1.5", ""])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="max_future cannot be"):
        checked({"max_future": text})


def test_over_whole_numbers_a_distance_is_a_number() -> None:
    assert checked({"watermark_delay": 7}).distance("watermark_delay", whole=True) == 7
    assert checked({"watermark_delay": 7}).distance("watermark_delay", whole=False) == 7_000
    assert checked({}).distance("watermark_delay", whole=True) is None
    with pytest.raises(SqlError, match="watermark_delay cannot be '7s'"):
        checked({"watermark_delay": "7s"}).distance("watermark_delay", whole=True)


def test_the_settings_reach_the_watermarks_of_tables() -> None:
    dataflow = World.of(*DDL).plan(QUERY, idle_timeout="30s", max_future="2h").dataflow

    assert [scan.watermark for scan in dataflow.scans] == [
        Watermark("at", 5_000, idle_ms=30_000, max_future_ms=7_200_000),
        Watermark("at", 0, idle_ms=30_000, max_future_ms=7_200_000),
    ]
    assert [scan.name for scan in dataflow.scans] == ["a", "b"]


@pytest.mark.parametrize("topic", ["a", "q"])
def test_late_rows_go_to_a_topic_of_their_own(topic: str) -> None:
    world = World.of(*DDL)

    assert world.plan(QUERY, late_topic="late").settings.text("late_topic") == "late"
    with pytest.raises(SqlError, match=f"late_topic = '{topic}' is a topic that the query reads or writes"):
        world.plan(QUERY, late_topic=topic)


@pytest.mark.parametrize("kind", ["string", "bool", "float64", "decimal(10, 2)", "array(int)", "map(string, int)"])
def test_no_clock_is_made_of_what_is_no_time(kind: str) -> None:
    world = World.of(f"CREATE STREAM s (k {kind}, at datetime64(3))")
    groups = "GROUP BY k, window_start EMIT AFTER WINDOW CLOSE WITH DELAY 2s"
    (scan,) = world.plan(f"SELECT k, count() AS n FROM tumble(s, at, 5s) {groups}").dataflow.scans
    assert scan.watermark is not None
    assert scan.watermark.column == "at"
