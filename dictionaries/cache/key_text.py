"""Keys as text: for the names of entries in Redis, for prefixes, for messages between workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from changelog.lookup import Key
from dictionaries.cache.json_values import tagged, untagged
from dictionaries.definition.definition import Definition


def part_text(value: Any) -> str:
    """A value of a key as text; equal values give equal texts, so Decimal('1.50') and Decimal('1.5') are one key."""
    if isinstance(value, str):
        return value
    write = _WRITERS.get(type(value))
    return str(value) if write is None else write(value)


def key_text(key: Key) -> str:
    """The text of a key that a refresh by prefix is compared with: the parts of a composite key with ',' between."""
    return ",".join(map(part_text, key)) if isinstance(key, tuple) else part_text(key)


def key_value(key: Key) -> Any:
    """A key as JSON carries it."""
    return tagged(key)


def key_of(value: Any) -> Key:
    """What ``key_value`` was given."""
    return untagged(value)


def entry_names(head: str, keys: Sequence[Key]) -> list[str]:
    """The names of entries: every part is preceded by its length, so no two keys share a name."""
    if keys and isinstance(keys[0], tuple):
        return [head + "".join([f"{len(text)}:{text}" for text in map(part_text, key)]) for key in keys]
    texts = keys if keys and isinstance(keys[0], str) else list(map(part_text, keys))
    return [f"{head}{len(text)}:{text}" for text in texts]


def text_in_name(parts: str) -> str:
    """``key_text`` of the key whose ``parts``, with their lengths, end the name of an entry, or of its lock."""
    texts = []
    while parts and parts != "!":
        length, _, rest = parts.partition(":")
        texts.append(rest[: int(length)])
        parts = rest[int(length) :]
    return ",".join(texts)


def fingerprint(definition: Definition) -> str:
    """What an entry's rows depend on besides the source's content. No secret goes into it."""
    source = sorted((name, value) for name, value in definition.source.parameters.items() if "password" not in name)
    columns = [(column.name, str(column.type), column.default) for column in definition.columns]
    text = repr((columns, definition.key, definition.source.kind, source, sorted(definition.expressions.items())))
    return hashlib.blake2s(text.encode(), digest_size=8).hexdigest()


def _decimal_text(value: Decimal) -> str:
    # Not Decimal.normalize(), which rounds to 28 digits and would make two keys one.
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _datetime_text(value: datetime) -> str:
    return (value if value.tzinfo is None else value.astimezone(UTC)).isoformat()


_WRITERS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: str(int(value)),
    float: lambda value: repr(value + 0.0),
    Decimal: _decimal_text,
    datetime: _datetime_text,
    date: date.isoformat,
    time: time.isoformat,
    bytes: bytes.hex,
}
