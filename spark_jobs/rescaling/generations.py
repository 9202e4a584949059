"""The places of the checkpoints of one query: each rescaling makes another one beside that before, and so does each way
into a pack, and out of it.

    7-pairs  →  7-pairs.1  →  pack-0a1b-2c3d/members/7-pairs.2  →  7-pairs.3

Which of them counts is what the catalog names. All others are leftovers: of a rescaling that was cut short before it
was named, or after it and before the former one was removed.
"""

from __future__ import annotations

import re

from dovetail.runtime.storage.places import beside
from dovetail.runtime.storage.storage import Storage

PACK = "pack-"
"""So begin the names of packs."""
_GENERATION = re.compile(r"(?P<base>.+)\.(?P<number>\d+)")
_IN_PACK = re.compile(rf"(?P<home>.+)/(?P<pack>{PACK}[^/]+)/members/(?P<name>[^/]+)")


def next_of(checkpoint: Storage) -> Storage:
    """The next one that is alone."""
    home, _, name = _placed(checkpoint)
    return _at(checkpoint, f"{home}/{_following(name)}")


def next_in(pack: Storage, checkpoint: Storage) -> Storage:
    """The next one as a member of ``pack``."""
    return pack.inside(f"members/{_following(_placed(checkpoint)[2])}")


def pack_of(checkpoint: Storage) -> Storage | None:
    """The pack that a checkpoint is a member of."""
    home, pack, _ = _placed(checkpoint)
    return _at(checkpoint, f"{home}/{pack}") if pack else None


def leftovers(checkpoint: Storage) -> list[Storage]:
    """The places of the same query that are not ``checkpoint``, and in no pack."""
    home, pack, own = _placed(checkpoint)
    base, _ = _parted(own)
    others = [name for name in sorted(_at(checkpoint, home).names()) if pack or name != own]
    return [_at(checkpoint, f"{home}/{name}") for name in others if _parted(name)[0] == base]


def _placed(checkpoint: Storage) -> tuple[str, str, str]:
    """Where the checkpoints of all queries are; the pack, '' outside of one; the name."""
    location = checkpoint.location
    if found := _IN_PACK.fullmatch(location):
        return found["home"], found["pack"], found["name"]
    home, _, name = location.rpartition("/")
    return home, "", name


def _at(checkpoint: Storage, location: str) -> Storage:
    found = beside(checkpoint, location)
    assert found is not None
    return found


def _following(name: str) -> str:
    base, number = _parted(name)
    return f"{base}.{number + 1}"


def _parted(name: str) -> tuple[str, int]:
    found = _GENERATION.fullmatch(name)
    return (found["base"], int(found["number"])) if found else (name, 0)
