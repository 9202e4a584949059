"""The state that a checkpoint begins with: that of another one, cut into the buckets of this one.

<checkpoint>/seed/<level>/scalars.json                    the numbers of each bucket
<checkpoint>/seed/<level>/<bucket>/<former>.<arrangement>.arrow   its rows, by the bucket that they came from

It is read by the first batch, which goes to every bucket of every level and writes all of it to the state. Once that
batch is committed it is of no use, and goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress

import pyarrow as pa

from dovetail.joins.state.store import RunEntry, RunStore
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.state.arrow_files import read_arrow
from dovetail.spark_jobs.state.checkpoint import Checkpoint

_FOLDER = "seed"
_SCALARS = "scalars.json"
_ARROW = ".arrow"


class Seed:
    """The seed in a checkpoint, if it has one."""

    def __init__(self, checkpoint: Storage) -> None:
        self._checkpoint = Checkpoint(checkpoint)
        self.storage = checkpoint.inside(_FOLDER)
        self.spent = False

    @property
    def there(self) -> bool:
        return bool(self.storage.names())

    def store(self, level: int, bucket: int) -> RunStore:
        """What a bucket begins with."""
        if not self.there:
            return RunStore()
        return RunStore.seeded(self.entries(level, bucket), self.scalars(level))

    def entries(self, level: int, bucket: int) -> Iterator[RunEntry]:
        """In the order of the buckets that they came from, and of each in that of its rows."""
        place = self.storage.inside(f"{level}/{bucket}")
        for name in sorted(place.names()):
            _, _, arrangement = name.removesuffix(_ARROW).partition(".")
            yield RunEntry(arrangement, read_arrow(place, name))

    def scalars(self, level: int) -> dict[str, int]:
        found: dict[str, int] = json.loads(self.storage.read(f"{level}/{_SCALARS}"))
        return found

    def put_scalars(self, level: int, scalars: Mapping[str, int]) -> None:
        """Beside those that are there, of other parts of the level."""
        with suppress(FileNotFoundError):
            scalars = {**self.scalars(level), **scalars}
        self.storage.put(f"{level}/{_SCALARS}", json.dumps(dict(scalars)).encode())

    @property
    def bytes(self) -> int:
        """How large it is, or has become so far."""
        return sum(self.storage.size(name) for name in self._files())

    @property
    def rows(self) -> int:
        return sum(read_arrow(self.storage, name).num_rows for name in self._files())

    def _files(self) -> list[str]:
        return [name for name in self.storage.files() if name.endswith(_ARROW)]

    def drop_once_committed(self) -> None:
        """It has gone into the state with the first batch."""
        if not self.spent and self._checkpoint.committed() is not None:
            self._checkpoint.spark.sync()
            self.storage.clear()
            self.spent = True


class SeedWriter:
    """Writes the rows of a level; they are in the files at the end of the ``with``."""

    def __init__(self, seed: Seed, level: int) -> None:
        self._place = seed.storage.inside(str(level))
        self._open: dict[str, pa.RecordBatchFileWriter] = {}
        self._files = ExitStack()

    def write(self, former: int, bucket: int, entry: RunEntry) -> None:
        """Rows that ``bucket`` has from the ``former`` one, behind those that it has from there already."""
        name = f"{bucket}/{former:05d}.{entry.arrangement}{_ARROW}"
        if name not in self._open:
            file = self._files.enter_context(self._place.writing(name))
            self._open[name] = self._files.enter_context(pa.ipc.new_file(file, entry.table.schema))
        self._open[name].write_table(entry.table)

    def __enter__(self) -> SeedWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()
