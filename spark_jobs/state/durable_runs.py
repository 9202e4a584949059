"""The durable state of a fused query: runs in files of the checkpoint, as they were at one place of the inputs.

    <checkpoint>/state/<number>-<ms>-<attempt>.json   the state as of a place (``batch_log.place``): written last
    <checkpoint>/state/<attempt>-<uid>.arrow          a run

It is written every so often, not in every batch. What batches have read since is known (``source.batch_log``), so they
are run again from here where nothing newer is left. The last two are kept: the newest may be of a batch that Spark has
not committed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dovetail.changelog.errors import CheckpointMismatch
from dovetail.joins.state.store import RunStore
from dovetail.runtime.clock import now_ms
from dovetail.runtime.storage.local_folder import sync_path
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.state.arrow_files import read_arrow, write_arrow
from dovetail.spark_jobs.state.store_manifest import FileNames, Manifest, files_of, manifest_of, store_of

_FOLDER = "state"
_MANIFEST = ".json"
_KEPT = 2


@dataclass(frozen=True)
class DurableVersion:
    """number   of the batches that the state has had, in all
    place    of the inputs, up to which it has read
    """

    number: int
    place: str
    name: str


class DurableRuns:
    """Those of one checkpoint."""

    def __init__(self, checkpoint: Storage) -> None:
        self._storage = checkpoint.inside(_FOLDER)

    def versions(self) -> Sequence[DurableVersion]:
        """The newest first; those that cannot be read are none."""
        found = (self._version(name) for name in self._manifests())
        return sorted((one for one in found if one is not None), key=lambda one: -one.number)

    def has(self, place: str) -> bool:
        return any(version.place == place for version in self.versions())

    def at(self, place: str) -> RunStore:
        """As of ``place``, where a query at rest has left it. Raises CheckpointMismatch where it has not."""
        for version in self.versions():
            if version.place == place and (store := self.load(version, FileNames())) is not None:
                return store
        raise CheckpointMismatch(
            "the checkpoint is damaged: the state of the last batch is not there",
            where=self._storage.location,
            fix="restore the checkpoint from a backup, or drop the query and create it again",
        )

    @property
    def saved_s(self) -> float:
        """When the newest was written, by the clock of the wall; 0 where there is none."""
        return max((int(name.split("-")[1]) / 1_000 for name in self._manifests()), default=0.0)

    def load(self, version: DurableVersion, names: FileNames) -> RunStore | None:
        """None where one of its files is damaged."""
        try:
            return store_of(self._read(version.name), names, lambda file: read_arrow(self._storage, file))
        except (FileNotFoundError, ValueError, KeyError, TypeError, pa.ArrowException):
            names.forget_all()
            return None

    def save(self, store: RunStore, names: FileNames, number: int, place: str) -> None:
        """Once this returns, it survives a loss of power. All of ``store`` is sorted. Raises as ``Storage``."""
        there = set(self._storage.names())
        for _, run in store.all_runs():
            if (file := names.of(run)) not in there:
                write_arrow(self._storage, file, run.table)
                self._sync(file)
        name = f"{number:012d}-{now_ms()}-{names.attempt}{_MANIFEST}"
        manifest = {**manifest_of(store, names), "number": number, "place": place}
        self._storage.put(name, json.dumps(manifest).encode())
        if not there:
            self._sync("..")
        self._keep_newest()

    def _sync(self, name: str) -> None:
        """Have a file on the disk, or the names in a folder; an object store has what it has taken."""
        if (folder := self._storage.folder) is not None:
            sync_path(folder / name)

    def _keep_newest(self) -> None:
        kept = {one.name for one in self.versions()[:_KEPT]}
        for name in list(kept):
            kept.update(files_of(self._read(name)))
        for name in self._storage.names():
            if name not in kept:
                self._storage.remove(name)

    def _manifests(self) -> list[str]:
        return [name for name in self._storage.names() if name.endswith(_MANIFEST) and not name.startswith(".")]

    def _version(self, name: str) -> DurableVersion | None:
        try:
            manifest = self._read(name)
            return DurableVersion(manifest["number"], manifest["place"], name)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def _read(self, name: str) -> Manifest:
        found: Manifest = json.loads(self._storage.read(name))
        return found
