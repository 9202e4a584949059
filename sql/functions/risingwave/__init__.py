"""The functions of RisingWave: PostgreSQL's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from changelog.errors import Unsupported
from sql.functions.registry import Function, Registry
from sql.functions.risingwave import arrays, conditions, json, numbers, text, times
from sql.functions.risingwave.refusals import REFUSED


@dataclass
class RisingWaveRegistry(Registry):
    """What is refused is refused with its reason."""

    def find(self, name: str, place: str) -> Function:
        if name in REFUSED:
            what, fix = REFUSED[name]
            raise Unsupported(f"{name}() {what}", where=place, fix=fix)
        return super().find(name, place)


@cache
def functions() -> Registry:
    """All of them; made once."""
    registry = RisingWaveRegistry("RisingWave")
    for group in (numbers, text, conditions, times, json, arrays):
        group.register(registry)
    return registry
