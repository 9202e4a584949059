"""How many descriptors a process may have open."""

from __future__ import annotations

import resource
from contextlib import suppress

import psutil


def raise_descriptor_limit() -> None:
    """As many descriptors as the system lets this process have: Java does that for itself, Python leaves it at 1,024,
    which a hundred clients of Kafka use up.
    """
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != most:
        # Where there is no limit at all, some systems refuse to have none.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def share_of_descriptors(pid: int) -> float:
    """How much a process has open of what it may, from 0 to 1; 0 where that is not known."""
    try:
        process = psutil.Process(pid)
        soft, _ = process.rlimit(psutil.RLIMIT_NOFILE)
        return process.num_fds() / soft if soft > 0 else 0.0
    except (psutil.Error, AttributeError):
        return 0.0
