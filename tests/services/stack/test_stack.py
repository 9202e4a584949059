"""The stack with its real servers: brought up, crashed, killed and taken down."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from dovetail.changelog.errors import StackError
from dovetail.services.stack import Stack, temporary_stack
from dovetail.services.stack.files import StackFiles
from dovetail.services.stack.free_ports import LOOPBACK
from dovetail.services.stack.processes import RUN_MARK, ProcessIdentity, await_end, kill, marked_processes, run_mark
from dovetail.services.stack.servers.kafka import KafkaBroker
from dovetail.services.stack.stack import ComponentStatus
from dovetail.services.stack.state import Phase, StackState, read_state
from dovetail.services.stack.temporary import temporary_settings

pytestmark = pytest.mark.services


@pytest.fixture
def redis_stack(tmp_path: Path) -> Iterator[Stack]:
    with temporary_stack(tmp_path, ("redis",)) as running:
        yield running


def status_of(stack: Stack, name: str) -> tuple[Phase, int | None]:
    line = next(line for line in stack.status() if line.name == name)
    return line.phase, line.pid


def state_of(stack: Stack) -> StackState:
    state = read_state(StackFiles(stack.settings).state)
    assert state is not None
    return state


def kill_and_wait(pid: int) -> None:
    kill([ProcessIdentity.of(pid)], timeout_s=10)


def test_up_starts_kafka_and_redis_and_down_ends_them(tmp_path: Path) -> None:
    stack = Stack(temporary_settings(tmp_path))
    stack.up(("kafka", "redis"))
    state = state_of(stack)
    processes = [child.process for child in state.children if child.process is not None]
    assert [child.phase for child in state.children] == [Phase.READY, Phase.READY]
    assert sorted(stack.down()) == ["kafka", "redis"]
    assert [process.find() for process in (*processes, state.supervisor)] == [None, None, None]
    assert marked_processes(state.run_id) == []
    assert stack.down() == []


def test_while_it_goes_down_nothing_is_said_to_be_started_again(tmp_path: Path) -> None:
    """One that was ended before the others is not one that has died."""
    stack = Stack(temporary_settings(tmp_path))
    stack.up(("kafka", "redis"))
    seen = set()
    with ThreadPoolExecutor() as pool:
        down = pool.submit(stack.down)
        while not down.done():
            seen |= {line.phase for line in stack.status()}
    assert {Phase.STOPPING, Phase.STOPPED} <= seen <= {Phase.READY, Phase.STOPPING, Phase.STOPPED}


def test_a_broker_keeps_its_topics_over_a_restart(tmp_path: Path) -> None:
    for expected in ([], ["kept"]):
        with temporary_stack(tmp_path) as stack:
            admin = AdminClient({"bootstrap.servers": stack.endpoint("kafka"), "log_level": 0})
            assert [name for name in admin.list_topics(timeout=10).topics if not name.startswith("__")] == expected
            if not expected:
                admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result()


def test_up_twice_is_one_stack(redis_stack: Stack) -> None:
    before = status_of(redis_stack, "redis")
    redis_stack.up(("redis",))
    assert status_of(redis_stack, "redis") == before


def test_a_taken_port_is_replaced_by_a_free_one(tmp_path: Path) -> None:
    with closing(socket.create_server((LOOPBACK, 0))) as holder:
        taken = holder.getsockname()[1]
        with temporary_stack(tmp_path, ("redis",), redis_port=taken) as stack:
            assert stack.endpoint("redis") != f"redis://{LOOPBACK}:{taken}/0"


def test_a_killed_component_is_started_again_at_the_same_address(redis_stack: Stack) -> None:
    endpoint = redis_stack.endpoint("redis")
    for restarts in (1, 2):
        _, pid = status_of(redis_stack, "redis")
        assert pid is not None
        kill_and_wait(pid)
        assert status_of(redis_stack, "redis") != (Phase.READY, pid)
        line = await_ready(redis_stack, "redis", after=pid)
        assert (line.endpoint, line.restarts, line.reason) == (endpoint, restarts, "")


def test_while_it_is_started_again_it_is_not_said_to_be_up(redis_stack: Stack) -> None:
    state = state_of(redis_stack)
    _, pid = status_of(redis_stack, "redis")
    assert pid is not None
    os.kill(state.supervisor.pid, signal.SIGSTOP)
    try:
        kill_and_wait(pid)
        [line] = [line for line in redis_stack.status() if line.name == "redis"]
        assert line.phase is Phase.RESTARTING
        assert "Ready to accept connections" in line.log_tail
        with pytest.raises(StackError, match="redis is not up"):
            redis_stack.endpoint("redis")
    finally:
        os.kill(state.supervisor.pid, signal.SIGCONT)
    await_ready(redis_stack, "redis", after=pid)


def test_what_is_left_of_a_dead_component_is_ended_before_it_starts_again(tmp_path: Path) -> None:
    with temporary_stack(tmp_path, ("kafka", "spark", "worker")) as stack:
        for name in ("spark", "worker"):
            _, pid = status_of(stack, name)
            assert pid is not None
            family = [ProcessIdentity.of(one.pid) for one in psutil.Process(pid).children(recursive=True)]
            assert family
            for one in family:
                # What waits for something at its end must not hold up its successor.
                os.kill(one.pid, signal.SIGSTOP)
            kill_and_wait(pid)
            await_ready(stack, name, after=pid)
            assert [one.find() for one in family] == [None] * len(family)


def test_components_are_copies_of_one_interpreter_and_need_it_no_longer(tmp_path: Path) -> None:
    with temporary_stack(tmp_path, ("kafka", "registry", "serve")) as stack:
        run_id = state_of(stack).run_id
        [shared] = marked_processes(run_id, "python")
        for name in ("registry", "serve"):
            _, pid = status_of(stack, name)
            assert pid is not None
            listed = psutil.Process(pid)
            assert [word for word in listed.cmdline() if word] == [sys.executable, "-m", f"dovetail.services.{name}"]
            assert [marked.pid for marked in marked_processes(run_id, name)] == [pid]
            assert listed.ppid() == shared.pid
        before = status_of(stack, "serve")
        kill([shared], timeout_s=10)
        _, pid = status_of(stack, "registry")
        assert pid is not None
        kill_and_wait(pid)
        await_ready(stack, "registry", after=pid)
        assert status_of(stack, "serve") == before
        assert httpx.get(f"{stack.endpoint('serve')}/health").status_code == 200
        _, pid = before
        assert pid is not None
        kill_and_wait(pid)
        await_ready(stack, "serve", after=pid)


def await_ready(stack: Stack, name: str, after: int) -> ComponentStatus:
    """The component, when it answers with another process than ``after``."""
    deadline = time.monotonic() + 60
    while True:
        [line] = [line for line in stack.status() if line.name == name]
        if line.phase is Phase.READY and line.pid != after:
            return line
        assert time.monotonic() < deadline, line
        time.sleep(0.05)


def test_a_component_that_cannot_start_says_why(tmp_path: Path) -> None:
    properties = tmp_path / "kafka" / "log" / "meta.properties"
    properties.parent.mkdir(parents=True)
    properties.write_text("version=99\n")
    expected = r"kafka ended with exit code 1; the end of its log:[\s\S]*version"
    with pytest.raises(StackError, match=expected) as caught, temporary_stack(tmp_path):
        pytest.fail("a broker with broken storage must not start")
    assert caught.value.where.endswith("kafka.log")


def test_no_java_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(StackError, match="JAVA_HOME has no bin/java"), temporary_stack(tmp_path):
        pytest.fail("a broker without Java must not start")


def test_what_did_not_start_gets_the_environment_of_who_wants_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "redis-server"
    broken.write_text("#!/bin/sh\nexit 7\n")
    broken.chmod(0o755)
    path = os.environ["PATH"]
    stack = Stack(temporary_settings(tmp_path))
    try:
        monkeypatch.setenv("PATH", f"{tmp_path}:{path}")
        with pytest.raises(StackError, match="redis ended with exit code 7"):
            stack.up(("redis",))
        supervisor = state_of(stack).supervisor
        monkeypatch.setenv("PATH", path)
        stack.up(("redis",))
        assert state_of(stack).supervisor == supervisor
        assert status_of(stack, "redis")[0] is Phase.READY
        assert not StackFiles(stack.settings).wanted.exists()
    finally:
        stack.down()


@pytest.mark.parametrize("content", ["", "\0" * 100, "{}", "[]"])
def test_a_state_that_a_loss_of_power_has_emptied_is_none(tmp_path: Path, content: str) -> None:
    stack = Stack(temporary_settings(tmp_path))
    StackFiles(stack.settings).state.parent.mkdir(parents=True, exist_ok=True)
    StackFiles(stack.settings).state.write_text(content)
    assert {line.phase for line in stack.status()} == {Phase.STOPPED}
    assert stack.down() == []


def test_children_of_a_killed_supervisor_are_found_by_down(redis_stack: Stack) -> None:
    state = state_of(redis_stack)
    kill_and_wait(state.supervisor.pid)
    child = state.child("redis").process
    assert child is not None
    assert child.find() is not None
    assert redis_stack.down() == ["redis"]
    assert child.find() is None
    assert read_state(StackFiles(redis_stack.settings).state) is None


def test_children_of_a_killed_supervisor_are_replaced_by_up(redis_stack: Stack) -> None:
    state = state_of(redis_stack)
    kill_and_wait(state.supervisor.pid)
    redis_stack.up(("redis",))
    child = state.child("redis").process
    assert child is not None
    assert child.find() is None
    assert state_of(redis_stack).run_id != state.run_id


def test_everything_killed_is_a_clean_start(redis_stack: Stack) -> None:
    state = state_of(redis_stack)
    _, pid = status_of(redis_stack, "redis")
    assert pid is not None
    kill_and_wait(state.supervisor.pid)
    kill_and_wait(pid)
    assert status_of(redis_stack, "redis") == (Phase.EXITED, None)
    redis_stack.up(("redis",))
    assert status_of(redis_stack, "redis")[0] is Phase.READY


def test_a_pid_that_went_to_another_process_is_left_alone(tmp_path: Path) -> None:
    stack = Stack(temporary_settings(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    ) as bystander:
        stale = {"pid": bystander.pid, "started": 1.0}
        child = {"name": "redis", "phase": "ready", "process": stale, "endpoint": "", "exit_code": None, "reason": ""}
        document = {"run_id": "gone", "supervisor": stale, "children": [child], "request": ""}
        StackFiles(stack.settings).state.write_text(json.dumps(document))
        assert stack.down() == []
        assert bystander.poll() is None
        assert bystander.stdin is not None
        bystander.stdin.write(b"\n")
    assert bystander.returncode == 0


def test_a_stack_ends_with_its_owner(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as owner:
        stack = Stack(temporary_settings(tmp_path), owner_pid=owner.pid)
        stack.up(("redis",))
        state = state_of(stack)
        owner.kill()
    assert await_end([state.supervisor], timeout_s=20)
    assert marked_processes(state.run_id) == []
    assert stack.status()[1].phase is Phase.STOPPED


def test_a_server_outside_of_the_stack_is_not_started(tmp_path: Path) -> None:
    with temporary_stack(tmp_path, ("kafka", "redis"), brokers="kafka.example:9092") as stack:
        assert status_of(stack, "kafka")[0] is Phase.STOPPED
        assert stack.connected_settings().brokers == "kafka.example:9092"


def test_a_worker_in_another_process_group_is_ended_too(redis_stack: Stack) -> None:
    run_id = state_of(redis_stack).run_id
    environment = os.environ | {RUN_MARK: run_mark(run_id, "redis")}
    with subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=subprocess.PIPE) as worker:
        identity = ProcessIdentity.of(worker.pid)
        redis_stack.down()
        assert identity.find() is None
    assert worker.returncode == -signal.SIGKILL


def test_logs_end_with_the_last_lines(redis_stack: Stack) -> None:
    assert any("Ready to accept connections" in line for line in redis_stack.logs("redis", lines=5))
    with pytest.raises(StackError, match="kafka has no log yet"):
        list(redis_stack.logs("kafka"))


def test_the_log_of_a_component_is_cut_where_it_is_too_long(tmp_path: Path) -> None:
    with temporary_stack(tmp_path, ("redis",), log_max_bytes=4096, log_files=2) as stack:
        log = StackFiles(stack.settings).log("redis")
        for number in range(3):
            with log.open("a") as file:
                file.write(f"flood {number} of some component\n" * 1000)
            deadline = time.monotonic() + 60
            while log.stat().st_size > 4096:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert sorted(path.name for path in log.parent.glob("redis.*")) == ["redis.log", "redis.log.1"]
        assert list(stack.logs("redis", lines=1)) == ["flood 2 of some component"]
        _, pid = status_of(stack, "redis")
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        await_ready(stack, "redis", after=pid)
        # It goes on in the same file, though it knew nothing of this.
        assert any("Ready to accept connections" in line for line in stack.logs("redis", lines=50))


def test_an_unknown_component_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="no component 'zookeeper'") as caught:
        Stack(temporary_settings(tmp_path)).up(("zookeeper",))
    assert "kafka, redis, registry, spark" in caught.value.fix


def test_a_cluster_id_may_begin_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=b"\xf8" + b"\1" * 15))
    KafkaBroker().prepare(temporary_settings(tmp_path))
    assert "cluster.id=-" in (tmp_path / "kafka" / "log" / "meta.properties").read_text()


def test_the_http_server_is_a_part_of_the_stack(tmp_path: Path) -> None:
    with temporary_stack(tmp_path, ("kafka", "serve")) as stack:
        address = stack.endpoint("serve")

        def sql(text: str) -> httpx.Response:
            return httpx.post(f"{address}/v1/sql", content=text, headers={"Content-Type": "text/plain"}, timeout=30)

        assert '"name":"over_http"' in sql("CREATE STREAM over_http (a int64); SHOW STREAMS").text
        assert httpx.get(f"{address}/ready").json() == {"ready": True}
        refused = sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM over_http")
        assert (refused.status_code, "Spark runner is stopped" in refused.json()["error"]["what"]) == (503, True)
        _, pid = status_of(stack, "serve")
        assert pid is not None
        kill_and_wait(pid)
        assert await_ready(stack, "serve", after=pid).endpoint == address
        assert httpx.get(f"{address}/health").json() == {"healthy": True}


def test_the_schema_registry_is_a_part_of_the_stack(tmp_path: Path) -> None:
    with temporary_stack(tmp_path, ("registry",)) as stack:
        address = stack.endpoint("registry")
        assert stack.connected_settings().schema_registry_url == address
        kept = httpx.post(f"{address}/subjects/s-value/versions", json={"schema": '"int"'}).json()
        _, pid = status_of(stack, "registry")
        assert pid is not None
        kill_and_wait(pid)
        assert await_ready(stack, "registry", after=pid).endpoint == address
        assert httpx.get(f"{address}/schemas/ids/{kept['id']}").json() == {"schema": '"int"'}
