"""Commands that are forked from an interpreter of the stack: nobody can tell them from those that are not."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from dovetail.runtime.processes import interpreters
from dovetail.runtime.processes.forked import READY, Forked, Request
from dovetail.runtime.processes.own_fork_server import ForkServer
from dovetail.services.cli import start
from dovetail.services.cli.forked import loaded_code
from dovetail.services.cli.forked.client import COMMAND, TERMS_AT
from dovetail.services.stack import temporary_stack
from dovetail.services.stack.processes import ProcessIdentity
from dovetail.services.stack.state import StackState, write_state
from tests.services.cli.interpreter import PRELOADED, START, ready
from tests.services.cli.test_imports import libraries_of, modules_of
from tests.services.worker.lanes import until

_HERE = [sys.executable, "-m", "dovetail.services.cli.main"]
_PATIENCE_S = 30.0
_OUTDATED = """
from dovetail.services.cli.forked import loaded_code
loaded_code._AS_LOADED = {"/no/such.py": (0, 0)}
"""
_CLIENT = """
import json, sys
from dovetail.services.cli import start
from dovetail.services.cli.forked import client
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log of a stack that may be followed forever."""
    made = tmp_path_factory.mktemp("forked")
    logs = made / "data" / "logs"
    logs.mkdir(parents=True)
    (logs / "spark.log").write_text("the first line\n")
    write_state(made / "data" / "stack.json", StackState("gone", ProcessIdentity(1 << 22, 0.0)))
    return made


@pytest.fixture(scope="module")
def environment(folder: Path) -> dict[str, str]:
    apart = {"DOVETAIL_DATA_DIR": "data", "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(folder)}
    return {name: value for name, value in os.environ.items() if name != "DOVETAIL_BROKERS"} | apart


@pytest.fixture
def state(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_STATE_HOME", "PYTHONPATH"):
        monkeypatch.setenv(name, environment[name])


@pytest.fixture
def server(environment: dict[str, str], state: None) -> Iterator[ForkServer]:
    made = ready([PRELOADED], environment)
    yield made
    interpreters.withdraw(made.pid)
    made.close()


Ran = tuple[int, bytes, bytes]


def ran(argv: list[str], folder: Path, environment: dict[str, str]) -> Ran:
    done = subprocess.run(
        argv,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_result_and_messages_are_those_of_a_command_that_imports_for_itself(
    server: ForkServer, folder: Path, environment: dict[str, str]
) -> None:
    commands = [
        ["--help"],
        ["docs", "asof"],
        ["nonsense-é"],
        ["logs"],
        ["logs", "no_such"],
        ["sql", "-c", "SHOW STREAMS"],
        ["version"],
    ]
    for arguments in commands:
        for special in ({}, {"PYTHONIOENCODING": "latin-1:replace", "COLUMNS": "50", "TZ": "Asia/Tokyo"}):
            changed = environment | special
            assert ran([*START, *arguments], folder, changed) == ran([*_HERE, *arguments], folder, changed)


@contextmanager
def following(folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A command that goes on until it is told to end, once it has begun."""
    argv = [*START, "logs", "spark", "--follow"]
    with subprocess.Popen(argv, cwd=folder, env=environment, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"the first line\n"
            yield process
        finally:
            process.kill()


def command_of(server: ForkServer) -> psutil.Process:
    [command] = psutil.Process(server.pid).children()
    return command


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "kill"])
def test_a_signal_ends_it(
    server: ForkServer, folder: Path, environment: dict[str, str], number: signal.Signals, code: int
) -> None:
    with following(folder, environment) as process:
        command = command_of(server)
        process.send_signal(number)
        assert process.wait(_PATIENCE_S) == code
        until(lambda: not command.is_running())


def test_a_signal_that_is_ignored_stays_ignored(server: ForkServer, folder: Path, environment: dict[str, str]) -> None:
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with following(folder, environment) as process:
            command_of(server).send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            assert process.poll() is None
            process.terminate()
            assert process.wait(_PATIENCE_S) == 143
    finally:
        signal.signal(signal.SIGINT, former)


def test_ctrl_z_stops_it_until_it_is_to_go_on(server: ForkServer, folder: Path, environment: dict[str, str]) -> None:
    with following(folder, environment) as process:
        both = [psutil.Process(process.pid), command_of(server)]
        process.send_signal(signal.SIGTSTP)
        until(lambda: all(one.status() == psutil.STATUS_STOPPED for one in both))
        process.send_signal(signal.SIGCONT)
        until(lambda: all(one.status() != psutil.STATUS_STOPPED for one in both))
        process.terminate()
        assert process.wait(_PATIENCE_S) == 143


def test_it_ends_with_the_process_that_stands_for_it(
    server: ForkServer, folder: Path, environment: dict[str, str]
) -> None:
    with following(folder, environment) as process:
        command = command_of(server)
        process.kill()
        process.wait()
        until(lambda: not command.is_running())


def test_it_goes_on_when_the_stack_has_ended(environment: dict[str, str], state: None, folder: Path) -> None:
    server = ready([PRELOADED], environment)
    with following(folder, environment) as process:
        command = command_of(server)
        interpreters.withdraw(server.pid)
        server.close()
        with (folder / "data" / "logs" / "spark.log").open("a") as log:
            log.write("a later line\n")
        assert process.stdout is not None
        assert process.stdout.readline() == b"a later line\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(_PATIENCE_S) == 1
        until(lambda: not command.is_running())
        (folder / "data" / "logs" / "spark.log").write_text("the first line\n")


def test_code_that_was_changed_since_the_stack_came_up_is_loaded_anew(
    environment: dict[str, str], state: None, folder: Path
) -> None:
    (folder / "outdated.py").write_text(_OUTDATED)
    server = ready([PRELOADED, "outdated"], environment)
    with following(folder, environment) as process:
        assert "dovetail.services.cli.main" in command_of(server).cmdline()
        process.send_signal(signal.SIGINT)
        assert process.wait(_PATIENCE_S) == 130
        interpreters.withdraw(server.pid)
        server.close()


def test_a_command_that_gets_no_terms_does_nothing(server: ForkServer, folder: Path, tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    output = tmp_path / "output"
    with ours, theirs, output.open("wb") as file, Path(os.devnull).open("rb") as nothing:
        wanted = Request(COMMAND, ("version",), str(folder), dict(os.environ), (0, 1, 2, TERMS_AT))
        process = Forked(server.address, wanted, (nothing.fileno(), file.fileno(), file.fileno(), theirs.fileno()))
    assert process.wait(_PATIENCE_S) == 1
    assert output.read_bytes() == b""


def test_a_server_that_stands_still_holds_up_no_command(
    server: ForkServer, folder: Path, environment: dict[str, str]
) -> None:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        assert ran([*START, "version"], folder, environment) == ran([*_HERE, "version"], folder, environment)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    # The command that it forks now is nobody's.
    until(lambda: psutil.Process(server.pid).children() == [])


def test_an_interpreter_is_used_that_is_ready_and_sees_what_this_process_sees(
    state: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "none"))
    address = tmp_path / "server"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        interpreters.announce(os.getpid(), str(address))
        assert list(interpreters.addresses()) == []
        address.with_name(READY).touch()
        assert list(interpreters.addresses()) == [str(address)]
        interpreters.announce(1 << 22, str(address))
        assert list(interpreters.addresses()) == [str(address)]
        monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
        assert list(interpreters.addresses()) == []
    address.unlink()
    assert list(interpreters.addresses()) == []


def test_a_home_that_cannot_be_written_to_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", os.devnull)
    interpreters.announce(os.getpid(), "/no/such")
    interpreters.withdraw(os.getpid())
    assert list(interpreters.addresses()) == []


@pytest.mark.parametrize("command", ["up", "down", "demo", "worker", "serve"])
def test_what_starts_and_stops_the_stack_is_no_copy_of_a_part_of_it(command: str) -> None:
    assert not start.may_be_forked([command])
    assert start.may_be_forked(["status", command])


def test_versions_of_the_code() -> None:
    assert not loaded_code.has_changed()


def test_the_process_that_stands_for_a_command_loads_no_library_and_no_code_of_a_command() -> None:
    modules = modules_of(_CLIENT)
    assert libraries_of(modules) <= {"setuptools"}
    ours = {name for name in modules if name.startswith("dovetail.")}
    assert {name.split(".")[1] for name in ours} <= {"runtime", "services"}


@pytest.mark.services
def test_a_stack_gives_its_interpreter_to_commands_and_takes_it_back(tmp_path: Path) -> None:
    with temporary_stack(tmp_path, ("kafka", "registry")) as stack:
        until(lambda: bool(list(interpreters.addresses())))
        environment = os.environ | {"DOVETAIL_DATA_DIR": str(stack.settings.data_dir)}
        code, shown, _ = ran([*START, "status", "-o", "json"], tmp_path, environment)
        assert code == 0
        assert shown.count(b'"ready"') == 2
        assert ran([*START, "sql", "-c", "SELEC 1"], tmp_path, environment)[0] == 1
    assert not any(address for address in interpreters.addresses() if Path(address).exists())
