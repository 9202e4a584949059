"""The console on a terminal: a pseudo-terminal stands in for the person."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dovetail.runtime.processes import interpreters
from dovetail.services.stack import Stack
from tests.services.cli.interpreter import PRELOADED, START, ready

pytestmark = pytest.mark.services

_PATIENCE_S = 60.0
_CURSOR_QUERY, _CURSOR_ANSWER = b"\x1b[6n", b"\x1b[1;1R"


class Terminal:
    """What a person sees and types. Answers the one question that a console asks: where the cursor is."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.seen = b""

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def read_until(self, text: str) -> str:
        """What comes up to ``text``, which is what the next call begins after."""
        wanted, end = text.encode(), time.monotonic() + _PATIENCE_S
        while wanted not in self.seen:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} did not come; there was {self.seen!r}"
            part = os.read(self._descriptor, 65_536)
            if _CURSOR_QUERY in part:
                os.write(self._descriptor, _CURSOR_ANSWER)
            self.seen += part
        before, _, self.seen = self.seen.partition(wanted)
        return before.decode(errors="replace")


@contextmanager
def console(environment: dict[str, str]) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    master, slave = pty.openpty()
    argv = [*START, "sql"]
    process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True)
    os.close(slave)
    try:
        yield Terminal(master), process
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.fixture(params=["imported", "forked"])
def environment(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[dict[str, str]]:
    """Of commands that import for themselves, and of such that are forked."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    environment = os.environ | {
        "DOVETAIL_DATA_DIR": str(tmp_path),
        "DOVETAIL_BROKERS": stack.endpoint("kafka"),
        "XDG_STATE_HOME": str(tmp_path),
        "TERM": "xterm",
    }
    if request.param == "imported":
        yield environment
        return
    server = ready([PRELOADED], environment)
    yield environment
    interpreters.withdraw(server.pid)
    server.close()


def test_statements_over_several_lines_errors_and_leaving(environment: dict[str, str], tmp_path: Path) -> None:
    with console(environment) as (terminal, process):
        terminal.read_until("dovetail>")
        terminal.type("CREATE STREAM typed (\r")
        terminal.type("id int64);\r")
        terminal.read_until("created stream typed")
        terminal.type("INSERT INTO typed VALUES (7);\r")
        terminal.read_until("inserted 1 row")
        terminal.type("SELECT idd FROM table(typed);\r")
        terminal.read_until("error:")
        terminal.type("SELECT id FROM table(typed);\r")
        terminal.read_until("┌")
        terminal.read_until("1 row")
        terminal.type("\\d typed\r")
        terminal.read_until("int64")
        terminal.read_until("dovetail>")
        terminal.type("\\d\r")
        terminal.read_until("typed")
        terminal.read_until("definition")
        terminal.type("DROP STREAM typed WITH DATA;\r")
        terminal.read_until("dropped stream typed")
        terminal.read_until("dovetail>")
        terminal.type("\x04")
        assert process.wait(_PATIENCE_S) == 0
    assert "INSERT INTO typed VALUES (7);" in (tmp_path / "dovetail" / "history").read_text()


def test_cascade_asks_before_more_goes_than_was_named(environment: dict[str, str]) -> None:
    with console(environment) as (terminal, process):
        terminal.read_until("dovetail>")
        terminal.type("CREATE STREAM asked (id int64); CREATE VIEW above AS SELECT id FROM asked;\r")
        terminal.read_until("created view above")
        for answer in ("\r", "n\r"):
            terminal.type("DROP STREAM asked CASCADE WITH DATA;\r")
            terminal.read_until("also drops view above, and the records of their topics. Continue? [y/N]")
            terminal.type(answer)
            terminal.read_until("nothing was dropped")
            terminal.read_until("dovetail>")
        terminal.type("DROP STREAM asked CASCADE WITH DATA;\r")
        terminal.read_until("Continue? [y/N]")
        terminal.type("y\r")
        terminal.read_until("deleted with all records: asked")
        terminal.read_until("dovetail>")
        terminal.type("\x04")
        assert process.wait(_PATIENCE_S) == 0


def test_a_table_is_drawn_in_place_until_ctrl_c(environment: dict[str, str]) -> None:
    with console(environment) as (terminal, process):
        terminal.read_until("dovetail>")
        terminal.type("\\mode table\r")
        terminal.read_until("in place")
        terminal.type("CREATE MUTABLE STREAM placed (id int64, n int64) PRIMARY KEY (id);\r")
        terminal.read_until("created")
        terminal.type("INSERT INTO placed VALUES (1, 5), (2, 6); INSERT INTO placed VALUES (1, 7);\r")
        terminal.read_until("inserted 1 row")
        terminal.type("PRINT placed FROM BEGINNING;\r")
        terminal.read_until("2 rows; ")
        terminal.read_until("changes per second")
        process.send_signal(signal.SIGINT)
        terminal.read_until("cancelled")
        terminal.read_until("3 rows in")
        terminal.type("DROP STREAM placed WITH DATA;\r")
        terminal.read_until("dropped stream placed")
        terminal.read_until("dovetail>")
        terminal.type("\x04")
        assert process.wait(_PATIENCE_S) == 0


def test_ctrl_c_clears_the_line_and_q_leaves(environment: dict[str, str]) -> None:
    with console(environment) as (terminal, process):
        terminal.read_until("dovetail>")
        terminal.type("SELECT something")
        terminal.type("\x03")
        terminal.read_until("dovetail>")
        terminal.type("help;\r")
        terminal.read_until("Ctrl-D leaves")
        terminal.type("\\q\r")
        assert process.wait(_PATIENCE_S) == 0


def test_ctrl_c_ends_what_follows_a_topic(environment: dict[str, str]) -> None:
    argv = START
    subprocess.run([*argv, "sql", "-c", "CREATE STREAM followed (id int64)"], env=environment, check=True)
    with subprocess.Popen([*argv, "tail", "followed"], env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "Ctrl-C ends it" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(_PATIENCE_S) == 130
        # A line that is being written when the signal comes may be written again.
        assert process.stderr.read().endswith("interrupted\n")
    subprocess.run([*argv, "sql", "-c", "DROP STREAM followed WITH DATA"], env=environment, check=True)
