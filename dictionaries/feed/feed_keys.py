"""The keys that a record of a feed names, in its Kafka key or among its members."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.keys import as_object
from dovetail.changelog.lookup import Key
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.sources.source_values import Read, UnfitValue

_SHOWN = 80


class JsonReader:
    """``is_exact``: values may be decimals, of which each digit counts."""

    def __init__(self, *, is_exact: bool) -> None:
        self._is_exact = is_exact

    def parse(self, text: bytes) -> Any:
        """None for what is no JSON."""
        try:
            value = orjson.loads(text)
            # orjson reads a fraction as a double: digits of a decimal would be lost.
            return json.loads(text, parse_float=Decimal) if self._is_exact and b"." in text else value
        except (ValueError, RecursionError):
            return None


def unwrapped(value: Any) -> Any:
    """What stands in the envelope of Kafka Connect, which has the schema beside it."""
    return value["payload"] if isinstance(value, dict) and value.keys() == {"schema", "payload"} else value


def as_members(value: Any) -> Mapping[str, Any]:
    """Those of an object; none of anything else."""
    return value if isinstance(value, dict) else {}


class FeedKey(NamedTuple):
    """``is_exact``: it has the dictionary's key columns and no others, so there is one row of it, in one partition."""

    key: Key | None
    members: Mapping[str, Any]
    is_exact: bool


_NO_KEY = FeedKey(None, {}, False)


class FeedKeyReader:
    """``readers``: of the values of the key columns."""

    def __init__(self, definition: Definition, json_reader: JsonReader, readers: Sequence[Read]) -> None:
        types = {column.name: column.type for column in definition.columns}
        self._names = definition.key
        self._readers = readers
        self._json = json_reader
        self._has_text_key = len(definition.key) == 1 and pa.types.is_string(types[definition.key[0]])

    def in_text(self, text: bytes | None) -> FeedKey:
        """What a text holds of the key; ``key`` is None if that is not all of it."""
        if text is None:
            return _NO_KEY
        members: Mapping[str, Any]
        if len(self._names) > 1 and text.startswith(b"["):
            values = self._json.parse(text)
            is_key = isinstance(values, list) and len(values) == len(self._names)
            members = dict(zip(self._names, values, strict=True)) if is_key else {}
        else:
            members = as_members(unwrapped(self._json.parse(as_object(text, self._names, self._has_text_key))))
        return FeedKey(self.in_members(members), members, members.keys() == set(self._names))

    def in_members(self, members: Mapping[str, Any]) -> Key | None:
        """The key; None where a column of it is missing, NULL, or of a value that does not fit."""
        if not members:
            return None
        values = []
        for name, read in zip(self._names, self._readers, strict=True):
            given = members.get(name)
            try:
                value = None if given is None else read(given)
            except UnfitValue:
                value = None
            if value is None:
                return None
            values.append(value)
        return values[0] if len(values) == 1 else tuple(values)

    def required(self, key: Key | None, text: bytes | None) -> Key:
        """Raises RecordRejected for None; ``text`` is what it should stand in."""
        if key is None:
            shown = "null" if text is None else repr(text[:_SHOWN])
            raise RecordRejected(f"no key ({', '.join(self._names)}) can be read in {shown}")
        return key
