"""The parts of the stack that need no server: processes, ports, state, logs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dovetail.changelog.errors import StackError
from dovetail.services.stack.components import COMPONENTS, in_start_order
from dovetail.services.stack.files import locked, tail
from dovetail.services.stack.free_ports import LOOPBACK, choose_ports
from dovetail.services.stack.processes import RUN_MARK, ProcessIdentity, end_group, kill, marked_processes, run_mark
from dovetail.services.stack.state import ChildState, Phase, StackState, read_state, write_state

WAITING = "import sys; print('up', flush=True); sys.stdin.read()"
DEAF = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); sys.stdin.read()"


def started(source: str, mark: str = "") -> subprocess.Popen[bytes]:
    """A process in its own group that has come as far as printing."""
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {RUN_MARK: run_mark(mark, "redis")},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


def test_a_process_is_known_by_its_start_time() -> None:
    with started(WAITING) as process:
        identity = ProcessIdentity.of(process.pid)
        assert identity.find() is not None
        assert ProcessIdentity(identity.pid, identity.started - 60).find() is None
        process.kill()
    assert identity.find() is None


def test_a_group_is_asked_to_stop() -> None:
    with started(WAITING) as process:
        end_group(ProcessIdentity.of(process.pid), timeout_s=10)
    assert process.returncode == -signal.SIGTERM


def test_a_group_that_does_not_listen_is_killed() -> None:
    with started(DEAF) as process:
        end_group(ProcessIdentity.of(process.pid), timeout_s=0.1)
    assert process.returncode == -signal.SIGKILL


def test_the_processes_of_a_run_are_found_by_its_mark() -> None:
    with started(WAITING, mark="this-run") as of_this_run, started(WAITING, mark="another") as of_another:
        kill(marked_processes("this-run"), timeout_s=10)
        assert of_another.poll() is None
        of_another.kill()
    assert of_this_run.returncode == -signal.SIGKILL


def test_free_ports_are_taken_as_preferred_and_all_differ() -> None:
    with closing(socket.create_server((LOOPBACK, 0))) as holder:
        taken = holder.getsockname()[1]
        ports = choose_ports(taken, 0, 0)
    assert taken not in ports
    assert len(set(ports)) == 3
    assert choose_ports(taken) == (taken,)
    assert len(set(choose_ports(taken, taken))) == 2


def test_free_ports_are_none_that_a_connection_may_get() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(choose_ports(*[0] * 50)) < first


def test_the_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "stack.json"
    assert read_state(path) is None
    state = StackState("run", ProcessIdentity(1, 2.5), request="r")
    state = state.with_child(ChildState("kafka")).with_child(ChildState("redis", Phase.EXITED, exit_code=1))
    state = state.with_child(ChildState("kafka", Phase.READY, ProcessIdentity(3, 4.5), "127.0.0.1:9092"))
    write_state(path, state)
    assert read_state(path) == state
    assert [child.name for child in state.children] == ["kafka", "redis"]
    assert state.child("spark").phase is Phase.STOPPED


def test_components_start_after_what_they_need() -> None:
    names = [component.name for component in COMPONENTS]
    for component in COMPONENTS:
        needed = (*component.after, *component.beside)
        assert all(names.index(other) < names.index(component.name) for other in needed)
    assert [component.name for component in in_start_order(["spark", "kafka"])] == ["kafka", "spark"]
    with pytest.raises(StackError, match="no component"):
        in_start_order(["kafka", "zookeeper"])


def test_the_tail_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "kafka.log"
    assert tail(log) == ""
    log.write_text("".join(f"line {n}\n" for n in range(100_000)))
    assert tail(log, lines=2) == "line 99998\nline 99999"


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    with locked(tmp_path / "one.lock"), pytest.raises(BlockingIOError), locked(tmp_path / "one.lock", wait=False):
        pytest.fail("two processes must not hold the lock at once")
