"""Forgetting what an earlier dictionary has left in Redis."""

from __future__ import annotations

from dictionaries.cache.cold.codec import EntryCodec
from dictionaries.cache.cold.tier import ColdTier
from dictionaries.cache.invalidation import Invalidation
from dictionaries.cache.settings import read_settings
from dictionaries.cache.statistics import Statistics
from dictionaries.definition.definition import Definition


def forget(definition: Definition, redis_url: str, token: str = "") -> None:
    """Makes all entries of a dictionary of this name and shape unreachable, and tells every worker that holds some.

    For DROP and CREATE: a new dictionary must not answer with the rows of an old one. Raises ServiceUnavailable if
    Redis does not answer.
    """
    codec = EntryCodec([column.type for column in definition.columns])
    statistics = Statistics(definition)
    cold = ColdTier(redis_url, definition, read_settings(definition), codec, statistics, lambda: None)
    try:
        cold.invalidate(Invalidation(token=token))
    finally:
        cold.close()
