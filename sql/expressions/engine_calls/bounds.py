"""What DuckDB may take: memory, and room on disk for rows that memory does not hold."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp


def _temporary_folder() -> Path:
    """In the machine's folder for such, for its owner alone, until the process ends."""
    folder = Path(mkdtemp(prefix="dovetail-spill-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@dataclass(frozen=True)
class Bounds:
    """What one connection may take.

    spill_folder   makes a new folder, which is nobody else's, for rows that memory does not hold; None: a query that
                   needs more memory fails
    spill_bytes    the most that lie there
    """

    memory_bytes: int = 1 << 30
    spill_folder: Callable[[], Path] | None = _temporary_folder
    spill_bytes: int = 4 << 30


class _Process:
    bounds = Bounds()


def bound(bounds: Bounds) -> None:
    """Hold the connections to ``bounds`` that this process makes from now on."""
    _Process.bounds = bounds


def bounds_of_process() -> Bounds:
    return _Process.bounds
