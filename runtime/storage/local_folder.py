"""A folder that this machine sees: its own disk, or one that is mounted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa


@dataclass(frozen=True)
class LocalFolder:
    """A ``Storage`` whose files are mapped where they lie."""

    folder: Path

    @property
    def location(self) -> str:
        return str(self.folder.absolute())

    @property
    def url(self) -> str:
        return f"file:{self.location}"

    def inside(self, name: str) -> LocalFolder:
        return LocalFolder(self.folder / name)

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        with (self.folder / name).open("rb") as file:
            yield file

    def size(self, name: str) -> int:
        return (self.folder / name).stat().st_size

    def put(self, name: str, content: bytes) -> None:
        path = self._made(name)
        unfinished = path.with_name(f".{path.name}.tmp")
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # Hadoop's sum of the former content, where it has written that.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        unfinished.replace(path)
        sync_path(path.parent)

    @contextmanager
    def writing(self, name: str) -> Iterator[pa.NativeFile]:
        with pa.OSFile(str(self._made(name)), "wb") as file:
            yield file

    def names(self, under: str = "") -> list[str]:
        return [path.name for path in (self.folder / under).glob("*")]

    def files(self, under: str = "") -> list[str]:
        walked = os.walk(self.folder / under)
        return [str((Path(folder) / name).relative_to(self.folder)) for folder, _, names in walked for name in names]

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def sync(self, changed_since_s: float = 0.0) -> None:
        if self.folder.exists():
            for path in [*self.folder.rglob("*"), self.folder, self.folder.parent]:
                with suppress(FileNotFoundError):  # Spark removes what it needs no more
                    if path.stat().st_mtime >= changed_since_s:
                        sync_path(path)

    def _made(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def sync_path(path: Path) -> None:
    """Have a file on the disk, or the names in a folder."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
