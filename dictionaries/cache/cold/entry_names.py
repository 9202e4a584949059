"""The names of entries in Redis, and what they depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.key_text import part_text
from dovetail.dictionaries.definition.definition import Definition


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
