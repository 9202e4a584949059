"""What a process needs while it lives goes with it, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

from dovetail.runtime.storage.scratch import scratch


def folders(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir()]


def hold(root: Path, said: Connection) -> None:
    with scratch(root) as folder:
        (folder / "unpacked.so").write_bytes(b"library")
        said.send(folder)
        said.recv()


def test_a_folder_goes_with_its_process(tmp_path: Path) -> None:
    with scratch(tmp_path / "scratch") as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "spilled").write_bytes(b"rows")
    assert folders(tmp_path / "scratch") == []


def test_the_next_removes_what_a_killed_process_left_and_nothing_of_one_that_lives(tmp_path: Path) -> None:
    here, there = multiprocessing.get_context("fork").Pipe()
    killed = multiprocessing.get_context("fork").Process(target=hold, args=(tmp_path, there))
    killed.start()
    left = here.recv()
    with scratch(tmp_path) as own:
        assert set(folders(tmp_path)) == {left, own}
        assert (left / "unpacked.so").exists()
    assert killed.pid is not None
    os.kill(killed.pid, signal.SIGKILL)
    killed.join()
    assert folders(tmp_path) == [left]
    with scratch(tmp_path) as own:
        assert folders(tmp_path) == [own]


def test_many_begin_at_once_and_none_loses_its_own(tmp_path: Path) -> None:
    def used(number: int) -> bool:
        with scratch(tmp_path) as folder:
            (folder / str(number)).touch()
            return [path.name for path in folder.iterdir() if path.name != "lock"] == [str(number)]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(used, range(200)))
    assert folders(tmp_path) == []
