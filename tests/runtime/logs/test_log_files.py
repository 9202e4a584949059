"""Logs of bounded size: what is kept, and what a reader sees of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dovetail.runtime.logs.log_files import LogLimits, append, cut, numbered, remove, shift
from dovetail.runtime.logs.log_reading import Following, last_lines
from tests.paths import ROOT

LIMITS = LogLimits(max_bytes=100, files=3)
LINES = [f"line {number:04d}" for number in range(100)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "x.log"


def written(log: Path, line: str) -> None:
    append(log, f"{line}\n", LIMITS)


def held_open(log: Path, line: str) -> None:
    """As a component does, which knows nothing of limits, while its supervisor looks after them."""
    log.parent.mkdir(exist_ok=True)
    with log.open("ab") as file:
        file.write(f"{line}\n".encode())
    cut(log, LIMITS)


@pytest.mark.parametrize("write", [written, held_open])
def test_the_last_lines_are_kept_in_so_many_files_of_such_a_size(log: Path, write: Callable[[Path, str], None]) -> None:
    for line in LINES:
        write(log, line)
    files = sorted(log.parent.iterdir())
    assert files == sorted(numbered(log, LIMITS.files))
    assert all(file.stat().st_size <= LIMITS.max_bytes + len(LINES[0]) + 1 for file in files)
    kept = last_lines(log, LIMITS.files, 1000)
    assert kept == LINES[-len(kept) :]
    assert len(kept) > 2 * LIMITS.max_bytes // (len(LINES[0]) + 1) - 1
    assert last_lines(log, LIMITS.files, 3) == LINES[-3:]


def test_whoever_follows_sees_each_line_once_while_files_move_on(log: Path) -> None:
    written(log, "before")
    following = Following(log)
    seen: list[str] = []
    for line in LINES:
        written(log, line)
        seen += following.new_lines()
    following.close()
    assert seen == LINES


def test_whoever_follows_goes_on_after_the_file_was_emptied(log: Path) -> None:
    held_open(log, "x" * 50)
    following = Following(log)
    held_open(log, "x" * 60)
    assert log.read_bytes() == b""
    held_open(log, "after")
    assert following.new_lines() == ["after"]
    following.close()


def test_one_that_is_not_there_yet_is_followed(log: Path) -> None:
    following = Following(log)
    assert following.new_lines() == []
    written(log, "first")
    assert following.new_lines() == ["first"]
    following.close()


def test_half_a_line_waits_for_the_rest(log: Path) -> None:
    written(log, "")
    following = Following(log)
    append(log, "ha", LIMITS)
    assert following.new_lines() == []
    append(log, "lf\nnext\n", LIMITS)
    assert following.new_lines() == ["half", "next"]
    following.close()


def test_a_process_that_has_it_open_goes_on_at_its_beginning(log: Path) -> None:
    log.parent.mkdir()
    with log.open("ab", buffering=0) as file:
        file.write(b"x" * 200 + b"\n")
        cut(log, LIMITS)
        file.write(b"after\n")
    assert log.read_bytes() == b"after\n"
    assert numbered(log, 2)[1].read_bytes() == b"x" * 200 + b"\n"


def test_one_file_alone_begins_anew(log: Path) -> None:
    for line in LINES:
        append(log, f"{line}\n", LogLimits(max_bytes=100, files=1))
    assert [file.name for file in log.parent.iterdir()] == ["x.log"]
    shift(log, files=1)
    assert list(log.parent.iterdir()) == []


def test_what_is_removed_leaves_no_older_file(log: Path) -> None:
    for line in LINES:
        written(log, line)
    remove(log, LIMITS.files)
    assert list(log.parent.iterdir()) == []


_WRITER = """
import sys
from pathlib import Path
from dovetail.runtime.logs.log_files import LogLimits, append
for number in range(300):
    append(Path(sys.argv[1]), f"{sys.argv[2]} {number}\\n", LogLimits(1000, 50))
"""


def test_several_processes_lose_no_line_of_each_other(log: Path) -> None:
    names = ("a", "b", "c")
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(log), name], cwd=ROOT) for name in names]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    lines = last_lines(log, 50, 10_000)
    for name in names:
        assert [line for line in lines if line.startswith(name)] == [f"{name} {number}" for number in range(300)]
