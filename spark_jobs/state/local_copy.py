"""The local copy of a bucket's state: memory-mapped Arrow files, named by the version of the state they copy.

A bucket meets another Python worker in every batch, so nothing can be kept in a process; a worker attaches to these
files in milliseconds instead of reading the durable state back. The copy is only a cache. Its manifest is written
last, under a name that holds the version's token, and the token is committed with the durable state: a copy made by an
attempt that never committed has a token nobody asks for. Absent, damaged or of another version: each is a miss.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from dovetail.joins.state.store import RunStore
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.state.arrow_files import map_arrow, write_arrow
from dovetail.spark_jobs.state.store_manifest import FileNames, Manifest, files_of, manifest_of, store_of

_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class StateVersion:
    """``number`` counts the commits of the bucket; ``token`` tells attempts at the same number apart."""

    number: int
    token: str

    @property
    def manifest(self) -> str:
        return f"{self.number:012d}-{self.token}.json"


class LocalCopy:
    """The copies of one bucket in ``directory``."""

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self.names = FileNames()
        """Of the runs of the store that was loaded or saved last."""

    def newest(self, token: str) -> StateVersion | None:
        """Of those with ``token`` that with the highest number."""
        found = (int(path.name.split("-")[0]) for path in self._directory.glob(f"*-{token}.json"))
        number = max(found, default=None)
        return None if number is None else StateVersion(number, token)

    def load(self, version: StateVersion) -> RunStore | None:
        """The store as of ``version``; None if there is no sound copy of it."""
        try:
            manifest = json.loads((self._directory / version.manifest).read_bytes())
            if manifest["boot"] != _boot():
                return None
            sizes = manifest["bytes"]
            return store_of(manifest, self.names, lambda file: self._opened(file, sizes[file]))
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            self.names.forget_all()
            return None

    def save(self, store: RunStore, version: StateVersion) -> bool:
        """Copy ``store`` as ``version``; the copies before the last are removed. False where none is left: the store is
        too large, the disk full, or the directory removed meanwhile.
        """
        if store.unsorted or store.buffered_bytes > self._max_bytes:
            self._keep_only({})
            return False
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            manifest = self._written(store)
            unfinished = self._directory / f".{version.token}.tmp"
            unfinished.write_text(json.dumps(manifest))
            unfinished.replace(self._directory / version.manifest)
            self._keep_only(self._last_two(version.number))
        except OSError:
            self._keep_only({})
            return False
        return True

    def _opened(self, file: str, size: int) -> pa.Table:
        path = self._directory / file
        if path.stat().st_size != size:
            raise ValueError(f"{path.name} is incomplete")
        return map_arrow(path)

    def _written(self, store: RunStore) -> Manifest:
        sizes = {}
        for _, run in store.all_runs():
            path = self._directory / self.names.of(run)
            if not path.exists():
                write_arrow(LocalFolder(self._directory), path.name, run.table)
            sizes[path.name] = path.stat().st_size
        return {**manifest_of(store, self.names), "boot": _boot(), "bytes": sizes}

    def _last_two(self, number: int) -> dict[Path, Manifest]:
        """The version just written and the one before: it is asked for again if this one does not commit. A manifest of
        before a crash of the machine is none.
        """
        found: dict[Path, Manifest] = {}
        for path in self._directory.glob("*.json"):
            if int(path.name.split("-")[0]) >= number - 1:
                with suppress(ValueError, KeyError, TypeError):
                    manifest = json.loads(path.read_bytes())
                    if manifest["boot"] == _boot():
                        found[path] = manifest
        return found

    def _keep_only(self, manifests: Mapping[Path, Manifest]) -> None:
        """Remove every file that none of ``manifests`` names. A worker that has one mapped keeps its mapping."""
        kept = {path.name for path in manifests}.union(*map(files_of, manifests.values()))
        for path in self._directory.glob("*"):
            if path.name not in kept:
                path.unlink(missing_ok=True)


def _boot() -> str:
    """Files are not synced, so after a crash of the machine they may hold anything: a copy is good for one boot."""
    return _BOOT.read_text().strip() if _BOOT.exists() else ""
