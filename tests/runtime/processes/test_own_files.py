"""What is taken from other users, and what is left as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.runtime.processes.own_files import keep_to_owner, tighten
from tests.paths import ROOT
from tests.test_layers import PRESENT, sources


@pytest.fixture(autouse=True)
def umask_022() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    tighten(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700


def test_what_an_earlier_version_has_left_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / ".dovetail"
    for name in ("checkpoints", "logs", "kafka"):
        (folder / name).mkdir(parents=True)
    for name in ("catalog.db", "catalog.db-wal", "stack.json", "up.lock"):
        (folder / name).touch(0o644)
    tighten(folder)
    assert mode(folder) == 0o700
    assert {mode(entry) for entry in folder.iterdir() if entry.is_dir()} == {0o700}
    assert {mode(entry) for entry in folder.iterdir() if entry.is_file()} == {0o600}


def test_a_folder_of_others_stays_open_and_what_is_dovetails_in_it_does_not(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "prices.csv").touch(0o644)
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (folder / "logs").symlink_to(outside)
    tighten(folder)
    assert (mode(folder), mode(folder / "checkpoints"), mode(folder / "prices.csv")) == (0o755, 0o700, 0o644)
    assert mode(outside) == 0o755


def test_what_a_process_makes_from_then_on_is_its_owners(tmp_path: Path) -> None:
    keep_to_owner(tmp_path / "data")
    (tmp_path / "data" / "x").touch()
    (tmp_path / "data" / "y").mkdir()
    assert (mode(tmp_path / "data" / "x"), mode(tmp_path / "data" / "y")) == (0o600, 0o700)


def test_every_process_begins_so() -> None:
    mains = [path for layer in PRESENT for path in sources(layer) if path.name == "__main__.py"]
    assert len(mains) == 4
    assert [path for path in mains if "exit_code_of(" not in path.read_text()] == []
    for path in ("runtime/processes/start.py", "services/stack/stack_supervisor.py"):
        assert "keep_to_owner(settings.data_dir)" in (ROOT / path).read_text()
