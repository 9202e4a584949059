"""The files of Dovetail are their owner's alone, whatever the umask of whoever starts it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o077
"""What is taken: all that a group and everybody may do."""
_OWN = re.compile(
    r"audit|catalog\.db.*|checkpoints|demo-\d+|files|first-admin-token|jars|kafka|logs|redis|registry|scratch"
    r"|serve-users\..*|source|spark\.ready|stack\..*|state-copy|worker|.+\.lock"
)
"""Names in the folder of data."""


def keep_to_owner(data_dir: Path) -> None:
    """What this process and its children make from now on, and what an earlier version has left in ``data_dir``."""
    os.umask(_OTHERS)
    tighten(data_dir)


def tighten(data_dir: Path) -> None:
    """Makes the folder, or takes it from others. One with files of others in it stays as it is: what is Dovetail's in
    it does not. What cannot be changed belongs to somebody else.
    """
    with suppress(OSError):
        data_dir.mkdir(mode=0o777 & ~_OTHERS, parents=True, exist_ok=True)
        entries = list(data_dir.iterdir())
        own = [entry for entry in entries if _OWN.fullmatch(entry.name)]
        for place in (*own, *([data_dir] if len(own) == len(entries) else [])):
            _take(place)


def _take(place: Path) -> None:
    with suppress(OSError):
        mode = place.stat().st_mode
        if mode & _OTHERS and not place.is_symlink():
            place.chmod(mode & 0o7777 & ~_OTHERS)
