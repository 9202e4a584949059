"""Where a pack begins, and where a member goes on that leaves it."""

from __future__ import annotations

from dovetail.spark_jobs.packing.composition import as_logged, earliest, reached, read_together
from dovetail.spark_jobs.source.idle import idle_times
from dovetail.spark_jobs.state.checkpoint import parsed_offsets
from tests.spark.flows import orders_clicks, orders_near_clicks


def test_it_begins_where_the_furthest_behind_has_read() -> None:
    positions = [
        '{"orders": {"0": 7, "1": 3}, "#idle": {"orders/0": 500}}',
        '{"orders": {"0": 5, "1": 9}, "users": {"0": 2}}',
        '{"users": {"0": 4, "1": 6}}',
    ]
    # The second partition of users is read from its beginning: one of them does not know it yet.
    assert parsed_offsets(earliest(positions)) == {"orders": {0: 5, 1: 3}, "users": {0: 2}}


def test_a_member_has_read_what_it_had_before_and_what_the_pack_has() -> None:
    end = {"orders": {0: 6, 1: 20, 2: 1}, "others": {0: 5}}
    assert reached('{"orders": {"0": 7, "1": 3}}', end, ["orders", "users"]) == {
        "orders": {0: 7, 1: 20, 2: 1},
        "users": {},
    }


def test_what_is_written_is_read() -> None:
    offsets = {"orders": {0: 6, 11: 20}}
    assert parsed_offsets(as_logged(offsets)) == offsets


def test_its_source_reads_each_topic_once_and_knows_every_silence() -> None:
    together = read_together(
        [orders_near_clicks("a", "b", 500), orders_near_clicks("b", "c", 900), orders_clicks("a", "d")]
    )
    assert together.topics == ["a", "b", "c", "d"]
    assert idle_times(together) == {"a": (500,), "b": (500, 900), "c": (900,)}
