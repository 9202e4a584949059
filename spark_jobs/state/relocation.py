"""A checkpoint that stands in another place than it was written in: a volume mounted elsewhere, a backup put back.

Spark notes the full path of the files that hold the schema of the state, beside the state. Nothing else in a checkpoint
names the place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from dovetail.runtime.storage.storage import Storage

_PATHS = "stateSchemaFilePaths"
_STATE = "/state/"


def rewrite_schema_paths(checkpoint: Storage, stands_in: Storage | None = None) -> None:
    """Have the notes of ``checkpoint`` (Spark's) name the place that it is in, or is to stand in."""
    home = (stands_in or checkpoint).url
    for noted in _notes(checkpoint):
        version, text = checkpoint.read(noted).decode().split("\n", 1)
        members = json.loads(text)
        for store in members["stateStoreInfo"]:
            store[_PATHS] = [f"{home}{_STATE}{path.rpartition(_STATE)[2]}" for path in store[_PATHS]]
        if members != json.loads(text):
            checkpoint.put(noted, f"{version}\n{json.dumps(members)}".encode())


def _notes(checkpoint: Storage) -> Iterator[str]:
    for level in checkpoint.names("state"):
        folder = f"state/{level}/_metadata/v2"
        yield from (f"{folder}/{name}" for name in checkpoint.names(folder) if name[0].isdigit())
