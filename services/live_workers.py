"""Which lookup workers live, as the catalog knows."""

from __future__ import annotations

from dovetail.sql.catalog import Catalog, Worker

_LIVES_MS = 10_000
"""A worker that has not been seen for so long is taken to be gone. Nor is one that was seen so long from now: it wrote
that before the clock was set back, and one that lives has written since.
"""


def live_workers(catalog: Catalog, now_ms: int) -> list[Worker]:
    return [worker for worker in catalog.workers(now_ms - _LIVES_MS) if worker.seen_ms <= now_ms + _LIVES_MS]
