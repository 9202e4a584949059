"""What a checkpoint asks of the place it is kept in.

A file is read whole and put whole: whoever reads meanwhile finds the former one, the new one or none. Nothing is
renamed, since an object store cannot. Names are paths inside the place, with slashes.
"""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

_PIECE = 1 << 20


class Storage(Protocol):
    """One place: ``LocalFolder`` or ``ObjectStore``.

    Where the place does not answer, or refuses, a folder raises OSError; an object store ServiceUnavailable or
    StorageRefused. FileNotFoundError is that of one file in either.
    """

    def __hash__(self) -> int: ...

    @property
    def location(self) -> str:
        """As settings and the catalog name it."""
        ...

    @property
    def url(self) -> str:
        """As Spark's notes name it."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where its files can be mapped into memory; None where they have to be copied first."""
        ...

    def inside(self, name: str) -> Storage: ...

    def read(self, name: str) -> bytes: ...

    def opened(self, name: str) -> AbstractContextManager[BinaryIO]:
        """For one that is too large to be read at once."""
        ...

    def size(self, name: str) -> int: ...

    def put(self, name: str, content: bytes) -> None:
        """Once this returns, the file survives a loss of power."""
        ...

    def writing(self, name: str) -> AbstractContextManager[pa.NativeFile]:
        """For one that is too large to be put at once, and that nobody reads before another file names it."""
        ...

    def names(self, under: str = "") -> list[str]:
        """Of the files and folders right in a folder; none where it is not there."""
        ...

    def files(self, under: str = "") -> list[str]:
        """The files in a folder and in those below it, named from the place on."""
        ...

    def remove(self, name: str) -> None:
        """Nothing happens where it is not there."""
        ...

    def clear(self) -> None:
        """Remove all that is in the place, and the place."""
        ...

    def sync(self, changed_since_s: float = 0.0) -> None:
        """Once this returns, all that is in the place survives a loss of power; of the files those that were written
        since a moment, by the clock of the wall.
        """
        ...


def copy_file(source: Storage, name: str, target: Storage) -> None:
    """One file, under the same name."""
    with source.opened(name) as read, target.writing(name) as written:
        shutil.copyfileobj(read, written, _PIECE)
