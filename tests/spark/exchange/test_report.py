"""What the parts of a batch report, on its way to the progress of the query."""

from __future__ import annotations

from collections import Counter

from dovetail.joins.host.activity import Activity, NodeWork
from dovetail.joins.state.arrangement_stats import ArrangementStats, KeyRows
from dovetail.spark_jobs.exchange.report import BatchReport, to_batch

HELD = ArrangementStats(2, 90, (1, 1), 3, (KeyRows("k", 2),))
DECODED = BatchReport(Counter(rows_in=3), activity=Activity(scans={0: NodeWork((3,), 3, 3, 10)}))
LEFT = BatchReport(
    Counter({"late": 1, "late.0": 1, "dangling": 0}),
    {1: {0: (2, 90)}},
    {0: 700, 1: 900},
    {0: 2},
    700,
    Activity(nodes={0: NodeWork((2, 1), 3, 3, 10)}, held={"0.left": {0: HELD}}),
    member="7",
)
RIGHT = BatchReport(
    Counter(late=2), {1: {1: (0, 0)}, 2: {1: (5, 1)}}, activity=Activity(nodes={0: NodeWork((0, 4), 1, 1, 5)})
)


def test_it_comes_back_as_it_was() -> None:
    rows = to_batch([report.text for report in (DECODED, LEFT, RIGHT)])
    assert [BatchReport.read(text) for text in rows.column("report").to_pylist()] == [DECODED, LEFT, RIGHT]


def test_those_of_a_batch_add_up_and_each_bucket_keeps_what_it_holds() -> None:
    whole = BatchReport.together([DECODED, LEFT, RIGHT])
    assert whole.counts == Counter({"rows_in": 3, "late": 3, "late.0": 1})
    assert whole.state == {1: {0: (2, 90), 1: (0, 0)}, 2: {1: (5, 1)}}
    assert (whole.watermarks, whole.held_by) == ({0: 700, 1: 900}, {0: 2})
    assert whole.activity.scans == {0: NodeWork((3,), 3, 3, 10)}
    assert whole.activity.nodes == {0: NodeWork((2, 5), 4, 4, 15)}
    assert whole.activity.held == {"0.left": {0: HELD}}


def test_a_member_that_has_nothing_to_say_is_silent() -> None:
    assert BatchReport(Counter(failed=0), member="7").is_empty
    assert not BatchReport(state={1: {0: (0, 0)}}).is_empty
    assert not LEFT.is_empty
