"""The end of a checkpoint that a loss of power has damaged: cut off; the query goes on from the last sound batch.

Spark syncs nothing of what it writes: a machine that loses its power may leave the last files empty, or full of zeros.
Batches that are cut off are run again as they were (``source.batch_log``), and not written where the broker has them.

    offsets  0 1 2 3 4 (5)    5 is damaged: it goes
    commits  0 1 2 3 4
    state    1 2 3 4 (5)      that of batch 4 is damaged: it goes, and the commit of 4. Batch 4 is run again
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.state.checkpoint import logged_batches

_VERSION = re.compile(r"(\d+)\.(?:changelog|zip)")
_SNAPSHOT = ".zip"
_FOOTER = 8
_ANY = 1 << 62
_LINES = {"offsets": 3, "commits": 2}
"""Of a file of a log: its version, and JSON."""


def cut_damaged_tail(spark: Storage) -> str:
    """Remove from Spark's checkpoint what is damaged, and the batches that were built on it; '' where nothing is, else
    what was done. Nobody may be writing there. In an object store files are whole, or not there.
    """
    if spark.folder is None:
        return ""
    offsets, commits = (_Log.of(spark, name) for name in _LINES)
    state = _State(spark)
    last = -1
    for batch in sorted(commits.numbers):
        if batch not in commits.sound & offsets.sound or batch + 1 > state.newest:
            break
        last = batch
    if not (commits.damaged or offsets.damaged or state.damaged) and last == max(commits.numbers, default=-1):
        return ""
    commits.cut(last)
    offsets.cut(last + 1)
    for path in state.damaged:
        _remove(spark, path)
    return f"the end of the checkpoint was damaged, as by a loss of power: the query goes on behind batch {last}"


@dataclass(frozen=True)
class _Log:
    """A file for each batch."""

    spark: Storage
    name: str
    numbers: frozenset[int]
    sound: frozenset[int]

    @staticmethod
    def of(spark: Storage, name: str) -> _Log:
        numbers = frozenset(logged_batches(spark, name))
        sound = frozenset(batch for batch in numbers if _is_whole(spark.read(f"{name}/{batch}"), _LINES[name]))
        return _Log(spark, name, numbers, sound)

    @property
    def damaged(self) -> frozenset[int]:
        return self.numbers - self.sound

    def cut(self, last: int) -> None:
        """Have no batch behind ``last``, and none that is damaged."""
        for batch in self.numbers:
            if batch > last or batch in self.damaged:
                _remove(self.spark, f"{self.name}/{batch}")


def _remove(spark: Storage, path: str) -> None:
    """With the sum that Hadoop has of it."""
    folder, _, name = path.rpartition("/")
    spark.remove(path)
    spark.remove(f"{folder}/.{name}.crc")


def _is_whole(content: bytes, lines: int) -> bool:
    try:
        found = content.decode().splitlines()
        for line in found[1:lines]:
            json.loads(line)
    except ValueError:
        return False
    return len(found) >= lines


class _State:
    """The versions of Spark's stores: ``newest`` is the last at which each of them can be read; without any store
    nothing stands against any batch.
    """

    def __init__(self, spark: Storage) -> None:
        self._spark = spark
        self.damaged: list[str] = []
        stores: defaultdict[str, list[str]] = defaultdict(list)
        for path in sorted(spark.files("state")):
            folder, _, name = path.rpartition("/")
            if _VERSION.fullmatch(name):
                stores[folder].append(name)
            elif folder.endswith("/_metadata/v2") and name.isdigit() and not _is_whole(spark.read(path), 2):
                self.damaged.append(path)
        without_schema = bool(self.damaged)
        newest = [self._newest(folder, names) for folder, names in stores.items()]
        self.newest = 0 if without_schema else min(newest, default=_ANY)

    def _newest(self, folder: str, names: list[str]) -> int:
        """A version is read from a snapshot, or from the one before and what has changed since."""
        readable = 0
        for version, files in self._by_version(names):
            sound = [name for name in files if self._is_sound(folder, name)]
            self.damaged += [f"{folder}/{name}" for name in files if name not in sound]
            follows = readable in (0, version - 1) and any(not name.endswith(_SNAPSHOT) for name in sound)
            if follows or any(name.endswith(_SNAPSHOT) for name in sound):
                readable = version
        return readable

    def _by_version(self, names: list[str]) -> Iterator[tuple[int, list[str]]]:
        versions: defaultdict[int, list[str]] = defaultdict(list)
        for name in names:
            versions[int(name.partition(".")[0])].append(name)
        yield from sorted(versions.items())

    def _is_sound(self, folder: str, name: str) -> bool:
        path = f"{folder}/{name}"
        if not name.endswith(_SNAPSHOT):
            return self._begins(path)
        try:
            with self._spark.opened(path) as file, zipfile.ZipFile(file) as snapshot:
                described = json.loads(snapshot.read("metadata").split(b"\n", 1)[1])
            tables = {f"{folder}/SSTs/{table['dfsSstFileName']}": table["sizeBytes"] for table in described["sstFiles"]}
            return all(self._spark.size(path) == size and self._ends(path) for path, size in tables.items())
        except (zipfile.BadZipFile, OSError, ValueError, KeyError, IndexError):
            return False

    def _begins(self, path: str) -> bool:
        with self._spark.opened(path) as file:
            return file.read(1) not in (b"", b"\0")

    def _ends(self, path: str) -> bool:
        """A table of RocksDB ends with a number of its own."""
        with self._spark.opened(path) as file:
            file.seek(-_FOOTER, os.SEEK_END)
            return any(file.read(_FOOTER))
