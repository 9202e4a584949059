"""The fork server: what it forks is what ``python -m`` would have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from dovetail.runtime.processes.forked import LOST, Forked, Request
from dovetail.runtime.processes.own_fork_server import ForkServer
from dovetail.services.stack.components import COMPONENTS
from dovetail.services.worker.supervisor.child_process import PRELOADED as OF_THE_WORKER
from dovetail.spark_jobs.daemon import STAGES
from dovetail.spark_jobs.runner.spark_session import PRELOADED as OF_SPARK

_WAIT_S = 30.0

_RAISES = """
import json, os, sys
print(json.dumps([__name__, sys.argv[1:], os.getcwd(), os.environ.get("WORD"), sys.stdin.read()]))
"""
_OWNER = """
import colorsys, os, signal
from dovetail.runtime.processes.forked import Request
from dovetail.runtime.processes.own_fork_server import ForkServer

signal.signal(signal.SIGTERM, lambda *_: None)
colorsys.known = True
server = ForkServer(["json"], {}, from_here=True)
request = Request("forked_knows", (), ".", dict(os.environ))
print(server.fork(request, (0, 1, 2)).wait(30), server.pid, server.folder)
"""
_MODULES = {
    "told": _RAISES,
    "code": "import sys; sys.exit(int(sys.argv[1]))",
    "says": "import sys; sys.exit('no')",
    "fails": "raise ValueError('no')",
    "waits": "import signal; print('ready', flush=True); signal.pause()",
    "stubborn": "import signal; signal.signal(signal.SIGTERM, lambda *_: print('told', flush=True))\n"
    "print('ready', flush=True)\nwhile True: signal.pause()",
    "number": "import os; print(os.read(40, 3).decode())",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkServer]:
    for name, text in _MODULES.items():
        (tmp_path / f"forked_{name}.py").write_text(text)
    made = ForkServer(["json"], os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])})
    yield made
    made.close()


class Output:
    """A pipe: what is written to ``end`` is read here."""

    def __init__(self) -> None:
        read, self.end = os.pipe()
        self._lines = os.fdopen(read)

    def line(self) -> str:
        return self._lines.readline().strip()

    def rest(self) -> str:
        """All of it, once nobody can write any more."""
        with self._lines:
            return self._lines.read()


def forked(server: ForkServer, name: str, *arguments: str, output: Output | None = None, **environment: str) -> Forked:
    """The process; ``output`` gets all that it writes."""
    with Path(os.devnull).open("r+") as nothing:
        end = output.end if output else nothing.fileno()
        request = Request(f"forked_{name}", arguments, str(Path.cwd()), os.environ | environment)
        made = server.fork(request, (nothing.fileno(), end, end))
    if output:
        os.close(output.end)
    return made


def test_it_has_the_arguments_the_folder_and_the_environment_of_the_request(server: ForkServer) -> None:
    output = Output()
    process = forked(server, "told", "a", "b", output=output, WORD="x")
    assert output.rest() == f'["__main__", ["a", "b"], "{Path.cwd()}", "x", ""]\n'
    assert process.wait(_WAIT_S) == 0


@pytest.mark.parametrize(("name", "arguments", "code"), [("code", ["7"], 7), ("says", [], 1), ("fails", [], 1)])
def test_its_end_code_is_known(server: ForkServer, name: str, arguments: list[str], code: int) -> None:
    assert forked(server, name, *arguments).wait(_WAIT_S) == code


def test_an_exception_is_told_as_the_interpreter_tells_it(server: ForkServer) -> None:
    output = Output()
    process = forked(server, "fails", output=output)
    assert output.rest().endswith("ValueError: no\n")
    assert process.wait(_WAIT_S) == 1


def test_it_is_listed_as_the_command_that_it_stands_for(tmp_path: Path) -> None:
    (tmp_path / "forked_waits.py").write_text(_MODULES["waits"])
    begun = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "OF": "server", "OWN": "server"}
    server, output = ForkServer(["json"], os.environ | begun), Output()
    with Path(os.devnull).open("rb") as nothing:
        request = Request("forked_waits", ("a b",), "/", os.environ | {"OF": "client", "OWN": "client"}, shown=("OF",))
        process = server.fork(request, (nothing.fileno(), output.end, output.end))
    os.close(output.end)
    assert output.line() == "ready"
    listed = psutil.Process(process.pid)
    assert [word for word in listed.cmdline() if word] == [sys.executable, "-m", "forked_waits", "a b"]
    assert {name: listed.environ()[name] for name in ("OF", "OWN")} == {"OF": "client", "OWN": "server"}
    process.close()
    assert output.rest() == ""
    server.close()


def test_one_that_is_detached_goes_on_without_its_client_and_without_its_server(server: ForkServer) -> None:
    output = Output()
    with Path(os.devnull).open("rb") as nothing:
        request = Request("forked_waits", (), "/", dict(os.environ), detached=True)
        process = server.fork(request, (nothing.fileno(), output.end, output.end))
    os.close(output.end)
    assert output.line() == "ready"
    process.close()
    server.close()
    listed = psutil.Process(process.pid)
    assert os.getsid(process.pid) == process.pid
    assert listed.status() != psutil.STATUS_ZOMBIE
    listed.kill()
    assert output.rest() == ""


def test_further_descriptors_have_the_numbers_asked_for(server: ForkServer) -> None:
    output = Output()
    read, write = os.pipe()
    os.write(write, b"abc")
    request = Request("forked_number", (), str(Path.cwd()), dict(os.environ), (0, 1, 2, 40))
    process = server.fork(request, (read, output.end, output.end, read))
    for descriptor in (read, write, output.end):
        os.close(descriptor)
    assert output.rest() == "abc\n"
    assert process.wait(_WAIT_S) == 0


def test_a_signal_reaches_it(server: ForkServer) -> None:
    output = Output()
    process = forked(server, "stubborn", output=output)
    assert output.line() == "ready"
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert output.line() == "told"
    process.send_signal(signal.SIGKILL)
    assert process.wait(_WAIT_S) == -signal.SIGKILL
    process.send_signal(signal.SIGKILL)
    assert process.poll() == -signal.SIGKILL
    assert output.rest() == ""


def test_it_is_told_to_end_when_nobody_asks_for_it_any_more(server: ForkServer) -> None:
    output = Output()
    process = forked(server, "waits", output=output)
    assert output.line() == "ready"
    running = psutil.Process(process.pid)
    assert running.name() == "forked_waits"
    process.close()
    assert output.rest() == ""
    assert psutil.wait_procs([running], _WAIT_S)[1] == []


def test_a_process_without_its_server_is_lost_and_the_next_one_has_a_new_server(server: ForkServer) -> None:
    output = Output()
    process = forked(server, "waits", output=output)
    assert output.line() == "ready"
    os.kill(server.pid, signal.SIGKILL)
    assert process.wait(_WAIT_S) == LOST
    os.kill(process.pid, signal.SIGKILL)
    assert output.rest() == ""
    assert forked(server, "code", "7").wait(_WAIT_S) == 7


def test_a_server_forked_from_its_owner_has_its_modules_and_ends_with_it(tmp_path: Path) -> None:
    owner = tmp_path / "owner.py"
    owner.write_text(_OWNER)
    (tmp_path / "forked_knows.py").write_text("import sys; sys.exit(7 if sys.modules['colorsys'].known else 1)")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    ended = subprocess.run([sys.executable, owner], env=environment, capture_output=True, text=True, check=True)
    code, server, folder = ended.stdout.split()
    assert code == "7"
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(server)).wait(_WAIT_S)
    assert not Path(folder).exists()


@pytest.mark.parametrize("stage", STAGES)
def test_spark_s_processes_find_the_code_of_every_stage_imported(tmp_path: Path, stage: str) -> None:
    (tmp_path / "forked_knows.py").write_text(f"import sys; sys.exit(0 if {stage!r} in sys.modules else 1)")
    server = ForkServer(OF_SPARK, os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])})
    assert forked(server, "knows").wait(_WAIT_S) == 0
    server.close()


OF_THE_STACK = (
    *(f"{component.module}.__main__" for component in COMPONENTS if component.module),
    "dovetail.services.cli.forked.preloaded",
)
"""What components and commands are forked from, and the servers of the runner and of the worker from these in turn."""


@pytest.mark.parametrize(
    "modules", [OF_SPARK, OF_THE_WORKER, OF_THE_STACK], ids=["spark", "worker", "components of the stack"]
)
def test_what_is_imported_before_the_fork_starts_no_thread_that_could_hold_a_lock(modules: tuple[str, ...]) -> None:
    server = ForkServer(modules, os.environ)
    process = forked(server, "none")
    assert process.wait(_WAIT_S) == 1
    threads = sorted(name.read_text().strip() for name in Path(f"/proc/{server.pid}/task").glob("*/comm"))
    server.close()
    # Allocators have theirs, and know what a fork is; that of Polars sleeps until something is spilled to disk.
    assert [name for name in threads if name not in ("jemalloc_bg_thd", "polars-ooc-clea")] == ["python"]
