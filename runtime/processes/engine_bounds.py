"""What DuckDB may take in a process of many threads: memory, in equal parts for them, and room on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from dovetail.runtime.settings import Settings
from dovetail.runtime.storage.scratch import scratch
from dovetail.sql.expressions.engine_calls.bounds import Bounds, bound, bounds_of_process

_LEAST_BYTES = 64 << 20
_SPILLED = 4
"""Bytes on disk for each in memory."""


@contextmanager
def bounded_engine(settings: Settings, threads: int) -> Iterator[None]:
    """Within, the connections of so many ``threads`` take what the settings say together; what they spill lies in
    folders of their own in the scratch folder.
    """
    memory_bytes = max((settings.engine_memory_mb << 20) // threads, _LEAST_BYTES)
    before = bounds_of_process()
    with scratch(settings.scratch) as folder:
        bound(Bounds(memory_bytes, lambda: Path(mkdtemp(dir=folder, prefix="spill-")), _SPILLED * memory_bytes))
        try:
            yield
        finally:
            bound(before)
