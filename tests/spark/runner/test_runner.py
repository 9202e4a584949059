"""The runner as the stack starts it, driven through the catalog."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.topics import delete, ensure
from dovetail.services.cli.main import app
from dovetail.sql.catalog import Actual, Desired, What
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.statements import Drop
from tests.spark.kafka import multiset, send, values
from tests.spark.running import WAIT_S, Running, read_in

pytestmark = pytest.mark.services


@pytest.fixture
def runner(tmp_path: Path, broker: str) -> Iterator[Running]:
    running = Running(tmp_path, broker)
    yield running
    if running.process.poll() is None:
        running.stop()
    running.catalog.close()


def test_queries_run_pause_resume_fail_and_go(
    runner: Running, broker: str, topics: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = topics("left"), topics("right")
    runner.create(f"CREATE TABLE l (k BIGINT, a VARCHAR) APPEND ONLY WITH (topic = '{left}')")
    runner.create(f"CREATE TABLE r (k BIGINT, b VARCHAR) APPEND ONLY WITH (topic = '{right}')")
    runner.create("CREATE TABLE gone (k BIGINT) APPEND ONLY WITH (topic = 'there-is-no-such-topic')")
    runner.create("CREATE MATERIALIZED VIEW bad AS SELECT k FROM gone")
    runner.create("CREATE MATERIALIZED VIEW pairs AS SELECT l.k, l.a, r.b FROM l JOIN r ON l.k = r.k")
    send(broker, left, [{"k": 1, "a": "x"}])
    send(broker, right, [{"k": 1, "b": "y"}])

    query = runner.wait("pairs", read_in(2))
    assert query.actual is Actual.RUNNING
    assert query.progress["offsets"] == {left: {"0": 1}, right: {"0": 1}}
    assert query.progress["starts"] == {left: {"0": 0}, right: {"0": 0}}
    assert query.progress["counts"]["rows_out"] == 1
    failed = runner.wait("bad", lambda query: query.actual is Actual.FAILED)
    assert "there-is-no-such-topic" in failed.error

    runner.catalog.want("pairs", Desired.PAUSED, now_ms=1)
    runner.wait("pairs", lambda query: query.actual is Actual.PAUSED)
    send(broker, right, [{"k": 1, "b": "z"}])
    runner.catalog.want("pairs", Desired.RUNNING, now_ms=2)
    runner.wait("pairs", lambda query: query.progress["offsets"].get(right) == {"0": 2})
    assert multiset(values(broker, "pairs")) == {(1, "x", "y"): 1, (1, "x", "z"): 1}

    runner.catalog.drop(Drop(What.VIEW, "pairs"), now_ms=3)
    deadline = time.monotonic() + WAIT_S
    while [query for query in runner.catalog.queries(dropped=True) if query.name == "pairs"]:
        assert time.monotonic() < deadline, runner.log.read_text()[-3000:]
    assert not list((tmp_path / "checkpoints").glob("*pairs*"))
    assert not list((tmp_path / "state-copy").glob("*pairs*"))
    assert runner.stop() == 0

    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))
    logged = CliRunner().invoke(app, ["logs", "view", "pairs"]).output.splitlines()
    # What stood in its way, if anything did, is told in further lines.
    begun = [line for line in logged if re.match(r"\d{4}-", line)]
    said = [re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z [A-Z]+ pairs batch (-|\d+): (\w+).*", line) for line in begun]
    words = [line[2] for line in said if line]
    assert len(words) == len(begun)
    assert words[0] == "starting"
    assert words[-1] == "dropped"
    assert {"running", "stopped", "2"} <= set(words)
    assert {line[1] for line in said if line} >= {"-", "0"}
    assert CliRunner().invoke(app, ["logs", "view", "pairs", "-n", "1"]).output.splitlines() == logged[-1:]


_CAPACITY = re.compile(r"\(System\.gc\(\)\) \d+M->\d+M\((\d+)M\)")
"""Of the heap after a collection that was asked for, in MB."""


def test_the_memory_of_the_last_query_is_given_back_once_it_is_dropped(
    broker: str, topics: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections = tmp_path / "gc"
    collections.mkdir()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Xlog:gc:file={collections}/%p.log")
    runner = Running(tmp_path, broker)
    numbers = topics("numbers")
    runner.create(f"CREATE TABLE numbers (k BIGINT) APPEND ONLY WITH (topic = '{numbers}')")
    names = ["first", "last"]
    for name in names:
        runner.create(f"CREATE MATERIALIZED VIEW {name} AS SELECT k * 2 AS k FROM numbers")
    for name in names:
        runner.wait(name, lambda query: query.actual is Actual.RUNNING)

    collected = []
    for name in names:
        runner.catalog.drop(Drop(What.VIEW, name), now_ms=3)
        deadline = time.monotonic() + WAIT_S
        while [query for query in runner.catalog.queries(dropped=True) if query.name == name]:
            assert time.monotonic() < deadline, runner.log.read_text()[-3000:]
        logged = "".join(log.read_text() for log in collections.glob("*.log"))
        collected.append([int(size) for size in _CAPACITY.findall(logged)])

    assert collected[0] == []
    assert collected[1][-1] < collected[1][0]
    assert runner.stop() == 0
    runner.catalog.close()


def test_a_second_runner_of_a_catalog_refuses_and_names_the_first(runner: Running, broker: str, tmp_path: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while (leader := runner.catalog.leadership(Engine.SPARK.value)) is None:
        assert time.monotonic() < deadline, runner.log.read_text()[-3000:]
        time.sleep(0.05)

    second = Running(tmp_path, broker, log="second.log")

    assert second.process.wait(WAIT_S) == 1
    assert leader.holder == f"{socket.gethostname()}:{runner.process.pid}"
    said = second.log.read_text()
    assert f"another process is the Spark runner of this catalog: {leader.holder}" in said
    assert "fix:   end that one first" in said
    assert runner.process.poll() is None
    lease = runner.catalog.leadership(Engine.SPARK.value)
    assert lease is not None
    assert (lease.holder, lease.epoch) == (leader.holder, leader.epoch)
    second.catalog.close()


def test_a_query_that_has_begun_and_lost_its_checkpoint_waits_for_it(
    runner: Running, broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    """As a disk that is not mounted; here in the first batch, of which nothing is reported but that it has begun."""
    numbers = topics("numbers")
    runner.create(f"CREATE TABLE numbers (k BIGINT) APPEND ONLY WITH (topic = '{numbers}')")
    runner.create("CREATE MATERIALIZED VIEW doubled AS SELECT k * 2 AS k FROM numbers")
    send(broker, numbers, [{"k": 1}, {"k": 2}])
    query = runner.wait("doubled", read_in(2))
    assert runner.stop() == 0
    once = multiset(values(broker, "doubled"))
    runner.catalog.report(query.id, now_ms=1, progress={"starts": query.progress["starts"], "batch": -1})
    checkpoint, away = Path(query.checkpoint), tmp_path / "away"
    checkpoint.rename(away)

    again = Running(tmp_path, broker)
    lost = again.wait("doubled", lambda query: query.actual is Actual.RECOVERING)
    assert "is gone, and the query has run before" in lost.error
    assert multiset(values(broker, "doubled")) == once
    away.rename(checkpoint)
    again.wait("doubled", lambda query: query.actual is Actual.RUNNING)
    send(broker, numbers, [{"k": 3}])
    again.wait("doubled", lambda query: query.progress["offsets"] == {numbers: {"0": 3}})
    assert again.stop() == 0
    again.catalog.close()
    assert multiset(values(broker, "doubled")) == {**once, (6,): 1}


def test_a_broker_that_is_down_ends_the_start_with_a_message(tmp_path: Path) -> None:
    running = Running(tmp_path, "127.0.0.1:1", BROKER_TIMEOUT_S=1)

    assert running.process.wait(60) == 1
    assert "no broker answered at 127.0.0.1:1" in running.log.read_text()
    running.catalog.close()


def test_a_query_whose_topic_is_deleted_waits_for_it_however_long(
    runner: Running, broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    """Also where the next runner starts without it. A topic made again is another one, which is said."""
    numbers = topics("numbers")
    runner.create(f"CREATE TABLE numbers (k BIGINT) APPEND ONLY WITH (topic = '{numbers}')")
    runner.create("CREATE MATERIALIZED VIEW doubled AS SELECT k * 2 AS k FROM numbers")
    send(broker, numbers, [{"k": 1}])
    runner.wait("doubled", read_in(1))
    client = clients.admin(BrokerAddress(broker))
    delete(client, [numbers])
    gone = f'the topic "{numbers}" is gone'
    runner.wait("doubled", lambda query: query.actual is Actual.RECOVERING and query.error.startswith(gone))
    assert runner.stop() == 0

    again = Running(tmp_path, broker)
    again.wait("doubled", lambda query: query.actual is Actual.RECOVERING and gone.removeprefix("the ") in query.error)
    ensure(client, {numbers: 1})
    other = again.wait("doubled", lambda query: query.actual is Actual.FAILED)
    assert f'the topic "{numbers}" was deleted and made again' in other.error
    assert again.stop() == 0
    again.catalog.close()
