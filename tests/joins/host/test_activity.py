"""What nodes have done and hold, as a host counts it: over buckets, over batches, and as a document."""

from __future__ import annotations

import json
from itertools import count

from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.joins.host.activity import Activity, NodeWork, in_all
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.joins.host.level import Arrival, LevelTask
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.state.arrangement_stats import ArrangementStats, KeyRows
from dovetail.joins.state.store import RunStore
from tests.joins.harness import LEFT, RIGHT, LeftBelowRight, decoded, port
from tests.joins.hosted import Hosted, dataflow_of

JOIN = BidirectionalSpec(JoinKind.INNER, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND))


def activity(hosted: Hosted) -> Activity:
    return hosted.query.activity


def test_rows_in_and_out_and_state_of_a_known_input() -> None:
    hosted = Hosted(JOIN)
    hosted.on_batch([((1, "a", 0), 1), ((1, "b", 0), 1), ((2, "c", 0), 1)], [((1, "x", 0), 1), ((3, "y", 0), 1)])
    hosted.on_batch([((1, "d", 0), 1)], [])

    work = activity(hosted).nodes[0]
    parts = activity(hosted).parts_of(0)

    assert (work.rows_in, work.changes, work.rows_out, work.batches) == ((4, 2), 3, 3, 2)
    assert work.fan_out == 0.5
    assert {part: (held.rows, held.fan_out, held.top) for part, held in parts.items()} == {
        "left": (4, 3, (KeyRows("1", 3),)),
        "right": (2, 1, ()),
    }
    assert activity(hosted).scans == {0: NodeWork((4,), 4, 4, 0, 2), 1: NodeWork((2,), 2, 2, 0, 2)}


def test_a_document_is_read_back_as_it_was() -> None:
    hosted = Hosted(JOIN)
    hosted.on_batch([((n % 7, str(n), 0), 1) for n in range(100)], [((3, "x", 0), 1)])

    document = json.loads(json.dumps(activity(hosted).document()))
    read = Activity.read(document)

    assert read.nodes == activity(hosted).nodes
    assert read.scans == activity(hosted).scans
    assert read.parts_of(0) == activity(hosted).parts_of(0)
    assert Activity.read({}) == Activity()


def test_of_all_buckets_the_document_names_the_heaviest_keys_only() -> None:
    hosted = Hosted(JOIN)
    hosted.on_batch([((n // 10, str(n), 0), 1) for n in range(400)], [])

    heavy_keys = [key for bucket in activity(hosted).document()["held"]["0.left"].values() for key in bucket[-1]]

    assert len(heavy_keys) == 5
    assert {rows for _, rows in heavy_keys} == {10}


def test_what_a_bucket_holds_takes_the_place_of_what_it_held() -> None:
    held = {0: ArrangementStats(1, 8, (1, 1), 1, ()), 1: ArrangementStats(4, 32, (2, 2), 3, ())}
    before = Activity(held={"0.left": held})
    before.add(Activity(held={"0.left": {0: ArrangementStats(2, 16, (2, 2), 1, ())}}))

    assert before.parts_of(0) == {"left": ArrangementStats(6, 48, (4, 4), 3, ())}
    assert in_all([]) == ArrangementStats(0, 0, (0, 0), 0, ())


def test_the_buckets_of_one_batch_are_one_batch() -> None:
    one, other = (Activity(nodes={0: NodeWork((rows, 1), rows, rows, 10)}) for rows in (3, 4))

    whole = Activity.of_batch([one, other])
    whole.add(Activity.of_batch([one]))

    assert whole.nodes == {0: NodeWork((10, 3), 10, 10, 30, 2)}


def test_time_is_measured_by_the_clock_that_the_host_gives() -> None:
    ticks = count(step=1_000)
    task = LevelTask(dataflow_of(JOIN), 1, 0, 1, RunStore(), {}, lambda: next(ticks))

    output = task.on_batch([Arrival(0, decoded(LEFT, [((1, "a", 0), 1)], 0))])

    assert output.activity.nodes[0].busy_ns == 1_000


def test_pairs_that_the_condition_refuses_are_no_changes() -> None:
    spec = BidirectionalSpec(
        JoinKind.INNER, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND), condition=LeftBelowRight()
    )
    query = LocalQuery(dataflow_of(spec), buckets=1)
    query.feed({0: decoded(LEFT, [((1, "a", 5), 1)], 0), 1: decoded(RIGHT, [((1, "x", 9), 1), ((1, "y", 1), 1)], 0)})

    assert query.activity.nodes[0].changes == 1
