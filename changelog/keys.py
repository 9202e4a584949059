"""Primary keys in Kafka keys: a JSON object of the key columns, or for a single column a bare value.

A bare value is a JSON scalar (``17``, ``"abc"``); for a text column also the text itself (``abc``, ``17``), which is
what other producers write. A key that begins with ``{`` is an object.
"""

from __future__ import annotations

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.formats.json_batch import decline_where

_NEEDS_ESCAPE = rb'["\\\x00-\x1f]'


def as_object(key: bytes | None, columns: tuple[str, ...], text: bool) -> bytes:
    """The Kafka key as a JSON object; ``text``: the single key column is of text type."""
    if key is None:
        return b"{}"
    if key.startswith(b"{") or len(columns) != 1:
        return key
    name = orjson.dumps(columns[0])
    if text and not key.startswith(b'"'):
        return b"{" + name + b":" + orjson.dumps(key.decode(errors="replace")) + b"}"
    return b"{" + name + b":" + key + b"}"


def as_objects(keys: pa.Array, columns: tuple[str, ...], text: bool) -> pa.Array:
    """``as_object`` for many. Raises NeedsRowDecoding if a bare text would have to be escaped."""
    objects = pc.starts_with(keys, b"{")
    if len(columns) != 1 or pc.all(objects).as_py():
        return keys.fill_null(b"{}")
    prefix, suffix = b"{" + orjson.dumps(columns[0]) + b":", b"}"
    bare = pc.binary_join_element_wise(prefix, keys, suffix, b"")
    if text:
        quoted = pc.starts_with(keys, b'"')
        escaping = pc.and_not(pc.match_substring_regex(keys, _NEEDS_ESCAPE), pc.or_(quoted, objects))
        decline_where(escaping.fill_null(False))
        bare = pc.if_else(quoted, bare, pc.binary_join_element_wise(prefix + b'"', keys, b'"' + suffix, b""))
    return pc.if_else(objects, keys, bare).fill_null(b"{}")
