"""The functions of RisingWave: PostgreSQL's."""

from __future__ import annotations

from functools import cache

from dovetail.sql.functions.registry import RefusedCall, Registry
from dovetail.sql.functions.risingwave import arrays, conditions, json, numbers, text, times
from dovetail.sql.functions.risingwave.refusals import REFUSED


@cache
def functions() -> Registry:
    """All of them; made once."""
    registry = Registry("RisingWave", refused={name: RefusedCall(*why) for name, why in REFUSED.items()})
    for group in (numbers, text, conditions, times, json, arrays):
        group.register(registry)
    return registry
