"""The folders of the checkpoints of one query: each rescaling makes another one beside that before.

    7-pairs  →  7-pairs.1  →  7-pairs.2

Which of them counts is what the catalog names. All others are leftovers: of a rescaling that was cut short before it
was named, or after it and before the former one was removed.
"""

from __future__ import annotations

import re
from pathlib import Path

_GENERATION = re.compile(r"(?P<base>.+)\.(?P<number>\d+)")
_UNFINISHED = ".unfinished"


def next_of(checkpoint: Path) -> Path:
    base, number = _parted(checkpoint)
    return checkpoint.with_name(f"{base}.{number + 1}")


def unfinished(checkpoint: Path) -> Path:
    """Where it is made before it gets its name."""
    return checkpoint.with_name(f".{checkpoint.name}{_UNFINISHED}")


def leftovers(checkpoint: Path) -> list[Path]:
    """The folders of the same query that are not ``checkpoint``."""
    base, _ = _parted(checkpoint)
    found = []
    for path in sorted(checkpoint.parent.iterdir()) if checkpoint.parent.exists() else ():
        name = path.name.removeprefix(".").removesuffix(_UNFINISHED)
        if path != checkpoint and _parted(path.with_name(name))[0] == base:
            found.append(path)
    return found


def _parted(checkpoint: Path) -> tuple[str, int]:
    found = _GENERATION.fullmatch(checkpoint.name)
    return (found["base"], int(found["number"])) if found else (checkpoint.name, 0)
