"""A batch of a pack, from records to what is written, without Spark: each member has its own."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import orjson
import pyarrow as pa
import pytest

from dovetail.broker.reader import RECORDS
from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import StateLimitExceeded
from dovetail.changelog.formats.heartbeat import heartbeat
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.state.store import SORT, RunEntry, RunStore
from dovetail.spark_jobs.exchange.report import REJECTED_RECORDS, ROWS_IN, BatchReport
from dovetail.spark_jobs.fused.batch import FusedTasks
from dovetail.spark_jobs.fused.stage import jobs_of
from dovetail.spark_jobs.packing.composition import read_together
from dovetail.spark_jobs.stages.at_fault import at_fault, without_note
from dovetail.spark_jobs.stages.heartbeats import outgoing
from dovetail.spark_jobs.stages.job import Job
from dovetail.spark_jobs.stages.output import SinkBatch
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.statements import CreateView
from tests.spark.flows import orders_clicks, orders_users
from tests.spark.jobs import job_of
from tests.sql.planner import Planner

KEYS = (40,)


def member(key: str, flow: Dataflow, resumed_at: str = "{}") -> Job:
    return job_of(flow, name=f"v{key}", key=key, bucket_keys=KEYS, resumed_at=resumed_at)


def packed(*members: Job) -> Job:
    flow = read_together([one.dataflow for one in members])
    starts = tuple(start for one in members for start in one.scan_starts)
    return job_of(flow, bucket_keys=KEYS, members=members, scan_starts=starts)


def records(values: Iterable[dict[str, object] | bytes], first: int = 0, keys: Iterable[object] = ()) -> pa.Table:
    written = [value if isinstance(value, bytes) else orjson.dumps(value) for value in values]
    named: list[bytes | None] = [orjson.dumps(key) for key in keys]
    named += [None] * (len(written) - len(named))
    count = len(written)
    columns = {
        "key": named,
        "value": written,
        "timestamp": [0] * count,
        "partition": [0] * count,
        "offset": list(range(first, first + count)),
    }
    return pa.table([pa.array(columns[field.name]).cast(field.type) for field in RECORDS], schema=RECORDS)


def run(pack: Job, store: RunStore, pieces: list[tuple[str, int, pa.Table]]) -> dict[int, SinkBatch]:
    return FusedTasks(jobs_of(pack.ship()), store).on_batch(pieces)


def net(output: SinkBatch) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for rows in output.changes:
        for row in rows.to_pylist():
            delta = row.pop(DELTA)
            found[tuple(row.values())] += delta
    return +found


def reported(output: SinkBatch) -> BatchReport:
    """By the member alone, on the way and in its bucket."""
    reports = [output.report, *map(BatchReport.read, output.reports)]
    assert len({report.member for report in reports}) == 1
    return BatchReport.together(reports)


ORDERS = [{"k": n % 3, "a": f"order {n}"} for n in range(6)]
CLICKS = [{"k": n, "b": f"click {n}"} for n in range(3)]
USERS = [{"id": n, "k": n, "name": f"user {n}"} for n in range(3)]


def test_each_member_gets_what_it_wants_and_counts_for_itself() -> None:
    pack = packed(member("7", orders_clicks("orders", "clicks")), member("9", orders_users("orders", "users")))
    pieces = [
        ("orders", 0, records([*ORDERS, b"no json"])),
        ("clicks", 0, records(CLICKS)),
        ("users", 0, records(USERS, keys=[{"id": n} for n in range(3)])),
    ]
    store = RunStore()
    outputs = run(pack, store, pieces)
    assert {row[1:] for row in net(outputs[0])} == {(f"order {n}", n % 3, f"click {n % 3}") for n in range(6)}
    assert net(outputs[1]).total() == 6
    assert [reported(output).counts[ROWS_IN] for output in outputs.values()] == [10, 10]
    assert [reported(output).counts[REJECTED_RECORDS] for output in outputs.values()] == [1, 1]
    assert [sum(rows.num_rows for rows in output.rejected) for output in outputs.values()] == [1, 1]

    later = run(pack, store, [("clicks", 0, records([{"k": 1, "b": "late"}], first=3))])
    assert list(later) == [0]
    assert net(later[0]).total() == 2


def test_a_member_that_had_read_further_passes_over_what_it_knows() -> None:
    ahead = member("9", orders_clicks("orders", "clicks"), '{"orders": {"0": 4}, "clicks": {"0": 7}}')
    pack = packed(member("7", orders_clicks("orders", "clicks")), ahead)
    outputs = run(pack, RunStore(), [("orders", 0, records([*ORDERS, b"x"])), ("clicks", 0, records([b"x", *CLICKS]))])
    assert [reported(output).counts[ROWS_IN] for output in outputs.values()] == [11, 3]
    assert [reported(output).counts[REJECTED_RECORDS] for output in outputs.values()] == [2, 1]


def test_a_store_that_begins_with_rows_is_opened_by_all_members_records_or_not() -> None:
    """Else what lies there unsorted could not be saved."""
    pack = packed(member("7", orders_clicks("orders", "clicks")), member("9", orders_users("orders", "users")))
    assert run(pack, RunStore(), []) == {}
    former = RunStore()
    run(pack, former, [("orders", 0, records(ORDERS))])
    rows = [RunEntry(name, one.table.drop_columns([SORT])) for name, one in former.all_runs()]
    store = RunStore.seeded(rows, former.scalars)

    outputs = run(pack, store, [])

    assert not store.unsorted
    states = {number: reported(output).state for number, output in outputs.items()}
    assert {number: {level: held[0][0] for level, held in state.items()} for number, state in states.items()} == {
        0: {1: 6},
        1: {1: 0, 2: 6},
    }


def test_the_state_of_a_member_goes_with_it() -> None:
    flow = orders_clicks("orders", "clicks")
    pack = packed(member("7", flow), member("77", flow))
    store = RunStore()
    run(pack, store, [("orders", 0, records(ORDERS))])
    FusedTasks(jobs_of(pack.ship()), store).forget_others()
    assert {name.partition(".")[0] for name in store.runs} == {"7", "77"}
    FusedTasks(jobs_of(replace(pack, members=pack.members[1:]).ship()), store).forget_others()
    assert {name.partition(".")[0] for name in store.runs} == {"77"}


def test_what_fails_says_for_which_member() -> None:
    tight = orders_clicks("orders", "clicks", limit=10)
    pack = packed(member("7", orders_clicks("orders", "clicks")), member("77", tight))
    with pytest.raises(StateLimitExceeded) as failure:
        run(pack, RunStore(), [("orders", 0, records(ORDERS))])
    traceback_text = "".join(traceback.format_exception(failure.value))
    assert at_fault(traceback_text) == {"77"}
    assert without_note(traceback_text) == traceback_text.replace("\n[of member 77]", "")


def test_a_member_tells_its_readers_how_far_it_has_come() -> None:
    view = "SELECT window_start AS opened, count(*) AS n FROM TUMBLE(rides, at, INTERVAL '10 SECONDS')"
    planner = Planner.of(
        "CREATE TABLE rides (at TIMESTAMPTZ, WATERMARK FOR at AS at - INTERVAL '5 SECONDS') APPEND ONLY",
        f"CREATE MATERIALIZED VIEW tens AS {view} GROUP BY window_start EMIT ON WINDOW CLOSE",
    )
    definition = planner.catalog.get("tens").definition
    assert isinstance(definition, CreateView)
    timed = member("1", plan_query("tens", definition, planner.catalog).dataflow)
    pack, store = packed(timed, member("2", orders_users("orders", "users"))), RunStore()

    def output_watermark(first: int, *seconds: int) -> int | None:
        values: list[dict[str, object] | bytes] = [{"at": f"1970-01-01 00:00:{second:02}"} for second in seconds]
        outputs = run(pack, store, [("rides", 0, records(values, first))])
        assert 1 not in outputs
        return outputs[0].output_watermark

    assert (begin := output_watermark(0, 3)) is not None
    assert output_watermark(1, 7, 20) == begin + 20_000
    assert output_watermark(3, 19) is None
    assert output_watermark(4, 32) == begin + 30_000
    beats = list(outgoing(replace(timed, partitions={timed.output_topic: 3}), 17))
    assert [one.partition for one in beats] == [0, 1, 2]
    assert [one.messages for one in beats] == [[heartbeat(17)]] * 3
    assert SinkBatch(output_watermark=17).speaks
    assert not SinkBatch().speaks
