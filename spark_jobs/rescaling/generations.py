"""The places of the checkpoints of one query: each rescaling makes another one beside that before.

    7-pairs  →  7-pairs.1  →  7-pairs.2

Which of them counts is what the catalog names. All others are leftovers: of a rescaling that was cut short before it
was named, or after it and before the former one was removed.
"""

from __future__ import annotations

import re

from runtime.storage.places import neighbour, neighbours
from runtime.storage.storage import Storage

_GENERATION = re.compile(r"(?P<base>.+)\.(?P<number>\d+)")


def next_of(checkpoint: Storage) -> Storage:
    base, number = _parted(_name(checkpoint))
    return neighbour(checkpoint, f"{base}.{number + 1}")


def leftovers(checkpoint: Storage) -> list[Storage]:
    """The places of the same query that are not ``checkpoint``."""
    own = _name(checkpoint)
    base, _ = _parted(own)
    others = [name for name in sorted(neighbours(checkpoint)) if name != own and _parted(name)[0] == base]
    return [neighbour(checkpoint, name) for name in others]


def _name(checkpoint: Storage) -> str:
    return checkpoint.location.rpartition("/")[2]


def _parted(name: str) -> tuple[str, int]:
    found = _GENERATION.fullmatch(name)
    return (found["base"], int(found["number"])) if found else (name, 0)
