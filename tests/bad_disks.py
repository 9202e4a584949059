"""Disks that are full or cannot be written to: mounted for a test, which asks for root.

Root may write where permissions say no: nothing less than a mount stands in its way.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_PIECE = b"\0" * (1 << 16)


@contextmanager
def small_disk(folder: Path, size_mib: int) -> Iterator[Path]:
    """A disk of its own at ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        # Whoever still has a file open there goes on with it.
        _run("umount", "--lazy", str(folder))


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """The disk has no room within the block."""
    ballast = disk / "ballast"
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        _write_on(ballast)
    try:
        yield
    finally:
        ballast.unlink()


def _write_on(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while file.write(_PIECE):
            pass


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """Nobody can write to the disk within the block."""
    _run("mount", "-o", "remount,ro", str(disk))
    try:
        yield
    finally:
        _run("mount", "-o", "remount,rw", str(disk))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
