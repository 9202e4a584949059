"""What a refresh names, and its message to the other workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from changelog.lookup import Key
from dictionaries.cache.key_text import key_of, key_text, key_value


@dataclass(frozen=True)
class Invalidation:
    """Keys, or all whose text begins with ``prefix``, or (neither given) everything.

    ``token`` names the refresh: its execution by another worker, or again, changes nothing more.
    """

    keys: tuple[Key, ...] | None = None
    prefix: str | None = None
    token: str = ""

    @property
    def is_whole(self) -> bool:
        return self.keys is None and self.prefix is None

    def concerned(self, keys: Iterable[Key]) -> list[Key]:
        """Those of the keys that it names."""
        if self.is_whole:
            return list(keys)
        named = frozenset(self.keys or ())
        prefix = self.prefix
        return [key for key in keys if key in named or (prefix is not None and key_text(key).startswith(prefix))]


@dataclass(frozen=True)
class InvalidationMessage:
    """An invalidation on its way; ``origin``: the layout that executed it, which needs not hear it."""

    invalidation: Invalidation
    origin: str


def encode_message(invalidation: Invalidation, origin: str) -> bytes:
    keys: Sequence[object] | None = None
    if invalidation.keys is not None:
        keys = [key_value(key) for key in invalidation.keys]
    return orjson.dumps({"origin": origin, "keys": keys, "prefix": invalidation.prefix, "token": invalidation.token})


def decode_message(value: bytes) -> InvalidationMessage:
    """Raises KeyError, TypeError or ValueError for anything that ``encode_message`` did not write."""
    fields = orjson.loads(value)
    keys = None if fields["keys"] is None else tuple(map(key_of, fields["keys"]))
    return InvalidationMessage(Invalidation(keys, fields["prefix"], fields["token"]), fields["origin"])
