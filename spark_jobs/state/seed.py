"""The state that a checkpoint begins with: that of another one, cut into the buckets of this one.

<checkpoint>/seed/<level>/scalars.json                    the numbers of each bucket
<checkpoint>/seed/<level>/<bucket>/<former>.<arrangement>.arrow   its rows, by the bucket that they came from

It is read by the first batch, which goes to every bucket of every level and writes all of it to the state. Once that
batch is committed it is of no use, and goes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from joins.state.store import RunEntry, RunStore
from spark_jobs.state.checkpoint import Checkpoint

_FOLDER = "seed"
_SCALARS = "scalars.json"
_ARROW = ".arrow"


class Seed:
    """The seed in a checkpoint, if it has one."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = Checkpoint(checkpoint)
        self.folder = checkpoint / _FOLDER

    @property
    def there(self) -> bool:
        return self.folder.exists()

    def store(self, level: int, bucket: int) -> RunStore:
        """What a bucket begins with."""
        if not self.there:
            return RunStore()
        return RunStore.seeded(self.entries(level, bucket), self.scalars(level))

    def entries(self, level: int, bucket: int) -> Iterator[RunEntry]:
        """In the order of the buckets that they came from, and of each in that of its rows."""
        for path in sorted((self.folder / str(level) / str(bucket)).glob(f"*{_ARROW}")):
            _, _, arrangement = path.name.removesuffix(_ARROW).partition(".")
            yield RunEntry(arrangement, _rows(path))

    def scalars(self, level: int) -> dict[str, int]:
        found: dict[str, int] = json.loads((self.folder / str(level) / _SCALARS).read_text())
        return found

    def put_scalars(self, level: int, scalars: Mapping[str, int]) -> None:
        (self.folder / str(level)).mkdir(parents=True, exist_ok=True)
        (self.folder / str(level) / _SCALARS).write_text(json.dumps(dict(scalars)))

    @property
    def bytes(self) -> int:
        """How large it is, or has become so far."""
        return sum(path.stat().st_size for path in self.folder.rglob(f"*{_ARROW}"))

    @property
    def rows(self) -> int:
        return sum(_rows(path).num_rows for path in self.folder.rglob(f"*{_ARROW}"))

    def drop_once_committed(self) -> None:
        """It has gone into the state with the first batch."""
        if self.there and self._checkpoint.committed() is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _rows(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


class SeedWriter:
    """Writes the rows of a level; they are in the files at the end of the ``with``."""

    def __init__(self, seed: Seed, level: int) -> None:
        self._folder = seed.folder / str(level)
        self._open: dict[Path, pa.RecordBatchFileWriter] = {}
        self._files = ExitStack()

    def write(self, former: int, bucket: int, entry: RunEntry) -> None:
        """Rows that ``bucket`` has from the ``former`` one, behind those that it has from there already."""
        path = self._folder / str(bucket) / f"{former:05d}.{entry.arrangement}{_ARROW}"
        if path not in self._open:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = self._files.enter_context(pa.OSFile(str(path), "wb"))
            self._open[path] = self._files.enter_context(pa.ipc.new_file(file, entry.table.schema))
        self._open[path].write_table(entry.table)

    def __enter__(self) -> SeedWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()


def sync(folder: Path) -> None:
    """Have all of ``folder`` on the disk."""
    for path in [*folder.rglob("*"), folder, folder.parent]:
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
