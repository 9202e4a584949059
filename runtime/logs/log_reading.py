"""Log files read: their last lines, and those to come, also when a file moves on or is emptied meanwhile."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from dovetail.runtime.logs.log_files import numbered


def last_lines(path: Path, files: int, count: int) -> list[str]:
    """The last lines of a log, of its older files too where the newest has not so many."""
    lines: list[str] = []
    for one in numbered(path, files):
        if len(lines) >= count:
            break
        with suppress(FileNotFoundError):
            lines = one.read_text(errors="replace").splitlines() + lines
    return lines[-count:]


class Following:
    """The lines of a log that come after this is made; it need not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = b""
        self._file = self._opened()
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def new_lines(self) -> list[str]:
        """Whole lines that have come since the last call."""
        written = self._read()
        if self._has_moved():
            self.close()
            self._file = self._opened()
            written += self._read()
        *whole, self._rest = (self._rest + written).split(b"\n")
        return [line.decode(errors="replace") for line in whole]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _opened(self) -> BinaryIO | None:
        with suppress(FileNotFoundError):
            return self._path.open("rb")
        return None

    def _read(self) -> bytes:
        if self._file is None:
            return b""
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
        return self._file.read()

    def _has_moved(self) -> bool:
        """Whether another file is at the place now."""
        with suppress(FileNotFoundError):
            now = self._path.stat()
            return self._file is None or now.st_ino != os.fstat(self._file.fileno()).st_ino
        return False
