"""The local copy of a bucket's state: memory-mapped Arrow files, named by the version of the state they copy.

A bucket meets another Python worker in every batch, so nothing can be kept in a process; a worker attaches to these
files in milliseconds instead of reading the durable state back. The copy is only a cache. Its manifest is written
last, under a name that holds the version's token, and the token is committed with the durable state: a copy made by an
attempt that never committed has a token nobody asks for. Absent, damaged or of another version: each is a miss.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from dovetail.broker.query_origin import FORMAT
from dovetail.joins.state.key_weights import KeyWeights
from dovetail.joins.state.store import Run, RunStore

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
        self._files: dict[int, str] = {}
        """File by uid, of the runs that lie in the directory already."""

    def load(self, version: StateVersion) -> RunStore | None:
        """The store as of ``version``; None if there is no sound copy of it."""
        try:
            manifest = json.loads((self._directory / version.manifest).read_bytes())
            if (manifest["format"], manifest["boot"]) != (FORMAT, _boot()):
                return None
            return self._opened(manifest)
        except (OSError, ValueError, KeyError, pa.ArrowException):
            self._files.clear()
            return None

    def save(self, store: RunStore, version: StateVersion) -> None:
        """Copy ``store`` as ``version``; the copies before the last are removed.

        A full disk leaves no copy, nor does a directory that is removed meanwhile.
        """
        if store.unsorted or sum(run.table.nbytes for _, run in store.all_runs()) > self._max_bytes:
            self._keep_only([])
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            manifest = self._written(store, version)
            unfinished = self._directory / f".{version.token}.tmp"
            unfinished.write_text(json.dumps(manifest))
            unfinished.replace(self._directory / version.manifest)
            self._keep_only(_last_two(self._directory.glob("*.json"), version.number))
        except OSError:
            self._keep_only([])

    # -- reading

    def _opened(self, manifest: Mapping[str, Any]) -> RunStore:
        store = RunStore(scalars=dict(manifest["scalars"]), next_id=manifest["next_id"])
        for name in manifest["arrangements"]:
            store.runs[name] = []
        for described in manifest["runs"]:
            run = self._opened_run(described)
            store.runs[described["arrangement"]].append(run)
            self._files[run.uid] = described["file"]
        return store

    def _opened_run(self, described: Mapping[str, Any]) -> Run:
        path = self._directory / described["file"]
        if path.stat().st_size != described["bytes"]:
            raise ValueError(f"{path.name} is incomplete")
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        if table.num_rows != described["rows"]:
            raise ValueError(f"{path.name} does not hold what its manifest says")
        return Run(
            uid=described["uid"],
            table=table,
            unit=described["unit"],
            clean=described["clean"],
            entries=tuple(described["entries"]),
            durable_rows=described["durable_rows"],
            since=described["since"],
            weights=KeyWeights(described["keys"], tuple(described["heaviest"])),
        )

    # -- writing

    def _written(self, store: RunStore, version: StateVersion) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "boot": _boot(),
            "scalars": store.scalars,
            "next_id": store.next_id,
            "arrangements": list(store.runs),
            "runs": [self._written_run(arrangement, run, version) for arrangement, run in store.all_runs()],
        }

    def _written_run(self, arrangement: str, run: Run, version: StateVersion) -> dict[str, Any]:
        if run.uid not in self._files:
            # The token is part of the name: another attempt may give the same uid to other rows.
            self._files[run.uid] = f"{version.token}-{run.uid}.arrow"
            path = self._directory / self._files[run.uid]
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, run.table.schema) as writer:
                writer.write_table(run.table.combine_chunks())
        return {
            "arrangement": arrangement,
            "uid": run.uid,
            "file": self._files[run.uid],
            "bytes": (self._directory / self._files[run.uid]).stat().st_size,
            "rows": len(run),
            "unit": run.unit,
            "clean": run.clean,
            "entries": run.entries,
            "durable_rows": run.durable_rows,
            "since": run.since,
            "keys": run.weights.keys,
            "heaviest": run.weights.heaviest,
        }

    def _keep_only(self, manifests: Iterable[Path]) -> None:
        """Remove every file that none of ``manifests`` names. A worker that has one mapped keeps its mapping."""
        kept = {path.name for path in manifests}
        for path in list(manifests):
            kept.update(run["file"] for run in json.loads(path.read_bytes())["runs"])
        for path in self._directory.glob("*"):
            if path.name not in kept:
                path.unlink(missing_ok=True)


def _last_two(manifests: Iterable[Path], number: int) -> list[Path]:
    """The version just written and the one before: it is asked for again if this one does not commit."""
    return [path for path in manifests if int(path.name.split("-")[0]) >= number - 1]


def _boot() -> str:
    """Files are not synced, so after a crash of the machine they may hold anything: a copy is good for one boot."""
    return _BOOT.read_text().strip() if _BOOT.exists() else ""
