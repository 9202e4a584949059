"""The note in a checkpoint that its view is to run alone for a while: it has ended a pack, or could not be packed.

It outlives the runner, which would pack a view that fails again after each of its starts.
"""

from __future__ import annotations

import json

from dovetail.runtime.storage.storage import Storage

_NOTE = "alone.json"


def note_alone(checkpoint: Storage, until_ms: int) -> None:
    checkpoint.put(_NOTE, json.dumps({"until_ms": until_ms}).encode())


def is_to_be_alone(checkpoint: Storage, now_ms: int) -> bool:
    """Not where the note cannot be read: a view that fails its pack again is put out of it again."""
    try:
        return now_ms < int(json.loads(checkpoint.read(_NOTE))["until_ms"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False
