"""A checkpoint that stands in another folder than it was written in: a volume mounted elsewhere, a backup put back.

Spark notes the full path of the files that hold the schema of the state, beside the state. Nothing else in a checkpoint
names the folder.
"""

from __future__ import annotations

import json
from pathlib import Path

_PATHS = "stateSchemaFilePaths"
_STATE = "/state/"


def move_in(checkpoint: Path, stands_in: Path | None = None) -> None:
    """Have the notes of ``checkpoint`` (Spark's) name the folder that it is in, or is to stand in."""
    home = f"file:{(stands_in or checkpoint).absolute()}"
    for noted in (checkpoint / "state").glob("*/_metadata/v2/[0-9]*"):
        version, text = noted.read_text().split("\n", 1)
        members = json.loads(text)
        for store in members["stateStoreInfo"]:
            store[_PATHS] = [f"{home}{_STATE}{path.rpartition(_STATE)[2]}" for path in store[_PATHS]]
        if members != json.loads(text):
            unfinished = noted.with_name(f".{noted.name}.tmp")
            unfinished.write_text(f"{version}\n{json.dumps(members)}")
            noted.with_name(f".{noted.name}.crc").unlink(missing_ok=True)
            unfinished.replace(noted)
