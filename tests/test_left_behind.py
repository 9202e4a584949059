"""A run of tests that is killed, or forgets something, leaves no process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.left_behind import MARK, alive, started_by
from tests.paths import ROOT

pytestmark = pytest.mark.services

_WITHIN_S = 60.0
_STARTED = """
import os, subprocess, sys, time
from pathlib import Path
from dovetail.services.stack import Stack, temporary_stack
from dovetail.services.stack.temporary import temporary_settings

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
FORGOTTEN = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {DEAF!r}], start_new_session=True)"


def test_what_tests_start(tmp_path: Path) -> None:
    # As `dovetail up` starts one: it outlives who started it.
    Stack(temporary_settings(tmp_path / "of_a_command")).up(("redis",))
    subprocess.run([sys.executable, "-c", FORGOTTEN], check=True)
    with temporary_stack(tmp_path / "of_the_test", ("redis",)):
        Path(os.environ["TOLD"]).write_text(os.environ["TESTS_RUN"])
        while not Path(os.environ["GO_ON"]).exists():
            time.sleep(0.05)
"""


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "forgetful"])
def test_what_a_run_has_started_ends_with_it(tmp_path: Path, *, killed: bool) -> None:
    mark_file, go_on, tests = tmp_path / "mark", tmp_path / "go", tmp_path / "test_started.py"
    tests.write_text(_STARTED)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-c", str(ROOT / "pyproject.toml")]
    folder = ["--basetemp", str(tmp_path / "temp"), str(tests)]
    environment = os.environ | {"TOLD": str(mark_file), "GO_ON": str(go_on)}
    with (tmp_path / "log").open("wb") as log:
        run = subprocess.Popen([*command, *folder], cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        until(lambda: mark_file.exists() and mark_file.read_text(), (tmp_path / "log").read_text)
        started = started_by(mark_file.read_text())
        assert Counter(one.name().rstrip("0123456789.") for one in started) == {"python": 3, "redis-server": 2}
        assert not started & started_by(os.environ[MARK])
        if not killed:
            go_on.touch()
            assert run.wait(_WITHIN_S) == 0, (tmp_path / "log").read_text()
    finally:
        run.kill()
        run.wait()
    until(lambda: not alive(started), lambda: str(alive(started)))


def until(holds: Callable[[], object], found: Callable[[], str]) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, found()
        time.sleep(0.1)


def test_only_what_this_run_has_started_is_its_own() -> None:
    assert psutil.Process() not in started_by(os.environ[MARK])
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as one:
        assert psutil.Process(one.pid) in started_by(os.environ[MARK])
        assert started_by("that of nobody") == set()
        one.kill()
