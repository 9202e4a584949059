"""Which lookup workers live, as the catalog knows."""

from __future__ import annotations

from sql.catalog import Catalog, Worker

_LIVES_MS = 10_000
"""A worker that has not been seen for so long is taken to be gone."""


def live_workers(catalog: Catalog, now_ms: int) -> list[Worker]:
    return catalog.workers(now_ms - _LIVES_MS)
