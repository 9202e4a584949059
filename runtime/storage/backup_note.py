"""The note in a checkpoint that there is a backup of it: while that can be restored, the query keeps its identity.

A query that goes on in another checkpoint has another identity at the broker, and a backup of the former is refused. So
whoever would move a query of his own accord, and not at its user's word, leaves those be that have been backed up.
"""

from __future__ import annotations

import json

from dovetail.runtime.storage.storage import Storage

_NOTE = "backed-up.json"
_WEEK_MS = 7 * 86_400_000
"""So long the broker keeps what a restored checkpoint follows its output by."""


def note_backup(checkpoint: Storage, now_ms: int) -> None:
    """A backup of ``checkpoint`` is made now. It is part of the backup as well: what is restored can be so again."""
    checkpoint.put(_NOTE, json.dumps({"at_ms": now_ms}).encode())


def has_backup(checkpoint: Storage, now_ms: int) -> bool:
    """Whether there may be a backup that can still be restored: also where the note of it cannot be read."""
    try:
        return now_ms - int(json.loads(checkpoint.read(_NOTE))["at_ms"]) < _WEEK_MS
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        return True
