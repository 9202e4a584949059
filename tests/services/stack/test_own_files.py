"""A stack that was started under a lax umask: nothing of its folder is for another user of the machine."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.services.stack.temporary import temporary_settings

pytestmark = pytest.mark.services


def dovetail(folder: Path, *arguments: str) -> str:
    """The command line, as somebody with the usual umask calls it."""
    done = subprocess.run(
        [sys.executable, "-m", "dovetail.services.cli.main", *arguments],
        env=os.environ | temporary_settings(folder).as_environment(),
        umask=0o022,
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """Of a stack that runs, in the folder that an earlier version has left."""
    folder = tmp_path / "data"
    (folder / "logs").mkdir(parents=True)
    (folder / "catalog.db").touch(0o644)
    dovetail(folder, "up")
    dovetail(folder, "sql", "-c", "CREATE STREAM s (id int64); CREATE MATERIALIZED VIEW v AS SELECT id FROM s")
    yield folder
    dovetail(folder, "down")


def test_nothing_of_a_stack_is_for_other_users(data_dir: Path) -> None:
    found = {path: path.lstat().st_mode for path in (data_dir, *data_dir.rglob("*")) if not path.is_symlink()}
    # Spark lets everybody execute its copies of jars, in a folder that nobody else enters.
    lax = [f"{path} {stat.filemode(mode)}" for path, mode in found.items() if mode & 0o077 and path.suffix != ".jar"]
    assert lax == []
    names = {path.name for path in data_dir.iterdir()}
    assert names >= {
        "catalog.db",
        "checkpoints",
        "kafka",
        "logs",
        "redis",
        "registry",
        "scratch",
        "stack.json",
        "worker",
    }
