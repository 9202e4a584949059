"""Files that statements name: those below one folder, and no others.

Symbolic links and ``..`` are followed before a place is judged, so one that leads out is refused as the place it leads
to; a refusal is the same whether something is there or not. Devices and FIFOs are no files here: to open one may wait
forever, or do something.
"""

from __future__ import annotations

import math
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from dovetail.changelog.errors import SourceRefused

_SECRET_BYTES = 1 << 20
"""Largest file of a password, a certificate or a key."""


@dataclass(frozen=True)
class Folder:
    folder: Path
    secrets: Path
    max_bytes: int

    def place(self, path: str, where: str) -> Path:
        """The absolute place of ``path``, without links. Raises SourceRefused where it is outside, or no plain file.

        What is not there is not refused: whoever opens it says so.
        """
        found = _below(self.folder, path)
        if found is None:
            raise SourceRefused(
                f"{path} is outside of the folder of files that statements may name",
                where=where,
                fix=f"put the file into {self.folder}, or set DOVETAIL_FILES_DIR",
            )
        return _plain(found, path, math.inf, where)

    def read(self, path: str, where: str) -> bytes:
        """The content of ``path``. Raises as ``place``, and OSError."""
        return _content(self.place(path, where), path, self.max_bytes, where)

    def secret_place(self, path: str, where: str) -> Path:
        """As ``place``; a file that lies directly in ``secrets`` is taken too."""
        found = self._mounted(path) or _below(self.folder, path)
        if found is None:
            raise SourceRefused(
                f"{path} is outside of the folders of secrets that statements may name",
                where=where,
                fix=f"put the file into {self.secrets} or {self.folder}, or set DOVETAIL_SECRETS_DIR or"
                " DOVETAIL_FILES_DIR",
            )
        return _plain(found, path, _SECRET_BYTES, where)

    def read_secret(self, path: str, where: str) -> str:
        """The text of a secret. Raises as ``secret_place``, OSError and UnicodeDecodeError."""
        return _content(self.secret_place(path, where), path, _SECRET_BYTES, where).decode()

    def _mounted(self, path: str) -> Path | None:
        # Only directly in it: in folders of its own Kubernetes mounts the login of the pod.
        return _below(self.secrets, path) if Path(os.path.normpath(path)).parent == self.secrets else None


def _below(folder: Path, path: str) -> Path | None:
    """``path``, from ``folder`` on, without links; None where it is not below the folder."""
    try:
        root = folder.resolve()
        found = (root / path).resolve()
    except (OSError, RuntimeError, ValueError):  # links in a circle, a name too long, a zero byte
        return None
    return found if root in found.parents else None


def _plain(found: Path, path: str, max_bytes: float, where: str) -> Path:
    try:
        there = found.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return found
    except OSError as error:  # a name too long
        raise SourceRefused(f"{path} cannot be read: {error.strerror}", where=where, fix="name a file") from error
    _expect_plain(there, path, max_bytes, where)
    return found


def _content(found: Path, path: str, max_bytes: int, where: str) -> bytes:
    """Judged again once it is open: in between it may have become another."""
    opened = os.open(found, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as file:
        _expect_plain(os.fstat(opened), path, max_bytes, where)
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise _too_large(path, max_bytes, where)
    return content


def _expect_plain(there: os.stat_result, path: str, max_bytes: float, where: str) -> None:
    if not stat.S_ISREG(there.st_mode):
        kind = "a folder" if stat.S_ISDIR(there.st_mode) else "a device, a pipe or a socket"
        raise SourceRefused(f"{path} is {kind}, and no file", where=where, fix="name a file")
    if there.st_size > max_bytes:
        raise _too_large(path, max_bytes, where)


def _too_large(path: str, max_bytes: float, where: str) -> SourceRefused:
    return SourceRefused(
        f"{path} has more than {max_bytes:,} bytes",
        where=where,
        fix="name a smaller file; DOVETAIL_SOURCE_MAX_BYTES bounds those of FILE",
    )
