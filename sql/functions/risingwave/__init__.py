"""The functions of RisingWave: PostgreSQL's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dovetail.sql.functions.elsewhere import OF_TABLES
from dovetail.sql.functions.registry import Registry, Table
from dovetail.sql.functions.risingwave import arrays, conditions, json, maps, numbers, series, text, times
from dovetail.sql.functions.risingwave.refusals import REFUSED
from dovetail.sql.functions.risingwave.signatures import compiled

GROUPS: Mapping[str, Table] = {
    "numbers": numbers.FUNCTIONS,
    "text": text.FUNCTIONS,
    "conditions": conditions.FUNCTIONS,
    "times": times.FUNCTIONS,
    "json": json.FUNCTIONS,
    "arrays": arrays.FUNCTIONS,
    "maps": maps.FUNCTIONS,
    "rows": series.FUNCTIONS,
}


@cache
def functions() -> Registry:
    """All of them; made once."""
    registry = Registry("RisingWave", compiled, OF_TABLES)
    for group, table in GROUPS.items():
        registry.add(group, table)
    registry.refuse(REFUSED)
    return registry
