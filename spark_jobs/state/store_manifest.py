"""What describes a store whose runs lie in files: one document, beside the files that it names.

A run is immutable, so its file is written once, and a later document names it again. The name of a file is its own:
another attempt at the same batch may give the same ``uid`` to other rows, and writes them to a file of another name.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dovetail.broker.query_origin import FORMAT
from dovetail.joins.state.key_weights import KeyWeights
from dovetail.joins.state.store import Run, RunStore

Manifest = dict[str, Any]


@dataclass
class FileNames:
    """Of the runs of one store, by uid; ``attempt`` tells those apart that this process has named."""

    attempt: str = field(default_factory=lambda: uuid.uuid4().hex)
    _names: dict[int, str] = field(default_factory=dict)

    def of(self, run: Run) -> str:
        """The same for the life of the run."""
        return self._names.setdefault(run.uid, f"{self.attempt}-{run.uid}.arrow")

    def keep(self, uid: int, name: str) -> None:
        self._names[uid] = name

    def forget_all(self) -> None:
        self._names.clear()


def manifest_of(store: RunStore, names: FileNames) -> Manifest:
    """``store`` as a document; all of it is sorted."""
    return {
        "format": FORMAT,
        "scalars": dict(store.scalars),
        "next_id": store.next_id,
        "arrangements": list(store.runs),
        "runs": [_described(arrangement, run, names.of(run)) for arrangement, run in store.all_runs()],
    }


def files_of(manifest: Mapping[str, Any]) -> list[str]:
    return [run["file"] for run in manifest["runs"]]


def store_of(manifest: Mapping[str, Any], names: FileNames, opened: Callable[[str], pa.Table]) -> RunStore:
    """The store of a document, whose files ``opened`` reads; ``names`` knows them from then on.

    Raises ValueError, KeyError where the document or a file is another than was written.
    """
    if manifest["format"] != FORMAT:
        raise ValueError(f"format {manifest['format']}")
    store = RunStore(scalars=dict(manifest["scalars"]), next_id=manifest["next_id"])
    for name in manifest["arrangements"]:
        store.runs[name] = []
    for described in manifest["runs"]:
        table = opened(described["file"])
        if table.num_rows != described["rows"]:
            raise ValueError(f"{described['file']} does not hold what its manifest says")
        names.keep(described["uid"], described["file"])
        store.runs[described["arrangement"]].append(
            Run(
                uid=described["uid"],
                table=table,
                unit=described["unit"],
                clean=described["clean"],
                entries=tuple(described["entries"]),
                durable_rows=described["durable_rows"],
                since=described["since"],
                weights=KeyWeights(described["keys"], tuple(described["heaviest"])),
            )
        )
    return store


def _described(arrangement: str, run: Run, file: str) -> dict[str, Any]:
    return {
        "arrangement": arrangement,
        "uid": run.uid,
        "file": file,
        "rows": len(run),
        "unit": run.unit,
        "clean": run.clean,
        "entries": run.entries,
        "durable_rows": run.durable_rows,
        "since": run.since,
        "keys": run.weights.keys,
        "heaviest": run.weights.heaviest,
    }
