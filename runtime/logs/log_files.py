"""Log files of bounded size: one that is full moves on to ``<name>.1``, that one to ``.2``, and the last one goes."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LogLimits:
    """max_bytes  of each file
    files      of each log, the one that is written to among them
    """

    max_bytes: int
    files: int


def numbered(path: Path, files: int) -> list[Path]:
    """The files of a log, the newest first; not all need be there."""
    return [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, files))]


def shift(path: Path, files: int) -> None:
    """Let the next line begin a file of its own."""
    _move_up(numbered(path, files))


def _move_up(places: list[Path]) -> None:
    places[-1].unlink(missing_ok=True)
    for newer, older in reversed(list(itertools.pairwise(places))):
        with suppress(FileNotFoundError):
            newer.replace(older)


def append(path: Path, text: str, limits: LogLimits) -> None:
    """Write ``text`` at the end of a log that other processes write to as well."""
    line = text.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_at(path, file.fileno()):
                continue  # another process has moved it on meanwhile
            size = os.fstat(file.fileno()).st_size
            if size and size + len(line) > limits.max_bytes:
                shift(path, limits.files)
                continue
            file.write(line)
            return


def _is_at(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    return False


def cut(path: Path, limits: LogLimits) -> None:
    """As ``shift``, where the file is full, and a process that knows nothing of this has it open for appending: it is
    copied, and emptied. A line that comes between the two is lost; a pipe in its place would end whoever writes to it
    when its reader ends.
    """
    if not path.exists() or path.stat().st_size <= limits.max_bytes:
        return
    if limits.files > 1:
        copy = path.with_name(f"{path.name}.partial")
        try:
            shutil.copyfile(path, copy)
        except OSError:
            copy.unlink(missing_ok=True)
            raise
        older = numbered(path, limits.files)[1:]
        _move_up(older)
        copy.replace(older[0])
    os.truncate(path, 0)


def remove(path: Path, files: int) -> None:
    for one in numbered(path, files):
        one.unlink(missing_ok=True)
