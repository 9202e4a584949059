"""The parts of a worker that need no server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dovetail.changelog.errors import EnvironmentFault
from dovetail.enrichment.memo.memo_store import MemoStore
from dovetail.runtime.processes.own_fork_server import ForkServer
from dovetail.services.commands.command_codec import Outcome
from dovetail.services.worker.lane.fetches import Fetch, as_batch
from dovetail.services.worker.query.cache_occupancy import LOOKED_AT_S, CacheOccupancy
from dovetail.services.worker.query.progress import GONE, Report, merged, waits_for
from dovetail.services.worker.supervisor.child_process import Child
from dovetail.services.worker.supervisor.worker_supervisor import claimed_folder, joined
from tests.services.worker.lanes import Given, fetch


def test_a_fetch_is_cut_at_an_offset() -> None:
    whole = fetch(10, 5)
    assert whole.after(10) is whole
    cut = whole.after(13)
    assert (cut.start, cut.end, [record.offset for record in cut.records]) == (13, 15, [13, 14])


def test_a_fetch_becomes_what_a_decoder_takes() -> None:
    batch = as_batch(3, [Given(7, b"v", None, 1000)], headed=False)
    assert "headers" not in batch.schema.names
    assert batch.to_pylist()[0]["value"] == b"v"
    assert batch.column("partition").to_pylist() == [3]
    assert batch.column("offset").to_pylist() == [7]
    assert as_batch(0, Fetch(0, 0, 1, []).records, headed=False).num_rows == 0
    headed = as_batch(3, [Given(7, b"v", None, 1000, (("a", b"1"), ("a", None))), Given(8, b"w")], headed=True)
    assert headed.column("headers").to_pylist() == [[("a", b"1"), ("a", None)], []]


def test_workers_that_are_gone_leave_one_sum() -> None:
    progress: dict[str, Any] = {}
    for start in range(50):
        report = Report(f"host-{start}", {0: start}, {"rows_in": 1}, 3, {"memo": [1, 2]}, "waits")
        progress = merged(progress, "t", {0: 0}, report, {f"host-{start}", f"host-{start - 1}"})
    assert progress["counts"] == {"rows_in": 50}
    assert progress["by_worker"] == {GONE: {"rows_in": 48}, "host-48": {"rows_in": 1}, "host-49": {"rows_in": 1}}
    assert progress["held_by_worker"].keys() == progress["waits_by_worker"].keys() == {"host-48", "host-49"}


def test_reports_of_several_workers_are_merged() -> None:
    first = merged({}, "t", {0: 5, 1: 0}, Report("a", {0: 10}, {"rows_in": 5}, 3))
    both = merged(first, "t", {0: 5, 1: 0}, Report("b", {0: 7, 1: 4}, {"rows_in": 4}, 2))
    assert both["starts"] == {"t": {"0": 5, "1": 0}}
    assert both["offsets"] == {"t": {"0": 10, "1": 4}}
    assert both["counts"] == {"rows_in": 9}
    assert merged(both, "t", {0: 5, 1: 0}, Report("b", {1: 4}, {"rows_in": 4}, 2)) == both
    keeping = merged(both, "t", {0: 5, 1: 0}, Report("b", {1: 4}, {"rows_in": 4}, 2, {"memo": [1, 2]}))
    assert keeping["held_by_worker"] == {"a": {}, "b": {"memo": [1, 2]}}


def test_a_query_waits_while_one_of_its_living_workers_does() -> None:
    well = merged({}, "t", {0: 0}, Report("a", {}, {}, 0))
    waiting = merged(well, "t", {0: 0}, Report("b", {}, {}, 0, waits="the source is away"))
    assert waits_for(waiting, ["a", "b"]) == "the source is away"
    assert waits_for(waiting, ["a"]) == ""
    assert waits_for({}, ["a"]) == ""
    assert waits_for(merged(waiting, "t", {0: 0}, Report("b", {}, {}, 0)), ["a", "b"]) == ""


def test_what_a_process_keeps_is_looked_at_every_few_seconds(tmp_path: Path) -> None:
    """Its memos are counted row by row."""
    now_s = [100.0]
    store = MemoStore(tmp_path / "memo-0.db", "q")
    occupancy = CacheOccupancy({}, tmp_path, lambda: now_s[0])
    store.apply([(b"1", b"[]"), (b"2", b"[]")])
    rows, size = occupancy.document()["memo"]
    assert (rows, size > 0) == (2, True)
    store.apply([(b"3", b"[]")])
    now_s[0] += LOOKED_AT_S - 1
    assert occupancy.document()["memo"][0] == 2
    now_s[0] += 1
    assert occupancy.document()["memo"][0] == 3
    store.close()


def test_answers_of_several_processes_are_one() -> None:
    one = Outcome(True, {"invalidated": 2, "dictionaries": [1]})
    other = Outcome(True, {"invalidated": 3, "dictionaries": [2]})
    assert joined([one, other]) == Outcome(True, {"invalidated": 5, "dictionaries": [1, 2]})
    refused = Outcome.failed("no")
    assert joined([one, refused]) == refused
    assert joined([]) == Outcome(True, {})


def test_workers_of_one_machine_have_folders_of_their_own(tmp_path: Path) -> None:
    first, lock = claimed_folder(tmp_path)
    second, other = claimed_folder(tmp_path)
    assert first != second
    lock.close()
    again, third = claimed_folder(tmp_path)
    assert again == first
    other.close()
    third.close()


def test_where_no_process_can_be_started_the_environment_is_at_fault(tmp_path: Path) -> None:
    """A server that ends in its start, as one that is killed does, and so does the one that is started for it."""
    server = ForkServer(["no_such_module"], os.environ)
    try:
        with pytest.raises(EnvironmentFault, match="no process could be started") as failure:
            Child("q", "w", tmp_path, {}, server)
    finally:
        server.close()
    assert failure.value.retry
