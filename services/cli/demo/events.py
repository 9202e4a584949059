"""Ad impressions and the clicks on them: made in columns, the same in every run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes

CAMPAIGNS = ("autumn", "winter", "spring", "summer", "loyalty", "launch", "outlet", "travel")
_SEED = 20_260_131
_CLICKS_PER_IMPRESSION = 0.2
_FIRST_MS = 1_767_225_600_000
_GAP_MS = 40
_INSTANT = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True)
class DemoStep:
    """Some impressions, and clicks on these and on earlier ones; tables with ``delta`` last."""

    impressions: pa.Table
    clicks: pa.Table


def steps(events: int, per_step: int = 20_000) -> Iterator[DemoStep]:
    """About ``events`` events: five impressions for each click. A click comes up to one step after its impression."""
    rng = np.random.default_rng(_SEED)
    impressions = max(1, round(events / (1 + _CLICKS_PER_IMPRESSION)))
    waiting = np.array([], dtype=np.int64)
    for first in range(0, impressions, per_step):
        ids = np.arange(first, min(first + per_step, impressions))
        campaigns = rng.integers(0, len(CAMPAIGNS), len(ids))
        # Campaigns differ in how often they are clicked on, from 0.1 to 0.3.
        clicked = ids[rng.random(len(ids)) < 0.1 + 0.2 * campaigns / (len(CAMPAIGNS) - 1)]
        now = rng.random(len(clicked)) < 0.5
        last = first + per_step >= impressions
        clicks = np.concatenate([waiting, clicked if last else clicked[now]])
        waiting = clicked[~now]
        yield DemoStep(_impressions(rng, ids, campaigns), _clicks(rng, clicks))


def _impressions(rng: np.random.Generator, ids: np.ndarray, campaigns: np.ndarray) -> pa.Table:
    names = pa.array(CAMPAIGNS).take(pa.array(campaigns))
    prices = np.round(rng.uniform(0.01, 0.2, len(ids)), 3)
    rows = pa.table({"id": ids, "campaign": names, "price": prices, "shown_at": _instants(ids * _GAP_MS)})
    return Changes.of(rows).table


def _clicks(rng: np.random.Generator, ids: np.ndarray) -> pa.Table:
    after_ms = rng.integers(200, 60_000, len(ids))
    rows = pa.table({"impression": ids, "clicked_at": _instants(ids * _GAP_MS + after_ms)})
    return Changes.of(rows).table


def _instants(offsets_ms: np.ndarray) -> pa.Array:
    return pa.array(_FIRST_MS + offsets_ms).cast(_INSTANT)
