"""The memory that this process and its children may have."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

_BOUNDS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Of a container, in the second and in the first version of control groups."""


def memory_bytes(bounds: tuple[Path, ...] = _BOUNDS) -> int:
    """That of the machine, or of the container."""
    total = int(psutil.virtual_memory().total)
    return min([total, *(int(limit) for limit in map(_limit, bounds) if limit.isdigit())])


def _limit(bound: Path) -> str:
    try:
        return bound.read_text().strip()
    except OSError:
        return ""


def batch_bytes() -> int:
    """What the records of one batch may have, where as many batches are under way as there are cores.

    Its rows exist several times on their way: as records, in columns, at the operator, as output.
    """
    share = memory_bytes() // (64 * (os.cpu_count() or 1))
    return min(max(share, 32 << 20), 256 << 20)
