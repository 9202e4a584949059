"""Invalidations on their way from one worker to the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from dovetail.dictionaries.cache.cold.json_values import tagged, untagged
from dovetail.dictionaries.cache.invalidation import Invalidation


@dataclass(frozen=True)
class InvalidationMessage:
    """``origin``: the cold tier that executed it, whose process needs not hear it."""

    invalidation: Invalidation
    origin: str


def encode_message(invalidation: Invalidation, origin: str) -> bytes:
    keys: Sequence[object] | None = None
    if invalidation.keys is not None:
        keys = [tagged(key) for key in invalidation.keys]
    return orjson.dumps({"origin": origin, "keys": keys, "prefix": invalidation.prefix, "token": invalidation.token})


def decode_message(value: bytes) -> InvalidationMessage:
    """Raises KeyError, TypeError or ValueError for anything that ``encode_message`` did not write."""
    fields = orjson.loads(value)
    keys = None if fields["keys"] is None else tuple(map(untagged, fields["keys"]))
    return InvalidationMessage(Invalidation(keys, fields["prefix"], fields["token"]), fields["origin"])
