"""A key of more rows than max_fan_out is said in the log: once for each side of a join, with the key."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.keyed import KeyedSpec
from dovetail.joins.operators.multiway import MultiwaySpec
from dovetail.joins.reference.rows import Record
from dovetail.runtime.logs.query_logs import QueryLog
from dovetail.spark_jobs.account.skew import SkewWatch
from dovetail.sql.query_settings import checked
from tests.joins.harness import LEFT, RIGHT, port
from tests.joins.hosted import Hosted, dataflow_of

JOIN = BidirectionalSpec(JoinKind.INNER, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND))
LOG = QueryLog(logging.getLogger("dovetail.tests.skew"), "v")


def rows(key: int | None, count: int, prefix: str = "") -> list[Record]:
    return [((key, f"{prefix}{n}", n), 1) for n in range(count)]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_heavy_key_is_warned_of_once_for_each_side(caplog: pytest.LogCaptureFixture) -> None:
    hosted, watch = Hosted(JOIN), SkewWatch(dataflow_of(JOIN), 3, LOG)

    hosted.on_batch(rows(7, 3), [])
    watch.note(hosted.query.activity)
    assert warnings(caplog) == []
    hosted.on_batch(rows(7, 1, "more"), rows(8, 2))
    watch.note(hosted.query.activity)
    hosted.on_batch(rows(7, 5, "still"), rows(8, 2, "more"))
    watch.note(hosted.query.activity)

    left, right = warnings(caplog)
    assert left == (
        'query "v": skewed key (l.k) = (7): 4 rows of the left side of a join, and each row of the other side'
        " that has it meets them all; max_fan_out = 3; SHOW STATE OF names the heaviest keys"
    )
    assert "skewed key (r.k) = (8): 4 rows of the right side" in right


def test_rows_that_meet_none_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    hosted, watch = Hosted(JOIN), SkewWatch(dataflow_of(JOIN), 3, LOG)
    hosted.on_batch(rows(None, 50), [])
    watch.note(hosted.query.activity)
    assert warnings(caplog) == []


def test_a_side_with_a_budget_is_told_of_when_a_key_has_as_many_rows_as_it_may(
    caplog: pytest.LogCaptureFixture,
) -> None:
    left, right = (replace(one, max_rows_per_key=3) for one in (JOIN.left, JOIN.right))
    hosted = Hosted(replace(JOIN, left=left, right=right))
    watch = SkewWatch(dataflow_of(hosted.spec), 3, LOG)
    hosted.on_batch(rows(7, 2), rows(7, 2))
    watch.note(hosted.query.activity)
    assert warnings(caplog) == []
    hosted.on_batch(rows(7, 9, "more"), [])
    watch.note(hosted.query.activity)
    [warning] = warnings(caplog)
    assert warning == (
        'query "v": skewed key (l.k) = (7): as many rows of the left side of a join as max_fan_out = 3 allows: further'
        " records of such a key go to the dead letters"
    )


def test_the_inputs_of_an_n_way_join_are_watched(caplog: pytest.LogCaptureFixture) -> None:
    hosted = Hosted(MultiwaySpec((JOIN.left, JOIN.right)))
    watch = SkewWatch(dataflow_of(hosted.spec), 1, LOG)
    hosted.on_batch(rows(7, 1), rows(7, 2))
    watch.note(hosted.query.activity)
    [warning] = warnings(caplog)
    assert "(r.k) = (7): 2 rows of the part1 side of a join" in warning


@pytest.mark.parametrize("spec", [JOIN, KeyedSpec(port(LEFT, Ingest.UPSERT))])
def test_without_the_setting_and_without_a_join_nothing_is_said(
    spec: BidirectionalSpec | KeyedSpec, caplog: pytest.LogCaptureFixture
) -> None:
    hosted = Hosted(spec)
    watch = SkewWatch(dataflow_of(spec), None if spec is JOIN else 1, LOG)
    hosted.on_batch(rows(7, 50), [])
    watch.note(hosted.query.activity)
    assert warnings(caplog) == []


def test_a_budget_of_no_rows_is_refused() -> None:
    with pytest.raises(SqlError, match="max_fan_out cannot be 0"):
        checked({"max_fan_out": 0})
